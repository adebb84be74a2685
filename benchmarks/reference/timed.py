"""Run an example of the authors' code, with other sizes, and record its data and the CPU seconds of each suggestion.

It runs under the reference's own Python (3.8) and needs nothing of nestbo; compare.py calls it. A suggestion lasts from
one fit of the model to the next: the example is stopped at the fit after the last of them. Where it fails earlier, what
was measured is kept.

    python timed.py EXAMPLE.py OUT.npz DIM LATENT_DIM ITERATIONS
"""

import re
import sys
import time

import matplotlib

matplotlib.use("Agg")

import botorch
import matplotlib.pyplot as plt
import numpy as np
import torch

ITERATIONS = "nb_iter_bo|n_iters"  # how the examples call their number of iterations


def resized(text, **sizes):
    """The text of an example with other values of its variables, each of which is set once."""
    for name, value in sizes.items():
        names = ITERATIONS if name == "iterations" else name
        text, count = re.subn(rf"(?m)^(\s*(?:{names}) = )\d+", rf"\g<1>{value}", text)
        if count != 1:
            raise SystemExit(f"The example sets {names} {count} times, not once: it is another version.")
    return text.replace("['text.usetex'] = True", "['text.usetex'] = False")


def moved():
    """BoTorch 0.3 keeps under other names what the code of 2020 imports."""
    import botorch.generation

    sys.modules.setdefault("botorch.gen", botorch.generation)


def main():
    example, out, dim, latent_dim, iterations = sys.argv[1:]
    torch.set_num_threads(1)
    moved()
    iterations, times, data, fit = int(iterations), [], [], botorch.fit_gpytorch_model

    def timed_fit(mll, *arguments, **options):
        times.append(time.process_time())
        x, y = mll.model.train_inputs[0], mll.model.train_targets
        data.append((x.detach().numpy().copy(), y.detach().numpy().copy()))
        if len(times) > iterations:
            raise SystemExit
        return fit(mll, *arguments, **options)

    botorch.fit_gpytorch_model = timed_fit
    plt.show = lambda *arguments, **options: None
    with open(example) as file:
        text = resized(file.read(), dim=dim, latent_dim=latent_dim, iterations=iterations + 1)
    try:
        exec(compile(text, example, "exec"), {"__name__": "__main__"})
    finally:
        arrays = {f"x{k}": x for k, (x, _) in enumerate(data[:-1])}
        arrays.update({f"y{k}": y for k, (_, y) in enumerate(data[:-1])})
        np.savez(out, seconds=np.diff(times), **arrays)


if __name__ == "__main__":
    main()
