"""Values as a model sees them."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from nestbo.outputs import Outputs
from nestbo.surrogate.description import Data, Description
from nestbo.surrogate.varied import MOST_NOISE, NOISE


@dataclass(frozen=True)
class Targets:
    """The values z (runs, n) in the model's units, the map to them, and what is known of their noise there.

    ``noise`` (runs, 1) is the variance, or the mean of several; ``weights`` (runs, n) is each one relative to it. Both
    are None where they are not known.
    """

    outputs: Outputs
    z: Tensor
    noise: Tensor | None = None
    weights: Tensor | None = None

    @property
    def known(self) -> bool:
        """Whether the noise is known."""
        return self.noise is not None

    @classmethod
    def of(cls, model: Description, data: Data) -> Targets:
        """Those of the data, for a model."""
        outputs = model.outputs(data.y)
        z = outputs.forward(data.y)
        noise = None if data.noise is None else outputs.noise(data.noise)
        if noise is None:
            return cls(outputs, z)
        # Less than this is lost in the rounding of the Gram matrix anyway.
        noise = noise.clamp(100 * max(NOISE[0], model.kernel.tolerance), MOST_NOISE)
        mean = noise.mean(-1, keepdim=True)
        return cls(outputs, z, mean, noise / mean) if isinstance(data.noise, Tensor) else cls(outputs, z, noise)
