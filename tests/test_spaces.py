"""Rotations, quaternions, angles and proportions: known values, symmetries, strangers, and what is found on them."""

import math

import pymanopt.manifolds
import pytest
import torch
from scipy.spatial.transform import Rotation as Turn
from torch.autograd.functional import hessian, jacobian

import nestbo as nb
from nestbo import (
    ArgumentError,
    Box,
    GaBO,
    HDGaBO,
    OffManifoldError,
    Product,
    Quaternion,
    RandomSearch,
    Rotation,
    ShapeError,
    Simplex,
    Torus,
    linalg,
)
from nestbo.kernels import kernel
from nestbo.optimise import lbfgs, trust_region
from nestbo.strategies import default_strategy
from nestbo.testing import STRATEGY_LAWS
from nestbo.testing.manifolds import nearby


def equal(a, b, tolerance=1e-12):
    torch.testing.assert_close(a, torch.as_tensor(b, dtype=a.dtype), rtol=tolerance, atol=tolerance)


def tensor(*values):
    return torch.tensor(values, dtype=torch.float64)


def turned(angle, axis=(1, 2, -2)):
    """A rotation matrix and its quaternion."""
    turn = Turn.from_rotvec(angle * linalg.unit(tensor(*axis)).numpy())
    return torch.tensor(turn.as_matrix()), torch.tensor(turn.as_quat())


ANGLES = [0.0, 1e-9, 0.1, math.pi / 2, 2.0, math.pi - 1e-3, math.pi - 1e-9, math.pi]


class TestRotations:
    @pytest.mark.parametrize("angle", ANGLES)
    def test_distances_are_angles(self, angle):
        (x, p), (y, q) = turned(0.0), turned(angle)
        assert Rotation(3).dist(x, y).item() == pytest.approx(angle, rel=1e-7, abs=1e-14)
        assert Quaternion().dist(p, q).item() == pytest.approx(angle, rel=1e-7, abs=1e-14)
        assert Quaternion().dist(p, -q).item() == pytest.approx(angle, rel=1e-7, abs=1e-14)

    @pytest.mark.parametrize("angle", ANGLES)
    @pytest.mark.parametrize("axis", [(1, 0, 0), (0, -1, 0), (1, 2, -2), (-1, 1e-9, 0)], ids=str)
    def test_log_leads_back_at_every_angle(self, angle, axis, rng):
        rotation = Rotation(3)
        x = rotation.random(rng=rng)
        y = x @ turned(angle, axis)[0]
        v = rotation.log(x, y)
        equal(rotation.exp(x, v), y)
        equal(rotation.norm(x, v), angle, 1e-9)

    def test_scipy_agrees(self, rng):
        x, y = Rotation(3).random(2, 20, rng=rng)
        between = Turn.from_matrix((x.mT @ y).numpy())
        equal(Rotation(3).dist(x, y), between.magnitude(), 1e-10)
        v = x.mT @ Rotation(3).log(x, y)
        equal(torch.stack([v[:, 2, 1], v[:, 0, 2], v[:, 1, 0]], -1), between.as_rotvec(), 1e-9)

    def test_pymanopt_agrees_up_to_its_factor_of_two(self, rng):
        ours, theirs = Rotation(3), pymanopt.manifolds.SpecialOrthogonalGroup(3)
        x = ours.random(rng=rng)
        y = nearby(ours, x, rng)
        assert ours.dist(x, y).item() == pytest.approx(theirs.dist(x.numpy(), y.numpy()) / math.sqrt(2))
        v = ours.log(x, y)
        equal(x.mT @ v, theirs.log(x.numpy(), y.numpy()), 1e-10)

    def test_quaternions_are_the_rotations(self, rng):
        """The same distances and kernels, at corresponding points and tangents."""
        q = Quaternion().random(8, rng=rng)
        x = torch.tensor(Turn.from_quat(q.numpy()).as_matrix())
        equal(Quaternion().pairwise_dist(q, q), Rotation(3).pairwise_dist(x, x), 1e-7)
        equal(torch.cdist(Quaternion().embed(q), Quaternion().embed(q)), torch.cdist(*[Rotation(3).embed(x)] * 2), 1e-7)
        v = 0.3 * Quaternion().random_tangent(q, rng)
        moved = Turn.from_quat(Quaternion().exp(q, v).numpy()).as_matrix()
        equal(Rotation(3).dist(x, torch.tensor(moved)), [0.3] * 8, 1e-9)

    @pytest.mark.parametrize("name", ["matern52", "gaussian", "matern12"])
    def test_kernels_and_distances_do_not_see_the_sign_of_a_quaternion(self, name, rng):
        p, q = Quaternion().random(2, 6, rng=rng)
        k = kernel(name, Quaternion())
        equal(k.correlation(-p, q, k.median_lengthscale), k.correlation(p, q, k.median_lengthscale))
        equal(Quaternion().dist(-p, q), Quaternion().dist(p, q))
        assert Quaternion().dist(p, -p).max() == 0
        equal(Quaternion().log(p, -q), Quaternion().log(p, q))
        v = Quaternion().random_tangent(p, rng)
        equal(Quaternion().transport(p, -p, v), -v)

    def test_projection_gives_no_reflections(self, rng):
        a = torch.randn(50, 3, 3, generator=rng, dtype=torch.float64)
        x = Rotation(3).project(a)
        Rotation(3).check(x, 1e-12)
        others = Rotation(3).random(2000, rng=rng)
        nearest = (others - a.unsqueeze(1)).square().sum((-1, -2)).amin(1)
        assert ((x - a).square().sum((-1, -2)) <= nearest).all()

    def test_random_rotations_are_uniform(self, rng):
        """The mean of a Haar-random matrix is 0, and that of its squared trace 1."""
        x = Rotation(3).random(20000, rng=rng)
        assert x.mean(0).abs().max() < 0.02
        assert x.diagonal(dim1=-2, dim2=-1).sum(-1).square().mean().item() == pytest.approx(1, abs=0.05)

    def test_derivatives_are_finite_half_a_turn_away(self):
        (x, p), (y, q) = turned(0.0), turned(math.pi)
        for space, a, b in ((Rotation(3), x, y), (Quaternion(), p, q)):
            for f in (space.dist, space.sq_dist):
                assert jacobian(lambda z, f=f, b=b: f(z, b), a).isfinite().all()
            assert hessian(lambda z, b=b, space=space: space.sq_dist(z, b), a).isfinite().all()


class TestAngles:
    def test_the_short_way_round(self):
        torus = Torus(2)
        x, y = tensor(3.0, -3.0), tensor(-3.0, 3.0)
        gap = 2 * math.pi - 6
        equal(torus.log(x, y), [gap, -gap])
        equal(torus.dist(x, y), math.sqrt(2) * gap)

    @pytest.mark.parametrize("turns", [-2, 1, 5])
    def test_full_turns_change_nothing(self, turns, rng):
        x, y = Torus(3).random(2, 6, rng=rng)
        away = x + 2 * math.pi * turns
        Torus(3).check(away)
        equal(Torus(3).dist(away, y), Torus(3).dist(x, y), 1e-12)
        k = kernel("matern52", Torus(3))
        equal(k.correlation(away, y, k.median_lengthscale), k.correlation(x, y, k.median_lengthscale))
        equal(Torus(3).project(away), x, 1e-12)

    def test_projection_brings_angles_to_one_turn(self):
        x = Torus(1).project(tensor(-math.pi, math.pi, 3.5 * math.pi, 1e6).unsqueeze(-1))
        assert ((x >= -math.pi) & (x < math.pi)).all()

    def test_a_torus_is_a_product_of_circles(self, rng):
        x, y = Torus(2).random(2, 6, rng=rng)
        circles = Product(nb.Sphere(1), nb.Sphere(1))
        lift = lambda a: torch.stack([a.cos(), a.sin()], -1).flatten(-2)
        equal(Torus(2).dist(x, y), circles.dist(lift(x), lift(y)), 1e-9)


class TestProportions:
    def test_the_distance_is_the_angle_between_square_roots(self, rng):
        x, y = Simplex(4).random(2, 50, rng=rng)
        wanted = (x.sqrt() * y.sqrt()).sum(-1).clamp(max=1).acos()
        equal(Simplex(4).dist(x, y), wanted, 2e-3)
        corners = torch.eye(3, dtype=torch.float64)
        equal(Simplex(2).pairwise_dist(corners, corners), math.pi / 2 * (1 - corners), 2e-3)

    def test_random_proportions_are_uniform_on_the_orthant(self, rng):
        x = Simplex(2).random(20000, rng=rng)
        wanted = (torch.eye(3) * 2 + 1) / 15  # second moments of Dirichlet(½, ½, ½)
        equal(x.mT @ x / 20000, wanted, 0.01)

    @pytest.mark.parametrize(
        ("x", "wanted"),
        [
            ((0.2, 0.3, 0.5), (0.2, 0.3, 0.5)),
            ((20.0, 30.0, 50.0), (0.2, 0.3, 0.5)),
            ((1e300, 0.0, 1e300), (0.5, 0.0, 0.5)),
            ((-1.0, 1.0, 3.0), (0.0, 0.25, 0.75)),
            ((-1.0, -2.0, 0.0), (1 / 3, 1 / 3, 1 / 3)),
            ((0.0, 0.0, 1.0), (0.0, 0.0, 1.0)),
        ],
        ids=str,
    )
    def test_projection(self, x, wanted):
        equal(Simplex(2).project(tensor(*x)), wanted)

    def test_everything_is_finite_at_a_corner(self, rng):
        simplex, x = Simplex(3), torch.eye(4, dtype=torch.float64)[0]
        v = simplex.random_tangent(x, rng)
        y = simplex.random(rng=rng)
        equal(simplex.norm(x, v), 1.0)
        equal(simplex.exp(x, simplex.log(x, y)), y, 1e-9)
        equal(simplex.exp(y, simplex.log(y, x)), x, 1e-9)
        assert jacobian(lambda z: simplex.dist(z, y), x).isfinite().all()
        assert jacobian(lambda z: simplex.sq_dist(z, y), x).isfinite().all()
        equal(jacobian(lambda z: simplex.sq_dist(z, x), x), torch.zeros(4))

    @pytest.mark.parametrize("optimise", [lbfgs, trust_region], ids=lambda f: f.__name__)
    @pytest.mark.parametrize(
        ("target", "wanted"),
        [
            ((0.5, 0.25, 0.25), (0.5, 0.25, 0.25)),
            ((0.8, 0.4, -0.2), (0.7, 0.3, 0.0)),
            ((2.0, 0.1, -0.5), (1.0, 0.0, 0.0)),
            ((0.3, 0.7, 0.0), (0.3, 0.7, 0.0)),
        ],
        ids=["inside", "on an edge", "in a corner", "flat on an edge"],
    )
    def test_optima_with_zero_proportions_are_reached(self, optimise, target, wanted, rng):
        """From everywhere, corners included."""
        starts = torch.cat([Simplex(2).random(6, rng=rng), torch.eye(3, dtype=torch.float64)])
        found = optimise(lambda x: (x - tensor(*target)).square().sum(-1), Simplex(2), starts)
        equal(found.point, tensor(*wanted).expand(9, 3), 1e-4)
        assert (Simplex(2).violation(found.point) == 0).all()

    @pytest.mark.parametrize("optimise", [lbfgs, trust_region], ids=lambda f: f.__name__)
    def test_a_search_leaves_the_boundary(self, optimise):
        """A function of square roots, as models are, has a slope there."""
        inside = tensor(0.2, 0.3, 0.5)
        start = tensor(1.0, 0.0, 0.0)
        found = optimise(lambda x: Simplex(2).sq_dist(x, inside), Simplex(2), start)
        equal(found.point, inside, 1e-4)


class TestMistakes:
    @pytest.mark.parametrize(
        ("space", "x", "parts"),
        [
            (Rotation(3), torch.zeros(4), ["(3, 3)", "(4,)", "Quaternion()"]),
            (Quaternion(), torch.zeros(3, 3), ["(4,)", "(3, 3)", "Rotation(3)"]),
            (Torus(2), torch.zeros(3), ["(2,)", "(3,)", "Torus(3)"]),
            (Simplex(3), torch.zeros(3), ["(4,)", "(3,)", "For 3 proportions use Simplex(2)"]),
        ],
        ids=repr,
    )
    def test_wrong_shape(self, space, x, parts):
        with pytest.raises(ShapeError) as error:
            space.check(x)
        assert all(part in str(error.value) for part in parts)

    @pytest.mark.parametrize(
        ("space", "x", "parts"),
        [
            (Rotation(3), -torch.eye(3), ["its determinant is -1, it must be 1", ".project"]),
            (Rotation(3), 2 * torch.eye(3), ["its column 0 has the norm 2, it must be 1", ".project"]),
            (Quaternion(), [1.0, 1.0, 0.0, 0.0], ["its norm is 1.414, it must be 1", ".project"]),
            (Simplex(2), [0.5, 0.5, 0.1], ["its proportions sum to 1.1, the sum must be 1", ".project"]),
            (Simplex(2), [0.7, 0.5, -0.2], ["its proportion 2 is -0.2, it must be at least 0", ".project"]),
        ],
        ids=repr,
    )
    def test_off_the_space(self, space, x, parts):
        with pytest.raises(OffManifoldError) as error:
            space.check(x)
        assert all(part in str(error.value) for part in parts)

    @pytest.mark.parametrize("n", [2, 4, 0, "3", None, True])
    def test_other_rotations(self, n):
        with pytest.raises(ArgumentError, match=r"Rotation\(3\) holds the rotations of space, got .*Torus\(1\)"):
            Rotation(n)

    @pytest.mark.parametrize("family", [Torus, Simplex])
    @pytest.mark.parametrize("n", [0, -1, 2.0, "3", None, True])
    def test_impossible_sizes(self, family, n):
        with pytest.raises(ArgumentError, match=r"whole number of at least 1, got"):
            family(n)

    def test_methods_in_coordinates_say_that_they_do_not_work_here(self):
        with pytest.raises(ArgumentError, match=r"spheres, SPD matrices and boxes, got Simplex\(2\). Use GaBO\(\)"):
            nb.Study(Simplex(2), nb.EuclideanBO())
        with pytest.raises(ArgumentError, match="no nested spaces inside"):
            nb.Study(Torus(12), HDGaBO(latent_dim=2))


@pytest.mark.parametrize("law", STRATEGY_LAWS[:3], ids=lambda law: law.__name__)
@pytest.mark.parametrize("method", [GaBO(), RandomSearch()], ids=repr)
def test_methods_obey_their_laws_on_a_product(method, law, rng):
    law(method, Product(Quaternion(), Torus(1), Simplex(1)), rng)


MATRIX, QUATERNION = turned(1.4, (0.4, -1.2, 0.7))
OPTIMA = {
    Rotation(3): MATRIX,
    Quaternion(): QUATERNION,
    Torus(2): tensor(3.1, -2.0),
    Simplex(2): tensor(0.7, 0.3, 0.0),
    Product(Torus(1), Simplex(1), Box(0, 1)): tensor(-3.0, 1.0, 0.0, 0.5),
}


@pytest.mark.parametrize("space", OPTIMA, ids=repr)
def test_gabo_finds_a_known_optimum(space):
    """Half a kernel's distance off at first, less than a tenth of it in the end."""
    value = lambda x: float((space.embed(x) - space.embed(OPTIMA[space])).square().sum())
    result = nb.minimize(value, space, strategy=GaBO(), budget=20 if space == Rotation(3) else 14, seed=0)
    assert isinstance(default_strategy(space), GaBO)
    assert result.success
    assert result.fun == value(result.x)
    assert space.dist(result.x, OPTIMA[space]) < 0.1 * space.typical_distance


@pytest.mark.parametrize("space", [Torus(12), Simplex(11), Product(Rotation(3), nb.Sphere(12))], ids=repr)
def test_the_default_method_works_in_many_dimensions(space):
    study = nb.Study(space, seed=0)
    assert isinstance(study.strategy, HDGaBO)
    study.run(lambda x: float(space.embed(x).sum()), 7, progress=False)
    space.check(study.ask().x)
    assert study.models()


@pytest.mark.parametrize("space", OPTIMA, ids=repr)
def test_studies_are_stored_drawn_and_read_back(space, tmp_path):
    from nestbo import plots

    with nb.Study(space, GaBO(initial=4), seed=0, store=tmp_path / "study.db") as study:
        study.run(lambda x: float(space.embed(x).sum()), 6, progress=False)
        best = study.best.x
    with nb.Study.load(tmp_path / "study.db") as study:
        assert study.space == space
        assert torch.equal(study.best.x, best)
        for kind in ("convergence", "surrogate", "predictions"):
            assert plots.draw(study, kind) is not None
