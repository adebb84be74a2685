"""Stock ``optimize_acqf`` over manifolds."""

import pytest
import torch
from botorch.acquisition import LogExpectedImprovement, qLogExpectedImprovement
from botorch.acquisition.objective import GenericMCObjective
from botorch.optim import optimize_acqf as stock_optimize_acqf
from botorch.sampling import SobolQMCNormalSampler

import nestbo.botorch
from nestbo import SPD, Box, Choice, Integer, Product, Sphere
from nestbo.kernels import kernel
from nestbo.optimise import lbfgs, trust_region
from nestbo.surrogate import Data, Description, fit

SPACES = [Sphere(4), SPD(2, eigenvalues=(0.1, 5)), Product(Sphere(2), SPD(2, eigenvalues=(0.1, 5)))]
spaces = pytest.mark.parametrize("space", SPACES, ids=repr)


@pytest.fixture
def model(space, rng):
    """A process of one run without a run axis, as BoTorch's own models have it."""
    x = space.random(15, rng=rng)
    y = space.embed(x).sum(-1).sin()
    gp = fit(Description(kernel("matern52", space)), Data(x.unsqueeze(0), y.unsqueeze(0), [rng])).gp
    parts = (gp.x, gp.z, gp.lengthscale, gp.mean, gp.scale, gp.noise)
    return type(gp)(gp.kernel, *(part[0] for part in parts))


def joint_improvement(model):
    objective = GenericMCObjective(lambda samples, X=None: -samples[..., 0])
    sampler = SobolQMCNormalSampler(torch.Size([64]), seed=0)
    return qLogExpectedImprovement(model, -model.z.min(), sampler=sampler, objective=objective)


def random_points(space, *batch, rng):
    return space.random(*batch, rng=rng).flatten(-len(space.point_shape))


@spaces
def test_one_point(space, model, rng):
    acquisition = LogExpectedImprovement(model, model.z.min(), maximize=False)
    x, value = nestbo.botorch.optimize_acqf(acquisition, space)
    assert x.shape == (1, Product(space).point_shape[0])
    space.check(x.unflatten(-1, space.point_shape), 1e-9)
    assert value.item() == pytest.approx(acquisition(x.unsqueeze(0)).item(), rel=1e-9)
    assert value.item() >= acquisition(random_points(space, 2000, 1, rng=rng)).max().item()


@spaces
@pytest.mark.parametrize("sequential", [True, False], ids=["sequential", "joint"])
def test_three_points(space, model, sequential, rng):
    acquisition = joint_improvement(model)
    x, value = nestbo.botorch.optimize_acqf(
        acquisition, space, q=3, num_restarts=3, raw_samples=32, sequential=sequential
    )
    points = x.unflatten(-1, space.point_shape)
    assert x.shape == (3, Product(space).point_shape[0])
    space.check(points, 1e-9)
    assert (space.pairwise_dist(points, points) + 10 * torch.eye(3)).min() > 1e-2
    acquisition.set_X_pending(None)
    joint = acquisition(x.unsqueeze(0)).item()
    assert joint >= acquisition(random_points(space, 500, 3, rng=rng)).max().item()
    assert value.numel() == (3 if sequential else 1)


def test_the_pieces_fit_into_the_stock_call(rng):
    """With another optimiser, and all restarts returned."""
    space, target = Sphere(4), Sphere(4).random(rng=rng)
    x, value = stock_optimize_acqf(
        lambda x: (x @ target).amax(-1),
        torch.tensor([[-1e10], [1e10]], dtype=torch.float64).expand(2, 5),
        q=1,
        num_restarts=4,
        raw_samples=32,
        options={"seed": 3},
        ic_generator=nestbo.botorch.ic_generator(space),
        gen_candidates=nestbo.botorch.gen_candidates(space, optimiser=trust_region),
        return_best_only=False,
    )
    assert x.shape == (4, 1, 5)
    torch.testing.assert_close(x[:, 0], target.expand(4, 5), rtol=0, atol=1e-4)
    torch.testing.assert_close(value, torch.ones(4).double(), rtol=0, atol=1e-8)


def test_initial_conditions_are_the_best_of_seeded_draws():
    space = Sphere(2)
    generate = nestbo.botorch.ic_generator(space)
    bounds = torch.zeros(2, 3, dtype=torch.float64)
    first = lambda x: torch.where(x[..., 0, 0] > 0, x[..., 0, 0], torch.nan)
    draw = lambda seed: generate(first, bounds, 2, 5, raw_samples=200, options={"seed": seed})
    starts = draw(0)
    assert starts.shape == (5, 2, 3)
    space.check(starts, 1e-12)
    assert starts[:, 0, 0].min() > 0.9
    assert torch.equal(draw(0), starts)
    assert not torch.equal(draw(1), starts)


def test_fewer_draws_than_restarts_are_all_taken():
    starts = nestbo.botorch.ic_generator(Sphere(2))(lambda x: x[..., 0, 0], torch.zeros(2, 3), 1, 5, raw_samples=3)
    assert starts.shape == (3, 1, 3)


def test_torchs_random_state_is_left_alone(rng):
    before = torch.get_rng_state()
    target = Sphere(4).random(rng=rng)
    nestbo.botorch.optimize_acqf(lambda x: (x @ target).amax(-1), Sphere(4), seed=4)
    assert torch.equal(before, torch.get_rng_state())


def test_refinement_never_worsens_a_start(rng):
    space = SPD(2, eigenvalues=(0.1, 5))
    starts = space.random(6, 2, rng=rng).flatten(-2)
    acquisition = lambda x: -x.unflatten(-1, (2, 2)).logdet().square().sum(-1)
    for optimiser in (lbfgs, trust_region):
        x, value = nestbo.botorch.gen_candidates(space, optimiser=optimiser)(starts, acquisition)
        assert (value >= acquisition(starts)).all()
        torch.testing.assert_close(acquisition(x), value)


def test_separate_values_are_stepped_through():
    """The best point of a product of a sphere, whole numbers and a choice, for one candidate and for two together."""
    from botorch.acquisition import AcquisitionFunction

    space = Product(Sphere(2), Integer(0, 60), Choice("a", "b", "c"))

    class Hill(AcquisitionFunction):
        def forward(self, x):
            """Largest at the first axis, 41 and the third choice."""
            return (x[..., 0] - (x[..., 3] - 41).abs() / 60 + (x[..., 4] == 2)).sum(-1)

    for q in (1, 2):
        found, value = nestbo.botorch.optimize_acqf(Hill(model=None), space, q=q, num_restarts=4, raw_samples=64)
        assert value > 1.97 * q
        space.check(found)


@pytest.mark.parametrize("space", [Sphere(3), SPD(2), Product(Sphere(2), SPD(2))], ids=repr)
def test_a_warped_kernel_begins_as_the_isotropic_one(space, rng):
    x = space.random(6, rng=rng).flatten(1)
    warped = nestbo.botorch.WarpedKernel(space)
    gram = warped(x, x).to_dense()
    seen = warped.metric.sight.coordinates(x.unflatten(-1, space.point_shape))
    torch.testing.assert_close(gram, warped.inner(seen, seen).to_dense())
    torch.testing.assert_close(warped(x, x, diag=True), torch.ones(6).double())
    assert torch.linalg.eigvalsh(gram).min() > -1e-9


def test_a_stock_model_learns_the_metric(rng):
    """A function of the first of four coordinates: the metric stretches it."""
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import SingleTaskGP
    from gpytorch.kernels import ScaleKernel
    from gpytorch.mlls import ExactMarginalLogLikelihood

    box = Box([0.0] * 4, [1.0] * 4)
    x = box.random(40, rng=rng)
    warped = nestbo.botorch.WarpedKernel(box)
    gp = SingleTaskGP(x, (6 * x[:, :1]).sin(), covar_module=ScaleKernel(warped))
    fit_gpytorch_mll(ExactMarginalLogLikelihood(gp.likelihood, gp))
    assert warped.factor.norm(dim=0).argmax() == 0
    assert warped.entries.detach().abs().max() > 0.1
