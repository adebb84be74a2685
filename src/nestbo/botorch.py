"""BoTorch's ``optimize_acqf`` over any nestbo manifold: the public name of ``nestbo.bridges.botorch``."""

from nestbo.bridges.botorch import gen_candidates, ic_generator, optimize_acqf

__all__ = ["gen_candidates", "ic_generator", "optimize_acqf"]
