"""Nesting: the family of mappings, its bases, the projections of a fit, active subspaces, sizes."""

import pytest
import torch

from nestbo import SPD, ArgumentError, Box, Euclidean, Grassmann, Product, Sphere
from nestbo.nested import Identity, NestedLogSPD, NestedProduct, NestedSPD, NestedSphere, Nesting, smaller

BOTH = Product(Sphere(6), Box(0, 1), SPD(4))
NESTINGS = [
    Nesting(Sphere(6), Sphere(2)),
    Nesting(SPD(5), SPD(2)),
    Nesting(SPD(5, metric="log-euclidean", eigenvalues=(0.1, 5)), SPD(2, metric="log-euclidean", eigenvalues=(0.1, 5))),
    Nesting(SPD(4), SPD(2), logarithmic=True),
    Nesting(BOTH, Product(Sphere(2), Box(0, 1), SPD(2))),
    Nesting(BOTH, Product(Sphere(6), Box(0, 1), SPD(2)), logarithmic=True),
]
every = pytest.mark.parametrize("nesting", NESTINGS, ids=repr)


def exact(nesting, basis, x):
    """What the projection of a fit should be, written out."""
    if isinstance(nesting.ambient, Product):
        packed, parts = basis, []
        for part, point in zip(nesting.parts, nesting.ambient.split(x), strict=True):
            size = 0 if part.kind is Identity else part.bases.n * part.bases.p
            own = packed[..., :size].unflatten(-1, (part.bases.n, part.bases.p)) if size else None
            packed = packed[..., size:]
            parts.append(exact(part, own, point) if size else point)
        return nesting.latent.join(parts)
    if nesting.logarithmic and isinstance(nesting.ambient, SPD):
        return NestedLogSPD(basis, nesting.ambient).project(x)
    return nesting.at(basis).project(x)


@every
class TestFamily:
    def test_mappings_have_its_spaces_and_class(self, nesting, rng):
        mapping = nesting.at(nesting.bases.random(rng=rng))
        assert type(mapping) is nesting.kind
        assert (mapping.ambient, mapping.latent) == (nesting.ambient, nesting.latent)

    def test_a_basis_is_packed_as_the_mapping_packs_it(self, nesting, rng):
        for batch in ((), (3,)):
            basis = nesting.bases.random(*batch, rng=rng)
            assert torch.equal(nesting.at(basis).basis, basis)

    def test_the_projection_of_a_fit_is_that_of_the_mapping(self, nesting, rng):
        """For each of several runs; with ``logarithmic``, that of the log-Euclidean mapping."""
        basis, x = nesting.bases.random(3, rng=rng), nesting.ambient.random(3, 5, rng=rng)
        found = nesting.project(basis, nesting.prepare(x))
        torch.testing.assert_close(found, exact(nesting, basis, x), rtol=0, atol=1e-12)
        alone = nesting.project(basis[1], nesting.prepare(x[1]))
        torch.testing.assert_close(found[1], alone, rtol=0, atol=1e-12)

    def test_several_bases_of_one_run_share_its_points(self, nesting, rng):
        """As the starts of a fit do: bases (runs, starts, …), points (runs, 1, n, *point)."""
        basis, x = nesting.bases.random(2, 4, rng=rng), nesting.ambient.random(2, 5, rng=rng)
        found = nesting.project(basis, nesting.prepare(x).unsqueeze(1))
        assert found.shape == (2, 4, 5, *nesting.latent.point_shape)
        torch.testing.assert_close(found[1, 2], nesting.project(basis[1, 2], nesting.prepare(x[1])), rtol=0, atol=1e-12)

    def test_the_projection_is_differentiable_in_the_basis(self, nesting, rng):
        basis = nesting.bases.random(rng=rng).requires_grad_()
        prepared = nesting.prepare(nesting.ambient.random(2, rng=rng))
        assert torch.autograd.gradcheck(lambda w: nesting.project(w, prepared), basis)

    def test_the_basis_that_a_function_needs_is_found_in_its_gradients(self, nesting, rng):
        """Of a function of project(x); also for several runs at once."""
        space, truth = nesting.ambient, nesting.bases.random(2, rng=rng)
        x = space.random(2, 40, rng=rng).requires_grad_()
        z = nesting.at(truth).project(x).flatten(2)
        mix = torch.randn(z.shape[-1], 3, generator=rng, dtype=torch.float64)
        (gradient,) = torch.autograd.grad((z @ mix).sin().sum(), x)
        found = nesting.active(space.to_tangent(x, gradient).detach())
        nesting.bases.check(found, 1e-10)
        assert (nesting.bases.dist(found, truth) < 1e-6).all()


def test_the_approximation_is_one(rng):
    nesting, x = Nesting(SPD(4), SPD(2), logarithmic=True), SPD(4).random(5, rng=rng)
    basis = nesting.bases.random(rng=rng)
    assert (nesting.project(basis, nesting.prepare(x)) - nesting.at(basis).project(x)).abs().max() > 0.1
    assert isinstance(nesting.at(basis), NestedSPD)


def test_the_most_active_directions_are_taken(rng):
    """Gradients of size 1 in two directions of S^5 and of a tenth in the others."""
    size = torch.tensor([0.1, 1, 0.1, 0.1, 1, 0.1], dtype=torch.float64)
    gradients = size * torch.randn(400, 6, generator=rng, dtype=torch.float64)
    found = Nesting(Sphere(5), Sphere(1)).active(gradients)
    wanted = torch.eye(6, dtype=torch.float64)[:, [1, 4]]
    assert Grassmann(6, 2).dist(found, wanted) < 0.1


def test_bases_are_subspaces():
    assert Nesting(Sphere(6), Sphere(2)).bases == Grassmann(7, 3)
    assert Nesting(SPD(6), SPD(2)).bases == Grassmann(6, 2)
    assert NESTINGS[4].bases == Product(Grassmann(7, 3), Grassmann(4, 2))
    assert NESTINGS[5].bases == Product(Grassmann(4, 2))


def test_kinds():
    assert Nesting(Sphere(6), Sphere(2)).kind is NestedSphere
    assert Nesting(Sphere(6), Sphere(6)).kind is Identity
    assert Nesting(Box(0, 1), Box(0, 1)).kind is Identity
    assert NESTINGS[4].kind is NestedProduct
    assert [part.kind for part in NESTINGS[5].parts] == [Identity, Identity, NestedSPD]


class TestMistakes:
    @pytest.mark.parametrize(
        ("ambient", "latent"), [(Sphere(5), SPD(2)), (Box(0, 2), Box(0, 1)), (Euclidean(3), Euclidean(2))]
    )
    def test_spaces_that_do_not_nest(self, ambient, latent):
        with pytest.raises(ArgumentError, match="Spaces that nest are sphere, spd, product, each in its own kind"):
            Nesting(ambient, latent)

    def test_products_of_other_length(self):
        with pytest.raises(ArgumentError, match="as many factors"):
            Nesting(Product(Sphere(3), SPD(3)), Product(Sphere(2)))

    @pytest.mark.parametrize(
        ("ambient", "latent"),
        [
            (Sphere(2), Sphere(5)),
            (SPD(2), SPD(3)),
            (SPD(5), SPD(2, metric="log-euclidean")),
            (SPD(5), SPD(2, eigenvalues=(1, 2))),
        ],
        ids=repr,
    )
    def test_latent_spaces_that_no_mapping_leads_to(self, ambient, latent):
        with pytest.raises(ArgumentError):
            Nesting(ambient, latent)


class TestSmaller:
    def test_the_size_is_the_first_argument_of_the_space(self):
        assert smaller(Sphere(50), 5) == Sphere(5)
        assert smaller(Sphere(5), 5) == Sphere(5)
        bounded = SPD(10, metric="log-euclidean", eigenvalues=(1e-3, 5))
        assert smaller(bounded, 3) == SPD(3, metric="log-euclidean", eigenvalues=(1e-3, 5))

    def test_none_leaves_a_space_whole(self):
        assert smaller(Box(0, 1), None) == Box(0, 1)
        assert smaller(BOTH, (2, None, None)) == Product(Sphere(2), Box(0, 1), SPD(4))
        assert smaller(Product(BOTH, Sphere(3)), ((None, None, 2), 1)) == Product(
            Product(Sphere(6), Box(0, 1), SPD(2)), Sphere(1)
        )

    @pytest.mark.parametrize("size", [0, -1, 6, 2.0, True, "2", (2,)])
    def test_sizes_out_of_range(self, size):
        with pytest.raises(ArgumentError, match=r"latent_dim of Sphere\(5\) is a whole number from 1 to 5, got"):
            smaller(Sphere(5), size)

    def test_spaces_without_smaller_ones(self):
        with pytest.raises(ArgumentError, match=r"Box.* has no nested spaces inside; they exist in a Sphere, SPD and"):
            smaller(Box(0, 1), 1)
        with pytest.raises(ArgumentError, match=r"Box.* has no nested spaces inside"):
            smaller(BOTH, (2, 1, 2))

    @pytest.mark.parametrize("size", [2, (2,), (2, None), [2, None, 2]])
    def test_one_entry_per_factor(self, size):
        with pytest.raises(ArgumentError, match=r"tuple with one entry per factor, None for one to leave whole, got"):
            smaller(BOTH, size)
