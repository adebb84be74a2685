"""Lower bounds β_min of the geodesic Gaussian exp(−β d²): as published with GaBO and HD-GaBO, and as measured here.

``benchmarks/beta_min.py`` regenerates the measured ones with ``beta_min``: the smallest β at which five draws of n
random points (500 on spheres, 100 matrices) gave no Gram matrix with an eigenvalue below −10⁻⁶. Kernels use the
published ones, which are on the safe side of these; that of SPD(3) lies below that of SPD(5), as it was published.
"""

BETA_MIN = {
    "sphere": {2: 6.5, 3: 2.0, 4: 1.2, 5: 1.0, 10: 0.6, 20: 0.35, 50: 0.21},
    "spd": {2: 0.6, 3: 0.2, 5: 0.25, 7: 0.22, 10: 0.2, 12: 0.16},
}

MEASURED = {
    "sphere": {2: 1.5, 3: 1.3, 4: 1.1, 5: 0.84, 10: 0.5, 20: 0.31, 50: 0.21},
    "spd": {2: 0.22, 3: 0.14, 5: 0.14, 7: 0.081, 10: 0.041, 12: 0.036},
}
