"""BoTorch over any nestbo manifold: ``optimize_acqf``, and a kernel with a metric that its models learn."""

from nestbo.bridges.botorch import gen_candidates, ic_generator, optimize_acqf
from nestbo.bridges.warped import WarpedKernel

__all__ = ["WarpedKernel", "gen_candidates", "ic_generator", "optimize_acqf"]
