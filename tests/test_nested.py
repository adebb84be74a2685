"""Nested mappings: the laws, the formulas, offsets and complements, mistakes."""

import math

import pytest
import torch

from nestbo import SPD, ArgumentError, ShapeError, Sphere, linalg
from nestbo.nested import MAPPINGS, Identity, NestedLogSPD, NestedSPD, NestedSphere
from nestbo.testing import MAPPING_LAWS

BOUNDED = SPD(5, eigenvalues=(1e-3, 5))
PAIRS = [
    (NestedSphere, Sphere(2), Sphere(1)),
    (NestedSphere, Sphere(50), Sphere(5)),
    (NestedSphere, Sphere(4), Sphere(4)),
    (NestedSPD, SPD(5), SPD(2)),
    (NestedSPD, SPD(3), SPD(3)),
    (NestedSPD, BOUNDED, SPD(2, eigenvalues=(1e-3, 5))),
    (NestedSPD, SPD(4, eigenvalues=(2, 3)), SPD(1, eigenvalues=(2, 3))),
    (NestedSPD, SPD(6, metric="log-euclidean"), SPD(3, metric="log-euclidean")),
    (NestedLogSPD, SPD(5, metric="log-euclidean"), SPD(2, metric="log-euclidean")),
    (NestedLogSPD, SPD(3, metric="log-euclidean"), SPD(3, metric="log-euclidean")),
    (Identity, Sphere(3), Sphere(3)),
    (Identity, SPD(2), SPD(2)),
]


def offset_sphere(rng):
    """A lift with s = 0.3."""
    mapping = NestedSphere.random(Sphere(10), Sphere(3), rng)
    h = torch.randn(11, generator=rng, dtype=torch.float64)
    h = h - mapping.basis @ (mapping.basis.mT @ h)
    return NestedSphere(mapping.basis, math.sqrt(1 - 0.3**2) * linalg.unit(h))


def full_complement(rng):
    """A lift whose complement fills the eigenvalue bounds."""
    mapping = NestedSPD.random(BOUNDED, SPD(2), rng)
    rest = linalg.completion(mapping.basis)
    b = torch.diag(torch.tensor([1e-3, 2.0, 5.0], dtype=torch.float64))
    return NestedSPD(mapping.basis, BOUNDED, rest @ b @ rest.mT)


laws = pytest.mark.parametrize("law", MAPPING_LAWS, ids=lambda law: law.__name__)


@laws
@pytest.mark.parametrize(("family", "ambient", "latent"), PAIRS, ids=repr)
def test_law(family, ambient, latent, law, rng):
    mapping = family.random(ambient, latent, rng)
    assert (mapping.ambient, mapping.latent) == (ambient, latent)
    law(mapping, rng)


@laws
@pytest.mark.parametrize("make", [offset_sphere, full_complement])
def test_law_with_a_given_lift(make, law, rng):
    law(make(rng), rng)


def test_every_registered_mapping_is_tested():
    assert set(MAPPINGS.values()) <= {family for family, *_ in PAIRS}


def test_bases_are_orthonormal_and_haar_random(rng):
    """The mean of W Wᵀ over many draws is (d+1)/(D+1) times the identity."""
    bases = torch.stack([NestedSphere.random(Sphere(4), Sphere(1), rng).basis for _ in range(2000)])
    torch.testing.assert_close(bases.mT @ bases, torch.eye(2).double().expand(2000, 2, 2))
    torch.testing.assert_close((bases @ bases.mT).mean(0), 0.4 * torch.eye(5).double(), rtol=0, atol=0.03)


def test_projection_of_a_sphere_is_the_normalised_product(rng):
    mapping = NestedSphere.random(Sphere(6), Sphere(2), rng)
    x = Sphere(6).random(4, rng=rng)
    product = torch.stack([mapping.basis.mT @ point for point in x])
    torch.testing.assert_close(mapping.project(x), product / product.norm(dim=-1, keepdim=True))


def test_eigenvalues_of_a_lift_are_those_of_both_parts(rng):
    mapping = full_complement(rng)
    z = mapping.latent.random(rng=rng)
    both = torch.cat([torch.linalg.eigvalsh(z), torch.tensor([1e-3, 2.0, 5.0], dtype=torch.float64)]).sort().values
    torch.testing.assert_close(torch.linalg.eigvalsh(mapping.lift(z)), both, rtol=0, atol=1e-12)


def test_projections_interlace_and_so_keep_the_bounds(rng):
    """At the corners of the bounds, too."""
    mapping = NestedSPD.random(BOUNDED, SPD(2), rng)
    values = torch.tensor([1e-3, 1e-3, 1e-3, 5.0, 5.0], dtype=torch.float64)
    x = linalg.spectral(values, linalg.random_frames(50, 5, 5, rng=rng))
    mapping.latent.check(mapping.project(x), 1e-12)


def test_nested_spheres_are_differentiable_in_the_basis(rng):
    x = Sphere(5).random(3, rng=rng)
    basis = NestedSphere.random(Sphere(5), Sphere(2), rng).basis.requires_grad_()
    assert torch.autograd.gradcheck(lambda w: NestedSphere(w).project(x), basis)


def test_nested_matrices_are_differentiable_in_the_basis(rng):
    x = SPD(4).random(3, rng=rng)
    basis = NestedSPD.random(SPD(4), SPD(2), rng).basis.requires_grad_()
    assert torch.autograd.gradcheck(lambda w: NestedSPD(w, SPD(4)).project(x), basis)


class TestMistakes:
    def test_larger_or_other_latent_spaces_are_refused(self, rng):
        for ambient, latent in ((Sphere(2), Sphere(3)), (Sphere(5), SPD(2))):
            with pytest.raises(ArgumentError, match="Nested spheres go from"):
                NestedSphere.random(ambient, latent, rng)
        for ambient, latent in ((SPD(2), SPD(3)), (Sphere(5), SPD(2))):
            with pytest.raises(ArgumentError, match="Nested matrices go from"):
                NestedSPD.random(ambient, latent, rng)
        with pytest.raises(ArgumentError, match="to itself"):
            Identity.random(Sphere(3), Sphere(2), rng)

    def test_bases_of_the_wrong_shape_are_refused(self):
        for shape in ((3,), (2, 3), (4, 1)):
            with pytest.raises(ShapeError, match="basis of nested spheres"):
                NestedSphere(torch.zeros(shape))
        for shape in ((3,), (4, 2), (3, 4)):
            with pytest.raises(ShapeError, match="basis of nested SPD"):
                NestedSPD(torch.zeros(shape), SPD(3))
