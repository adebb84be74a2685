"""Lower bounds β_min of the geodesic Gaussian, as published with GaBO and HD-GaBO.

``benchmarks/beta_min.py`` sets them beside our own. On SPD(3) the published value lies below that of SPD(5), as it is.
"""

BETA_MIN = {
    "sphere": {2: 6.5, 3: 2.0, 4: 1.2, 5: 1.0, 10: 0.6, 20: 0.35, 50: 0.21},
    "spd": {2: 0.6, 3: 0.2, 5: 0.25, 7: 0.22, 10: 0.2, 12: 0.16},
}
