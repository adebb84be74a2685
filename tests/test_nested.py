"""Nested mappings: the laws, the formulas, offsets and complements, mistakes."""

import math

import pytest
import torch

from nestbo import SPD, ArgumentError, Box, Product, ShapeError, Sphere, linalg
from nestbo.nested import MAPPINGS, Identity, NestedLogSPD, NestedProduct, NestedSPD, NestedSphere, Nesting
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
    (
        NestedLogSPD,
        SPD(4, metric="log-euclidean", eigenvalues=(0.5, 2)),
        SPD(2, metric="log-euclidean", eigenvalues=(0.5, 2)),
    ),
    (NestedProduct, Product(Sphere(6), BOUNDED), Product(Sphere(2), SPD(2, eigenvalues=(1e-3, 5)))),
    (NestedProduct, Product(Sphere(4), SPD(3), Box(0, 1)), Product(Sphere(4), SPD(2), Box(0, 1))),
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


RUNS = 3
EACH = [pair for pair in PAIRS if pair[0] is not Identity]


def at(family, basis, ambient, latent):
    """The mapping, or one mapping per run, with this basis."""
    return Nesting(ambient, latent).at(basis) if family is NestedProduct else family.at(basis, ambient)


@pytest.mark.parametrize(("family", "ambient", "latent"), EACH, ids=repr)
class TestRuns:
    """One mapping per run: basis (runs, …), points (…, runs, q, *point)."""

    def mappings(self, family, ambient, latent, rng):
        single = [family.random(ambient, latent, rng) for _ in range(RUNS)]
        return single, at(family, torch.stack([m.basis for m in single]), ambient, latent)

    def agree(self, together, single, operation, *points, atol=1e-10):
        each = [getattr(m, operation)(*(p[:, k] for p in points)) for k, m in enumerate(single)]
        torch.testing.assert_close(getattr(together, operation)(*points), torch.stack(each, 1), rtol=0, atol=atol)

    def test_operations_are_those_of_the_single_mappings(self, family, ambient, latent, rng):
        single, together = self.mappings(family, ambient, latent, rng)
        x, z = ambient.random(2, RUNS, 4, rng=rng), latent.random(2, RUNS, 4, rng=rng)
        shared = ambient.random(2, RUNS, 1, rng=rng)
        self.agree(together, single, "project", x)
        self.agree(together, single, "lift", z)
        self.agree(together, single, "lift_near", z, x)
        self.agree(together, single, "lift_near", z, shared)

    def test_fitted_lifts_are_those_of_the_single_mappings(self, family, ambient, latent, rng):
        single, together = self.mappings(family, ambient, latent, rng)
        x, z = ambient.random(RUNS, 8, rng=rng), latent.random(2, RUNS, 4, rng=rng)
        fitted = [m.fit_lift(points) for m, points in zip(single, x, strict=True)]
        self.agree(together.fit_lift(x), fitted, "lift", z, atol=1e-5)


class TestNestedProduct:
    def test_each_factor_is_mapped_by_itself(self, rng):
        sphere, spd = NestedSphere.random(Sphere(6), Sphere(2), rng), NestedSPD.random(SPD(4), SPD(2), rng)
        both = NestedProduct((sphere, spd))
        a, b = Sphere(6).random(5, rng=rng), SPD(4).random(5, rng=rng)
        x = both.ambient.join([a, b])
        found = both.latent.split(both.project(x))
        torch.testing.assert_close(found, (sphere.project(a), spd.project(b)))
        z, near = both.project(x.flip(0)), both.ambient.split(both.lift_near(both.project(x.flip(0)), x))
        u, v = both.latent.split(z)
        torch.testing.assert_close(near, (sphere.lift_near(u, a), spd.lift_near(v, b)))
        fitted = both.ambient.split(both.fit_lift(x).lift(z))
        torch.testing.assert_close(fitted, (sphere.fit_lift(a).lift(u), spd.fit_lift(b).lift(v)), rtol=0, atol=1e-6)

    def test_the_basis_is_packed_and_unpacked(self, rng):
        mapping = NestedProduct.random(
            Product(Sphere(4), Box(0, 1), SPD(3)), Product(Sphere(1), Box(0, 1), SPD(2)), rng
        )
        sphere, _, spd = mapping.mappings
        torch.testing.assert_close(mapping.basis, torch.cat([sphere.basis.flatten(), spd.basis.flatten()]))
        again = Nesting(mapping.ambient, mapping.latent).at(mapping.basis)
        x = mapping.ambient.random(4, rng=rng)
        torch.testing.assert_close(again.project(x), mapping.project(x))
        torch.testing.assert_close(again.basis, mapping.basis)

    def test_identities_leave_their_factor_whole(self, rng):
        space = Product(Sphere(5), SPD(3), Box(0, [1, 2]))
        mapping = NestedProduct((NestedSphere.random(Sphere(5), Sphere(1), rng), *map(Identity, space.factors[1:])))
        x, z = space.random(6, rng=rng), mapping.latent.random(6, rng=rng)
        assert torch.equal(mapping.project(x)[:, 2:], x[:, 6:])
        for lifted in (mapping.lift(z), mapping.lift_near(z, x), mapping.fit_lift(x).lift(z)):
            assert torch.equal(lifted[:, 6:], z[:, 2:])

    def test_only_identities_have_an_empty_basis(self, rng):
        mapping = NestedProduct((Identity(Sphere(2)), Identity(SPD(2))))
        x = mapping.ambient.random(3, rng=rng)
        assert mapping.basis.shape == (0,)
        assert torch.equal(mapping.lift(mapping.project(x)), x)

    def test_products_nest_in_products(self, rng):
        inner = Product(Sphere(4), SPD(3))
        nesting = Nesting(Product(inner, Sphere(5)), Product(Product(Sphere(2), SPD(3)), Sphere(2)))
        basis = nesting.bases.random(rng=rng)
        torch.testing.assert_close(nesting.at(basis).basis, basis)
        several = nesting.bases.random(2, rng=rng)
        torch.testing.assert_close(nesting.at(several).basis, several)

    def test_what_is_no_mapping_is_refused(self):
        with pytest.raises(ArgumentError, match=r"one mapping per factor, got Sphere\(2\)"):
            NestedProduct((Identity(Sphere(2)), Sphere(2)))
        with pytest.raises(ArgumentError, match="one mapping per factor, got none"):
            NestedProduct(())

    def test_a_packed_basis_alone_does_not_say_its_shape(self):
        with pytest.raises(ArgumentError, match=r"Use Nesting\(ambient, latent\).at\(basis\)"):
            NestedProduct.at(torch.zeros(4), Product(Sphere(3)))

    def test_other_factors_are_refused(self, rng):
        with pytest.raises(ArgumentError, match="as many factors"):
            NestedProduct.random(Product(Sphere(3), SPD(3)), Product(Sphere(2)), rng)
        with pytest.raises(ArgumentError, match="Spaces that nest are sphere, spd, product"):
            NestedProduct.random(Product(Sphere(3), Box(0, 2)), Product(Sphere(2), Box(0, 1)), rng)


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
