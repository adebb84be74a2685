import pytest

from nestbo.manifolds import MANIFOLDS
from nestbo.testing import MANIFOLD_LAWS

SAMPLES = [manifold for family in MANIFOLDS.values() for manifold in family.samples()]


@pytest.mark.parametrize("law", MANIFOLD_LAWS, ids=lambda law: law.__name__)
@pytest.mark.parametrize("manifold", SAMPLES, ids=repr)
def test_law(manifold, law, rng):
    law(manifold, rng)
