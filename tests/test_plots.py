"""Pictures show the data that they are given, and every study gives one."""

import dataclasses
import functools
import io
import itertools
import json
import math
import re
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from matplotlib.image import imread
from scipy.linalg import subspace_angles
from scipy.stats import norm

import nestbo as nb
from nestbo import plots
from nestbo.manifolds import MANIFOLDS
from nestbo.plots.matrices import cone
from nestbo.plots.sensitivity import _slopes, directions, parts, shares
from nestbo.plots.sphere import project
from nestbo.plots.style import scale
from nestbo.plots.subspace import principal_angles
from nestbo.plots.view import View

EXAMPLES = Path(__file__).parent.parent / "examples"
SPACES = {
    "circle": nb.Sphere(1),
    "sphere": nb.Sphere(2),
    "sphere5": nb.Sphere(5),
    "spd2": nb.SPD(2),
    "spd2-bounded": nb.SPD(2, eigenvalues=(0.1, 4.0)),
    "spd3": nb.SPD(3, eigenvalues=(0.001, 5.0)),
    "product": nb.Product(nb.Sphere(2), nb.Box(0, 1)),
    "grassmann": nb.Grassmann(4, 2),
}
VALUES = (3.0, 1.0, None, 2.0, 0.5, 4.0, -0.25, 1.5)  # None fails
TOLD = [value for value in VALUES if value is not None]


def study(space, values=VALUES, strategy=None, direction="minimize"):
    """A study with these values at random points."""
    made = nb.Study(space, strategy or nb.GaBO(), direction=direction)
    points = nb.Study(space, nb.RandomSearch(), seed=3)
    for value in values:
        x = points.ask().x
        if value is not None:
            made.add(x, value)
        else:
            (index,) = made._store.reserve(1, "a call")
            made._store.ask([nb.Trial(index, x)], "a call", running=False, revision=made._renewed().revision)
            made.tell(index, failed="on purpose")
    return made


NESTED = {
    "circle": (nb.Sphere(4), nb.HDGaBO(1)),
    "sphere": (nb.Sphere(5), nb.HDGaBO(2)),
    "spd2": (nb.SPD(3, eigenvalues=(0.1, 4.0)), nb.HDGaBO(2)),
    "paper": (nb.SPD(3), nb.HDGaBO.paper(2)),
    "sphere3": (nb.Sphere(4), nb.HDGaBO(3)),
    "product": (nb.Product(nb.Sphere(3), nb.SPD(2), nb.Box(0, 1)), nb.HDGaBO((1, None, None))),
}


@functools.cache
def nested(name):
    """A short run in which each arm has its turn, with a failure."""
    space, strategy = NESTED[name]
    made = nb.Study(space, dataclasses.replace(strategy, metric="isotropic", initial=3))

    def objective(x):
        if len(made.history) == 3:
            raise RuntimeError("the third one breaks down")
        return x.flatten()[0].item() + x.flatten()[1].item() ** 2

    return made.run(objective, 9, progress=False)


def dots(figure, label):
    """Where the marks with a label are, over all panels: (n, 2) or, in a cone, (n, 3)."""
    found = [c for axes in figure.axes for c in axes.collections if str(c.get_label()).startswith(label)]
    parts = [np.stack(c._offsets3d, -1) if hasattr(c, "_offsets3d") else c.get_offsets() for c in found]
    return np.concatenate([np.ma.getdata(part) for part in parts]) if parts else np.zeros((0, 2))


def texts(figure):
    inside = [text.get_text() for axes in figure.axes for text in (*axes.texts, axes.title, axes._left_title)]
    return " ".join([figure.get_suptitle(), *inside])


def pixels(figure):
    """The picture as saved, (height, width, 4)."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=50)
    buffer.seek(0)
    return imread(buffer)


@pytest.mark.parametrize("kind", plots.DRAWINGS)
@pytest.mark.parametrize("name", SPACES)
def test_every_kind_on_every_space_has_ink(name, kind):
    figure = plots.draw(study(SPACES[name]), kind)
    assert pixels(figure)[..., :3].std() > 0.01
    assert "GaBO on" in figure.get_suptitle()
    assert "8 evaluations, 1 failed" in figure.get_suptitle().replace("\n", " ")


def test_a_quaternion_is_drawn_by_its_axes():
    turn = torch.tensor([math.cos(0.3), 0.0, 0.0, math.sin(0.3)], dtype=torch.float64)  # by 0.6 about the third axis
    made = nb.Study(nb.Quaternion(), nb.RandomSearch())
    made.add(turn, 1.0)
    (axes,) = plots.draw(made, "best").axes
    ends = {text.get_text(): text.get_position_3d() for text in axes.texts if text.get_text().startswith("R")}
    wanted = 1.12 * np.array([math.cos(0.6), math.sin(0.6), 0.0])
    np.testing.assert_allclose(ends["Rx₁"], wanted, atol=1e-12)
    assert "real part first" in texts(plots.draw(made, "best"))


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_convergence_shows_values_failures_and_the_best_so_far(direction):
    figure = plots.draw(study(nb.Sphere(2), direction=direction))
    assert dots(figure, "value").tolist() == [[k, v] for k, v in enumerate(VALUES) if v is not None]
    assert dots(figure, "failed")[:, 0].tolist() == [2]
    curve = figure.axes[0].lines[0].get_ydata().tolist()
    assert curve == ([3, 1, 1, 1, 0.5, 0.5, -0.25, -0.25] if direction == "minimize" else [3, 3, 3, 3, 3, 4, 4, 4])
    assert dots(figure, "best").tolist() == ([[6, -0.25]] if direction == "minimize" else [[5, 4]])


def test_values_over_many_powers_of_ten_get_a_logarithm():
    scales = [
        plots.draw(study(nb.Sphere(2), values, nb.RandomSearch())).axes[0].get_yscale()
        for values in ((1.0, 2.0, 3.0), (1.0, 10.0, 5e3), (-3.0, -2.0, 0.0, 1.0, 5e6))
    ]
    assert scales == ["linear", "log", "symlog"]


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_the_circle_shows_the_model_and_the_evaluations(direction):
    made = study(nb.Sphere(1), direction=direction)
    figure = plots.draw(made, "surrogate")
    right = figure.axes[1]
    told = [trial for trial in made.history if trial.status == "told"]
    angles = [np.degrees(np.arctan2(*trial.x.flip(0).tolist())) for trial in told]
    np.testing.assert_allclose(dots(figure, "evaluation"), np.stack([angles, TOLD], -1))
    mean = next(line for line in right.lines if line.get_label() == "mean")
    sign = 1 if direction == "minimize" else -1
    turn = torch.from_numpy(np.radians(mean.get_xdata()))
    wanted = sign * made.model().predict(torch.stack([turn.cos(), turn.sin()], -1))
    np.testing.assert_allclose(mean.get_ydata(), wanted)
    band = next(c for c in right.collections if c.get_label() == "95 % band").get_paths()[0].vertices
    assert band[:, 1].min() < wanted.min()
    assert band[:, 1].max() > wanted.max()


def test_the_map_of_the_sphere_shows_each_evaluation_once():
    made = study(nb.Sphere(2))
    figure = plots.draw(made, "surrogate")
    marks = dots(figure, "evaluation")
    assert len(marks) == len(TOLD)
    assert len(dots(figure, "failed")) == 1
    assert len(dots(figure, "best")) == 1
    shown = np.concatenate([c.get_array() for axes in figure.axes[:2] for c in axes.collections[-3:-2]])
    assert sorted(shown) == sorted(TOLD)
    radius = np.linalg.norm(marks, axis=1)
    k = int(made.best.x.abs().argmax())
    heights = [abs(trial.x[k].item()) for trial in made.history if trial.status == "told"]
    np.testing.assert_allclose(sorted(1 - radius**2), sorted(heights), atol=1e-12)  # equal areas


def test_the_projection_keeps_directions_and_hemispheres():
    at, here = project(np.array([[1.0, 0, 0], [0, 0, 1], [0, 0, -1], [0, 1, 0]]), np.eye(3))
    np.testing.assert_allclose(at, [[1, 0], [0, 0], [0, 0], [0, 1]], atol=1e-12)
    assert here.tolist() == [True, True, False, True]


def test_matrices_are_ellipses_and_points_in_their_cone():
    made = study(nb.SPD(2))
    figure = plots.draw(made, "surrogate")
    x = torch.stack([trial.x for trial in made.history if trial.status == "told"])
    np.testing.assert_allclose(dots(figure, "evaluation"), cone(x.numpy()).T)
    ellipses = next(c for c in figure.axes[0].collections if hasattr(c, "get_widths"))
    values, vectors = torch.linalg.eigh(x)
    ratio = ellipses.get_heights() / ellipses.get_widths()
    np.testing.assert_allclose(ratio, (values[:, 0] / values[:, 1]).sqrt())
    turn = np.radians(ellipses.get_angles())
    long = np.stack([np.cos(turn), np.sin(turn)], -1)
    np.testing.assert_allclose(np.abs((long * vectors[..., 1].numpy()).sum(-1)), 1)


@pytest.mark.parametrize("name", ["sphere5", "spd3", "product", "grassmann"])
def test_other_spaces_show_distances_and_the_model_along_geodesics(name):
    made = study(SPACES[name])
    figure = plots.draw(made, "surrogate")
    x = torch.stack([trial.x for trial in made.history if trial.status == "told"])
    distance = made.space.dist(x, made.best.x)
    np.testing.assert_allclose(dots(figure, "evaluation"), np.stack([distance, TOLD], -1))
    panel = figure.axes[1]
    assert len(panel.lines) == 3
    middle = made.model().predict(made.best.x).item()
    for line in panel.lines:
        assert line.get_ydata()[np.argmin(abs(line.get_xdata()))] == pytest.approx(middle, abs=1e-6)


def test_directions_are_orthonormal_and_the_widest_comes_first():
    from nestbo.plots.geodesics import principal_directions

    view = View(study(SPACES["spd3"]))
    best = view.best.x
    v = torch.stack(principal_directions(view))
    gram = view.space.inner(best, v[:, None], v[None])
    torch.testing.assert_close(gram, torch.eye(3, dtype=torch.float64), atol=1e-6, rtol=0)
    spread = view.space.inner(best, v[:, None], view.space.log(best, view.points(view.told))[None]).square().sum(-1)
    assert spread.tolist() == sorted(spread.tolist(), reverse=True)


def test_predictions_show_each_value_with_its_interval():
    made = study(nb.Sphere(2))
    numbers = plots.summarise(made)["leave_one_out"]
    left, right = plots.draw(made, "predictions").axes
    groups = left.containers
    points = np.concatenate([group.lines[0].get_xydata() for group in groups])
    wanted = np.stack([numbers["observed"], numbers["predicted"]], -1)
    np.testing.assert_allclose(sorted(points.tolist()), sorted(wanted.tolist()))
    segments = np.concatenate([bars.get_segments() for group in groups for bars in group.lines[2]])
    bars = [[x, low, high] for (x, low), (_, high) in segments]
    wanted = np.stack([numbers["observed"], numbers["low"], numbers["high"]], -1)
    np.testing.assert_allclose(sorted(bars), sorted(wanted.tolist()))
    levels, share = right.lines[1].get_data()
    half = np.mean(np.array(numbers["standardised"]) <= norm.ppf(0.75))
    assert share[np.argmin(abs(levels - 0.5))] == pytest.approx(half)


@pytest.mark.parametrize("kind", plots.DRAWINGS)
@pytest.mark.parametrize("name", NESTED)
def test_every_kind_of_a_nested_model_has_ink(name, kind, request):
    if name in ("circle", "sphere3", "paper") and not request.config.getoption("--full"):
        pytest.skip("a long version: --full")
    figure = plots.draw(nested(name), kind)
    assert pixels(figure)[..., :3].std() > 0.01
    assert "9 evaluations, 1 failed" in figure.get_suptitle().replace("\n", " ")


@pytest.mark.parametrize("kind", ["latent", "subspace", "reconstruction"])
def test_a_strategy_that_learns_no_nested_space_says_so(kind):
    for strategy in (nb.GaBO(), nb.RandomSearch(), nb.HDGaBO(2)):
        assert "learns no nested space on Sphere(2)" in texts(plots.draw(study(nb.Sphere(2), strategy=strategy), kind))


@pytest.mark.parametrize("name", ["circle", "sphere", "spd2", "paper"])
def test_the_latent_picture_shows_projections_and_the_mean_there(name):
    made = nested(name)
    model = next(m for key, m in made.models().items() if key.startswith("nested"))
    x = torch.stack([trial.x for trial in made.history if trial.status == "told"])
    z = model.mapping.project(x)
    figure = plots.draw(made, "latent")
    assert f"on the {model.mapping.latent} learned in {made.space}" in figure.get_suptitle().replace("\n", " ")
    marks = dots(figure, "evaluation")
    assert len(marks) == len(x)
    if name == "circle":
        np.testing.assert_allclose(marks[:, 0], torch.atan2(z[:, 1], z[:, 0]).rad2deg())
        angle = np.radians(figure.axes[1].lines[0].get_xdata())
        around = torch.from_numpy(np.stack([np.cos(angle), np.sin(angle)], -1))
        mean, _ = model.gp.moments(around)
        wanted = model.outputs.inverse(mean)
        np.testing.assert_allclose(figure.axes[1].lines[0].get_ydata(), wanted, rtol=1e-6, atol=1e-8)
    elif name != "sphere":
        np.testing.assert_allclose(marks, cone(z.numpy()).T, atol=1e-9)
    assert any("z₁" in text for text in (texts(figure), *(axes.get_xlabel() for axes in figure.axes)))


@pytest.mark.parametrize("name", ["sphere3", "product"])
def test_a_latent_space_without_a_picture_is_named(name):
    assert "Here it is" in texts(plots.draw(nested(name), "latent"))


def test_loadings_are_those_of_the_last_fit():
    made = nested("sphere")
    basis = made.models()["nested:2"].mapping.basis
    bars = [bar.get_width() for bar in plots.draw(made, "subspace").axes[2].patches]
    np.testing.assert_allclose(bars, basis.square().sum(-1))
    assert sum(bars) == pytest.approx(3)


def test_angles_are_those_between_the_fits_of_the_notes():
    made = nested("sphere")
    lines = {line.get_label(): line for line in plots.draw(made, "subspace").axes[0].lines}
    last = made.models()["nested:2"].mapping.basis.numpy()
    fits = {k: t.memory.fits["nested:2"] for k, t in enumerate(made.history) if "nested:2" in t.memory.fits}
    places, bases = list(fits), [*(np.array(fit.basis).reshape(last.shape) for fit in fits.values()), last]
    steps = [np.degrees(subspace_angles(a, b)).max() for a, b in itertools.pairwise(bases)]
    away = [np.degrees(subspace_angles(a, bases[-1])).max() for a in bases]
    assert lines["largest angle to the last fit"].get_xdata().tolist() == [*places, 9]
    np.testing.assert_allclose(lines["largest angle to the last fit"].get_ydata(), away, atol=1e-9)
    np.testing.assert_allclose(lines["largest angle to the fit before"].get_ydata(), steps, atol=1e-9)


def test_small_principal_angles_keep_their_digits():
    turn = 1e-11
    a = torch.eye(4, dtype=torch.float64)[:, :2]
    b = torch.tensor([[1, 0], [0, np.cos(turn)], [0, np.sin(turn)], [0, 0]], dtype=torch.float64)
    np.testing.assert_allclose(principal_angles(a, b), np.degrees([turn, 0]), rtol=1e-12, atol=1e-30)
    np.testing.assert_allclose(principal_angles(a, a.flip(0)), [90, 90])


@pytest.mark.parametrize("name", ["sphere", "spd2"])
def test_reconstruction_shows_the_distance_to_the_lifted_projection(name):
    made = nested(name)
    mapping = made.models()["nested:2"].mapping
    x = made.history.points
    fitted = mapping.fit_lift(x)
    wanted = made.space.dist(x, fitted.lift(fitted.project(x)))
    figure = plots.draw(made, "reconstruction")
    marks = np.concatenate([dots(figure, label) for label in ("start", "from the nested space", "from elsewhere")])
    np.testing.assert_allclose(marks[np.argsort(marks[:, 0])], np.stack([range(9), wanted], -1), rtol=1e-6)
    assert len(dots(figure, "start")) == 3
    first = next(k for k, trial in enumerate(made.history) if "nested:2" in trial.memory.fits)
    flat = torch.tensor(made.history[first].memory.fits["nested:2"].basis, dtype=torch.float64)
    basis = flat.reshape(mapping.basis.shape)
    then = type(mapping).at(basis, made.space).fit_lift(x[:first])
    away = made.space.dist(x[:first], then.lift(then.project(x[:first])))
    line = next(line for line in figure.axes[0].lines if str(line.get_label()).startswith("root mean square"))
    assert line.get_xdata()[0] == first
    assert line.get_ydata()[0] == pytest.approx(away.square().mean().sqrt().item(), rel=1e-4)


def test_arms_show_who_suggested_what():
    made = nested("sphere")
    top, strip, shares, _ = plots.draw(made, "arms").axes
    names = [label.get_text() for label in strip.get_yticklabels()]
    assert names == ["start", *(standing.arm for standing in made.standings())]
    marks = [
        (int(k), names[int(row)])
        for c in strip.collections
        if c.get_label() in ("no improvement", "a new best", "failed")
        for k, row in c.get_offsets()
    ]
    assert sorted(marks) == [(k, trial.memory.arm or "start") for k, trial in enumerate(made.history)]
    better, best = [], np.inf
    for k, trial in enumerate(made.history):
        if trial.value is not None and trial.value < best:
            best = trial.value
            better.append([k, best])
    new = next(c for c in top.collections if c.get_label() == "a new best")
    np.testing.assert_allclose(new.get_offsets(), better)
    widths = [bar.get_width() for bar in shares.patches]
    assert widths == pytest.approx([100 * standing.share for standing in made.standings()])


def test_a_strategy_without_arms_says_so():
    assert "has no models" in texts(plots.draw(study(nb.Sphere(2), strategy=nb.RandomSearch()), "arms"))


def test_a_summary_has_the_standings_of_models_that_compete():
    made = nb.Study(nb.Sphere(2), nb.GaBO(initial=3), seed=0).run(lambda x: float(x[0]), 6, progress=False)
    numbers = plots.summarise(made)["arms"]
    assert numbers == [dataclasses.asdict(standing) for standing in made.standings()]
    assert sum(arm["share"] for arm in numbers) == pytest.approx(1)
    assert plots.summarise(study(nb.Sphere(2)))["arms"] == []
    assert plots.summarise(nb.Study(*NESTED["sphere"]))["arms"] == []


def test_a_summary_is_what_one_computes_by_hand():
    numbers = plots.summarise(study(nb.Sphere(2)))
    assert numbers["counts"] == {"told": 7, "failed": 1, "asked": 0}
    assert numbers["values"] == list(VALUES)
    assert numbers["best_so_far"] == [3, 1, 1, 1, 0.5, 0.5, -0.25, -0.25]
    assert numbers["best"]["index"] == 6
    assert numbers["best"]["value"] == -0.25
    assert numbers["times"]["first_asked"] <= numbers["times"]["last_told"]
    assert (numbers["space"], numbers["strategy"], numbers["direction"]) == ("sphere:2", "gabo", "minimize")
    assert json.loads(json.dumps(numbers)) == numbers


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_leaving_one_out_is_conditioning_on_the_others(direction):
    """The closed form against a process that never saw the value, with the same parameters."""
    made = study(nb.Sphere(2), [v for v in VALUES if v is not None], direction=direction)
    numbers = plots.summarise(made)["leave_one_out"]
    model, sign = made.model(), 1 if direction == "minimize" else -1
    gp = model.gp
    for k in range(len(TOLD)):
        rest = [j for j in range(len(TOLD)) if j != k]
        gram = gp.scale * (gp.kernel.correlation(gp.x, gp.x, gp.lengthscale) + gp.noise * torch.eye(len(TOLD)))
        weights = torch.linalg.solve(gram[rest][:, rest], gram[rest, k])
        mean = gp.mean + weights @ (gp.z[rest] - gp.mean)
        deviation = (gram[k, k] - weights @ gram[rest, k]).sqrt()
        ends = sorted(sign * model.outputs.inverse(mean + d * deviation).item() for d in (-1.959964, 1.959964))
        assert numbers["predicted"][k] == pytest.approx(sign * model.outputs.inverse(mean).item(), rel=1e-6, abs=1e-9)
        assert [numbers["low"][k], numbers["high"][k]] == pytest.approx(ends, rel=1e-5)
    inside = [low <= v <= high for low, v, high in zip(numbers["low"], TOLD, numbers["high"], strict=True)]
    assert numbers["coverage"]["0.95"] == pytest.approx(np.mean(inside))
    errors = np.array(numbers["predicted"]) - TOLD
    assert numbers["error"] == pytest.approx(np.sqrt(np.mean(errors**2)))


@pytest.mark.parametrize("kind", plots.DRAWINGS)
@pytest.mark.parametrize(
    ("values", "said"), [((), "No values yet"), ((None, None), "All 2 evaluations failed")], ids=["none", "failed"]
)
def test_a_study_without_values_says_so(kind, values, said):
    made = study(nb.Sphere(2), values)
    assert said in texts(plots.draw(made, kind))
    numbers = plots.summarise(made)
    assert numbers["best"] is None
    assert numbers["leave_one_out"] is None
    assert numbers["best_so_far"] == [None] * len(values)


@pytest.mark.parametrize("name", ["circle", "sphere", "spd2", "grassmann"])
@pytest.mark.parametrize("values", [(1.0,), (1.0, 2.0), (3.0,) * 4, (1e200, -1e200, 3.0)], ids=str)
def test_few_equal_and_huge_values_are_drawn(name, values, request):
    short = name == "circle" or (name == "spd2" and len(set(values)) == 1)
    if not short and not request.config.getoption("--full"):
        pytest.skip("a long version: --full")
    made = study(SPACES[name], values)
    for kind in plots.DRAWINGS:
        pixels(plots.draw(made, kind))
    few = "Leaving one out needs at least 3 values" in texts(plots.draw(made, "predictions"))
    assert few == (len(values) < 3)


@pytest.mark.parametrize("name", ["circle", "sphere", "spd2", "grassmann"])
def test_a_strategy_without_a_model_shows_its_evaluations(name):
    made = study(SPACES[name], strategy=nb.RandomSearch())
    figure = plots.draw(made, "surrogate")
    pixels(figure)
    assert "fits no model" in texts(figure).replace("\n", " ")
    assert len(dots(figure, "evaluation")) == len(TOLD)
    assert "fits no model" in texts(plots.draw(made, "predictions"))


def test_pending_trials_are_counted():
    made = study(nb.Sphere(2), (1.0, 2.0))
    made.ask()
    assert "2 evaluations, 1 pending" in plots.draw(made).get_suptitle()
    assert plots.summarise(made)["counts"]["asked"] == 1


def test_an_unknown_kind_gets_the_nearest():
    with pytest.raises(nb.ArgumentError, match="Did you mean 'convergence'"):
        plots.draw(study(nb.Sphere(2)), "convergance")


def test_pictures_leave_pyplot_and_settings_alone():
    text = (
        "import sys, matplotlib, nestbo as nb; before = matplotlib.rcParams.copy();"
        "from nestbo import plots; s = nb.Study(nb.SPD(2), nb.RandomSearch());"
        "s.run(lambda x: x[0, 0], 3, progress=False);"
        "[plots.draw(s, kind) for kind in plots.DRAWINGS];"
        "raise SystemExit('matplotlib.pyplot' in sys.modules or matplotlib.rcParams.copy() != before)"
    )
    assert subprocess.run([sys.executable, "-c", text], timeout=120).returncode == 0


@pytest.mark.parametrize("name", ["nested_spheres", "nested_matrices"])
def test_examples_draw_the_nested_spaces(name, tmp_path, monkeypatch):
    wanted = tmp_path / "picture.png"
    monkeypatch.setattr(sys, "argv", [name, str(wanted)])
    runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    assert imread(wanted)[..., :3].std() > 0.01


def test_the_best_point_of_a_product_is_drawn_factor_by_factor():
    space = nb.Product(nb.Sphere(2), nb.Product(nb.SPD(2), nb.Rotation(3)), nb.Torus(2), nb.Box([0, 0], [1, 4]))
    made = plots.draw(study(space, (1.0, 0.5)), "best")
    assert len(made.axes) == 5
    assert "best 0.5 (trial 1)" in made.get_suptitle()


def test_the_ellipse_of_the_best_matrix_is_that_of_its_quadratic_form():
    made = study(nb.SPD(2), (1.0, 0.5))
    outline = plots.draw(made, "best").axes[0].patches[0].get_xy()
    inverse = np.linalg.inv(made.best.x.numpy())
    np.testing.assert_allclose(np.einsum("ni,ij,nj->n", outline, inverse, outline), 1, atol=1e-9)


@pytest.mark.parametrize("space", [cls.samples()[-1] for cls in MANIFOLDS.values()], ids=repr)
@pytest.mark.parametrize("kind", ["best", "surrogate"])
def test_every_space_has_its_pictures(space, kind):
    made = plots.draw(study(space, (1.0, 0.5, 2.0, 0.7)), kind)
    made.savefig(io.BytesIO(), format="png")
    assert len(made.axes) >= 1


def test_what_violates_a_constraint_is_not_the_best():
    made = nb.Study(nb.Sphere(2), nb.GaBO())
    points = nb.Study(nb.Sphere(2), nb.RandomSearch(), seed=3)
    for value, constraint in ((3.0, 1.0), (1.0, -1.0), (2.0, 0.5), (0.5, -0.1)):
        made.add(points.ask().x, value, constraints=constraint)
    figure = plots.draw(made, "convergence")
    np.testing.assert_array_equal(dots(figure, "infeasible"), [[1, 1.0], [3, 0.5]])
    np.testing.assert_array_equal(dots(figure, "best:"), [[2, 2.0]])
    numbers = plots.summarise(made)
    assert numbers["best"]["index"] == 2
    assert numbers["best_so_far"] == [3.0, 3.0, 2.0, 2.0]
    assert "2 infeasible" in View(made).title


class TestImportance:
    def made(self, space, objective, count=40):
        made = nb.Study(space, nb.GaBO())
        for x in space.random(count, rng=torch.Generator().manual_seed(0)):
            made.add(x, float(objective(x)))
        return made

    def test_shares_of_a_sum_are_those_of_its_variances(self):
        space = nb.Box([0.0] * 3, [1.0, 1.0, 10.0], names=("speed", "force", "idle"))
        made = self.made(space, lambda x: x[0] + 2 * x[1])
        first, total = shares(space, made.model())
        assert [share.name for share in first] == ["speed", "force", "idle"]
        for found in (first, total):
            assert [share.value for share in found] == pytest.approx([0.2, 0.8, 0.0], abs=0.03)
            assert all(share.low <= share.value <= share.high for share in found)

    def test_an_interaction_counts_in_the_total_only(self):
        space = nb.Box([-1.0] * 2, [1.0] * 2)
        first, total = shares(space, self.made(space, lambda x: x[0] * x[1]).model())
        assert max(share.value for share in first) < 0.1
        assert min(share.value for share in total) > 0.8

    def test_few_values_leave_much_open(self):
        space, objective = nb.Box([0.0] * 3, [1.0] * 3), lambda x: torch.sin(5 * x[0]) + x[1]
        widths = []
        for count in (5, 60):
            _, total = shares(space, self.made(space, objective, count).model())
            widths.append(sum(share.high - share.low for share in total))
        assert widths[0] > 3 * widths[1]

    def test_parts_of_products(self):
        space = nb.Product(tool=nb.Sphere(2), passes=nb.Integer(1, 8), feed=nb.Box([0.0] * 2, [1.0] * 2))
        found = [(part.name, part.entries) for part in parts(space)]
        assert found == [("tool", (0, 1, 2)), ("passes", (3,)), ("feed[0]", (4,)), ("feed[1]", (5,))]
        figure = plots.importance(self.made(space, lambda x: x[0] + x[3], 8))
        assert len(figure.axes) == 1  # the space has no directions to compare

    @pytest.mark.parametrize("space", [nb.Sphere(5), nb.SPD(3, eigenvalues=(0.1, 5.0)), nb.Grassmann(4, 2)], ids=str)
    def test_slopes_are_those_of_the_mean(self, space):
        made = self.made(space, lambda x: x.flatten()[0] ** 2)
        x = space.random(3, rng=torch.Generator().manual_seed(5))
        v = space.random_tangent(x, torch.Generator().manual_seed(6))
        slopes = _slopes(space, made.model(), x, torch.Generator().manual_seed(7))
        step = 1e-5
        ends, begins = (space.project(space.exp(x, sign * step * v)) for sign in (1, -1))
        along = ((space.embed(ends) - space.embed(begins)) * slopes).sum(-1) / (2 * step)
        expected = (made.model().predict(ends) - made.model().predict(begins)) / (2 * step)
        along, expected = (each / each.abs().max() for each in (along, expected))
        assert torch.allclose(along, expected, rtol=1e-2, atol=1e-2)

    def test_the_direction_that_matters_comes_first(self):
        space = nb.Sphere(5)
        leading, *others = directions(space, (made := self.made(space, lambda x: x[2])).model(), made.history.points)
        assert leading.name.startswith(("+1.00 x2", "−1.00 x2", "+0.99 x2", "−0.99 x2"))
        assert leading.value > 0.8
        assert len(others) == 4

    def test_it_is_in_the_report(self):
        made = self.made(nb.Box([0.0] * 2, [1.0] * 2), lambda x: x[0], 6)
        assert 'data-kind="importance"' in nb.report.page(made)


def test_the_lines_under_each_picture_of_the_docs_make_it(monkeypatch):
    """With six evaluations instead of as many as the docs have."""
    run = nb.Study.run
    monkeypatch.setattr(nb.Study, "run", lambda self, objective, n: run(self, objective, 6, progress=False))
    monkeypatch.setattr(nb.GaBO, "suggest", nb.RandomSearch().suggest)
    text = (Path(__file__).parent.parent / "docs" / "pictures.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```py\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    drawn = []
    monkeypatch.setattr(plots, "draw", lambda study, kind, title: drawn.append(kind))
    names = {"nb": nb, "plots": plots, "torch": torch}
    for block in blocks:
        exec(block, names)
    assert set(drawn) == set(plots.DRAWINGS)
    assert len(drawn) == text.count("](pictures/") - 2  # two are drawn by examples


def test_a_title_of_ones_own_replaces_the_heading():
    figure = plots.draw(study(nb.Sphere(2)), "convergence", title="Ackley's function; the minimum is 0")
    assert figure.get_suptitle() == "Ackley's function; the minimum is 0"


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_a_plateau_has_colours_of_its_own(direction):
    sign = 1.0 if direction == "minimize" else -1.0
    made = study(nb.Sphere(2), [sign * value for value in (0.0, 0.01, 0.02, 0.03, 5.0, 5.2)], direction=direction)
    plateau = sign * np.linspace(5.0, 5.2, 1000)
    colours = scale(View(made), plateau)
    best, begin, end = (colours.norm(sign * value) for value in (0.0, 5.0, 5.2))
    assert abs(end - begin) > 0.4
    assert abs(begin - best) > 0.2
    shares = [colours.cmap(colours.norm(value)) for value in made.history.outcomes.flatten().tolist()]
    assert sum(shares[0][:3]) < sum(shares[-1][:3])  # the darker, the better
