"""The suites by name and what each compares, without torch: for the help, and for ``nestbo bench list``."""

APPLICATIONS = "applications"  # the suite of the gallery, which is run in another way than the others

ABOUT = {
    "paper": "the twelve problems of Jaquier and Rozo (2020)",
    "hdgabo": "HD-GaBO, as published and as it is here, between GaBO and the oracle",
    "mismatch": "wrong latent dimensions, and objectives without latent structure",
    "ablation": "HD-GaBO with one of its defaults changed",
    "rivals": "what people would use instead, on eight problems, after 105 evaluations",
    "rivals-205": "what people would use instead, on the same problems, after 205 evaluations",
    "few-dimensions": "few dimensions, or nothing nested: does learning a metric cost anything there?",
    "held-out": "problems that were not used to tune: other functions, sizes and spaces, no structure, noise",
    "held-out-metric": "functions on which the constants of the learned metric were not chosen",
    APPLICATIONS: "the applications of the gallery, with methods of other packages on ordinary coordinates",
}
