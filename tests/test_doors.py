"""Whatever a user hands in is taken or refused with a sentence: no error of another library comes out."""

import concurrent.futures as futures
import dataclasses
import math
import os
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import torch

import nestbo as nb
from nestbo import plots
from nestbo.errors import shown
from nestbo.report import Watch
from nestbo.strategies import STRATEGIES

HUGE = 10**5000  # Python refuses to write it out
ODD = {
    "a number that is no float": 10**400,
    "a number that cannot be written": HUGE,
    "the same below zero": -HUGE,
    "more than 64 bits": 2**64,
    "more than 31 bits": 2**31,
    "minus one": -1,
    "a fraction": 1.5,
    "true": True,
    "numpy's true": np.True_,
    "torch's true": torch.tensor(True),
    "numpy's whole number": np.int64(2),
    "numpy's single": np.float32(2),
    "numpy's half": np.float16(1),
    "nan": math.nan,
    "infinity": math.inf,
    "a text": "2",
    "a lone surrogate": "\ud800",
    "bytes": b"2",
    "nothing": None,
    "an empty list": [],
    "a list": [1, 2],
    "a complex number": 1j,
    "half": Fraction(1, 2),
    "a large fraction": Fraction(10**400),
    "a decimal": Decimal(2),
    "a large decimal": Decimal("1e400"),
    "a signalling nan": Decimal("sNaN"),
    "a tensor": torch.tensor(2),
    "two numbers": torch.tensor([1.0, 2.0]),
    "an array": np.array(2),
    "a date": np.datetime64("2020"),
    "an object": object(),
}
FEW = 100  # as many evaluations as a test may make


def begun(**options):
    return nb.Study(nb.Sphere(2), nb.RandomSearch(), **options)


def asked():
    study = begun()
    study.ask(3)
    return study


def evaluated(f=lambda x: float(x[0]), **options):
    return begun().run(f, 1, progress=False, **options)


def sparing(call):
    """The call, unless it would take a number at its word that is sound and large."""
    return lambda given: None if isinstance(given, int) and FEW < given < 2**31 else call(given)


def descended(**options):
    return nb.optimise.lbfgs(lambda x: x.sum(-1), nb.Sphere(2), torch.eye(3).double()[:1], **options)


DOORS = {
    "tell": lambda given: asked().tell(0, given),
    "tell index": lambda given: asked().tell(given, 1.0),
    "tell constraints": lambda given: asked().tell(0, 1.0, constraints=given),
    "tell noise": lambda given: asked().tell(0, 1.0, noise=given),
    "tell failed": lambda given: asked().tell(0, failed=given),
    "add": lambda given: begun().add(given, 1.0),
    "add numbers": lambda given: nb.Study(nb.Euclidean(2), nb.RandomSearch()).add([given, given], 1.0),
    "add value": lambda given: begun().add([1, 0, 0], given),
    "noise": lambda given: begun(noise=given),
    "seed": lambda given: begun(seed=given).ask(),
    "direction": lambda given: begun(direction=given),
    "space": nb.Study,
    "strategy": lambda given: nb.Study(nb.Sphere(2), given),
    "constraints": lambda given: begun(constraints=given),
    "constraints give": lambda given: begun(constraints=lambda x: given).ask(),
    "an objective gives": lambda given: evaluated(lambda x: given),
    "an objective observes": lambda given: evaluated(lambda x: nb.Observation(1.0, given, given)),
    "ask": sparing(lambda given: begun().ask(given)),
    "run": sparing(lambda given: begun().run(lambda x: 1.0, given, progress=False)),
    "on_error": lambda given: evaluated(on_error=given),
    "timeout": lambda given: evaluated(timeout=given),
    "workers": lambda given: evaluated(workers=given),
    "executor": lambda given: evaluated(executor=given, workers=1),
    "budget": sparing(lambda given: nb.minimize(lambda x: 1.0, nb.Sphere(2), budget=given, strategy=nb.RandomSearch())),
    "load": nb.Study.load,
    "sphere": nb.Sphere,
    "matrices": nb.SPD,
    "vectors": nb.Euclidean,
    "torus": nb.Torus,
    "simplex": nb.Simplex,
    "rotation": nb.Rotation,
    "rows": lambda given: nb.Grassmann(given, 1),
    "columns": lambda given: nb.Stiefel(5, given),
    "upper": lambda given: nb.Box(0, given),
    "lower": lambda given: nb.Box(given, 3),
    "an eigenvalue": lambda given: nb.SPD(2, eigenvalues=(1e-3, given)),
    "eigenvalues": lambda given: nb.SPD(2, eigenvalues=given),
    "metric": lambda given: nb.SPD(2, metric=given),
    "product": nb.Product,
    "a text for a space": nb.space,
    "a text for a strategy": nb.strategy,
    "a problem": lambda given: nb.problem(given, nb.Sphere(5)),
    "the seed of a problem": lambda given: nb.problem("ackley", nb.Sphere(5), latent_dim=2, seed=given),
    "the size of a problem": lambda given: nb.problem("ackley", nb.Sphere(5), latent_dim=given, seed=0),
    "a point": nb.Sphere(2).check,
    "tolerance": lambda given: descended(tolerance=given, max_iterations=1),
    "iterations": sparing(lambda given: descended(max_iterations=given)),
    "a picture": lambda given: plots.draw(begun(), given),
    "a port": lambda given: Watch(lambda: "", lambda state: "", port=given)._server.server_close(),
    "a kernel": lambda given: nb.kernels.kernel(given, nb.Sphere(2)),
}

# Every field of every method, one after the other.
FIELDS = [(method.samples()[0], field.name) for method in STRATEGIES.values() for field in dataclasses.fields(method)]
DOORS |= {
    f"{name} of {type(method).__name__}": lambda given, method=method, name=name: begun_with(method, **{name: given})
    for method, name in FIELDS
}


def begun_with(method, **changes):
    return nb.Study(nb.Sphere(12), dataclasses.replace(method, **changes)).strategy.specification


def said(call, given):
    """What nestbo says against a thing; nothing if it takes it, and the error itself if it is another's."""
    try:
        repr(call(given))
    except nb.NestboError as error:
        return str(error)
    except Exception as error:
        return error
    return "."


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("door", DOORS)
def test_odd_things_are_taken_or_refused_with_a_sentence(door):
    heard = {name: said(DOORS[door], given) for name, given in ODD.items()}
    assert not {name: words for name, words in heard.items() if isinstance(words, Exception)}
    assert not {name: words for name, words in heard.items() if not words.endswith((".", "?")) or len(words) > 800}


class TestNumbers:
    @pytest.mark.parametrize("index", [1, np.int64(1), np.uint8(1)], ids=repr)
    def test_an_index_is_any_whole_number(self, index):
        assert asked().tell(index, 3.0).index == 1

    @pytest.mark.parametrize("index", [True, np.True_, 1.0, np.float64(1), "1", None], ids=repr)
    def test_and_nothing_else(self, index):
        with pytest.raises(nb.TrialError, match="There is no trial"):
            asked().tell(index, 3.0)

    @pytest.mark.parametrize("value", [True, np.True_, torch.tensor(True), np.array(False)], ids=repr)
    def test_true_and_false_are_no_values(self, value):
        with pytest.raises(nb.ArgumentError, match="tell takes a number"):
            asked().tell(0, value)
        assert evaluated(lambda x: value).history[0].status == "failed"

    def test_a_number_beyond_floats(self):
        with pytest.raises(nb.ArgumentError, match="tell takes a number, got a value of type int that cannot be shown"):
            asked().tell(0, HUGE)
        with pytest.raises(nb.ArgumentError, match="noise is a positive variance"):
            begun(noise=10**400)

    def test_what_an_objective_returns_beyond_floats(self):
        reason = evaluated(lambda x: HUGE).history[0].told.failed
        assert reason == "the objective returned a value of type int that cannot be shown, not a number"

    def test_numbers_of_numpy_are_those_of_python(self, tmp_path):
        one, other = (
            nb.Study(space, nb.RandomSearch(), seed=seed, noise=noise, store=tmp_path / name)
            for name, space, seed, noise in (
                ("a.db", nb.Sphere(np.int64(2)), np.int64(7), np.float32(0.5)),
                ("b.db", nb.Sphere(2), 7, 0.5),
            )
        )
        assert repr(one) == repr(other)
        assert (one.seed, one.noise, one.space) == (7, 0.5, nb.Sphere(2))
        assert type(one.space.n) is type(one.seed) is int
        assert [torch.equal(a.x, b.x) for a, b in zip(one.ask(np.int64(2)), other.ask(2), strict=True)] == [True, True]
        one.run(lambda x: 1.0, np.int64(2), progress=False)
        with nb.Study.load(tmp_path / "a.db") as again:
            assert len(again.history) == 4

    def test_what_failed_may_be_an_error(self):
        assert asked().tell(0, failed=ValueError("motor stalled")).told.failed == "ValueError: motor stalled"

    def test_what_cannot_be_shown(self):
        class Shy:
            def __repr__(self):
                raise RuntimeError

        assert shown(Shy()) == "a value of type Shy that cannot be shown"
        assert len(shown("x" * 1000)) < 210


class TestPrecision:
    """What is a point at the door is one inside; half precision is brought to double precision first."""

    @pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16], ids=str)
    def test_half_precision_is_refused_at_once_where_it_is_too_coarse(self, kind):
        x = torch.tensor([0.6, 0.8, 0.0], dtype=kind)
        for call in (nb.Sphere(2).check, lambda x: begun().add(x, 1.0)):
            with pytest.raises(nb.OffManifoldError, match=r"its norm is (0\.99|1\.00)\d*, it must be 1"):
                call(x)

    @pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16, torch.float32], ids=str)
    def test_and_taken_where_it_is_exact(self, kind, tmp_path):
        for space, x in ((nb.Sphere(1), [0.0, 1.0]), (nb.SPD(2), [[2.0, 0.5], [0.5, 1.0]]), (nb.Box(0, 1), [0.25])):
            point = torch.tensor(x, dtype=kind)
            assert space.check(point).dtype == (torch.float32 if kind is torch.float32 else torch.float64)
            path = tmp_path / f"{space.specification}.db"
            with nb.Study(space, nb.RandomSearch(), store=path) as study:
                study.add(point, 1.0)
            assert nb.Study.load(path).best.x.tolist() == x

    def test_numpys_half_precision(self):
        with pytest.raises(nb.OffManifoldError):
            nb.Sphere(1).check(np.array([0.6, 0.8], dtype=np.float16))

    def test_single_precision_is_judged_as_it_will_be_inside(self, rng):
        for x in nb.Sphere(50).random(200, rng=rng).float() * (1 + torch.linspace(-2e-6, 2e-6, 200)[:, None]):
            try:
                nb.Sphere(50).check(x)
            except nb.OffManifoldError:
                continue
            nb.Sphere(50).check(x.double())

    def test_a_trial_whose_point_was_changed_to_single_precision(self):
        study = begun()
        trial = study.ask()
        with pytest.raises(nb.TrialError, match="is another point"):
            study.tell(nb.Trial(trial.index, trial.x.float()), 1.0)
        with pytest.raises(nb.TrialError, match="is another point"):
            study.tell(nb.Trial(trial.index, trial.x.tolist()), 1.0)


class TestStores:
    @pytest.mark.parametrize("store", [":memory:", Path(":memory:"), "./:memory:"], ids=repr)
    def test_a_word_that_keeps_nothing(self, store, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        with pytest.raises(nb.ArgumentError, match=r"got '[./]*:memory:', which keeps nothing\. Leave store out"):
            begun(store=store)
        assert os.listdir(tmp_path) == []

    @pytest.mark.parametrize("store", ["", b"a.db", 3, "a\0b"], ids=repr)
    def test_what_is_no_path(self, store):
        with pytest.raises(nb.ArgumentError, match="A store is a path"):
            begun(store=store)

    def test_a_path_of_bytes(self):
        class Bytes:
            def __fspath__(self):
                return b"a.db"

        with pytest.raises(nb.ArgumentError, match="A store is a path"):
            begun(store=Bytes())


class Raising(futures.Executor):
    """An executor that takes some evaluations and then no more."""

    def __init__(self, workers=1, error=None, taken=0):
        self.error, self.left = error or OSError("no network"), taken

    def submit(self, fn, /, *args, **kwargs):
        if self.left == 0:
            raise self.error
        self.left -= 1
        future = futures.Future()
        future.set_result(fn(*args, **kwargs))
        return future


class Strange(futures.Executor):
    """An executor that gives no future."""

    def submit(self, fn, /, *args, **kwargs):
        return 3


class Stuck(futures.ThreadPoolExecutor):
    """An executor that does not end."""

    def shutdown(self, wait=True, *, cancel_futures=False):
        super().shutdown(wait, cancel_futures=cancel_futures)
        raise OSError("no network")


class TestExecutors:
    @pytest.mark.parametrize("error", [OSError("no network"), KeyError("queue"), RuntimeError("shut down")], ids=repr)
    def test_one_that_raises(self, error):
        study = begun()
        with pytest.raises(nb.NestboError, match=r"The executor takes no more evaluations \(.*everything told is kept"):
            study.run(lambda x: 1.0, 5, progress=False, executor=Raising(error=error, taken=2), workers=1)
        assert [trial.status for trial in study.history] == ["told", "told", "asked"]
        study.run(lambda x: 2.0, 1, progress=False)  # what was lost comes first
        assert [trial.value for trial in study.history] == [1.0, 1.0, 2.0]

    def test_one_that_raises_even_when_made_anew(self):
        with pytest.raises(nb.NestboError, match="takes no more evaluations"):
            evaluated(executor=Raising, workers=2)

    @pytest.mark.parametrize(
        "make", [lambda workers: 1 / 0, lambda: futures.ThreadPoolExecutor()], ids=["zero", "none"]
    )
    def test_one_that_cannot_be_made(self, make):
        with pytest.raises(nb.ArgumentError, match=r"executor makes one .* for 2 workers, and raised"):
            evaluated(executor=make, workers=2)

    def test_one_that_gives_no_future(self):
        with pytest.raises(nb.NestboError, match=r"gives a Future of concurrent\.futures, got 3"):
            evaluated(executor=Strange(), workers=1)

    def test_one_that_does_not_end(self):
        study = begun()
        with pytest.raises(nb.NestboError, match=r"does not shut down .*Everything told is kept"):
            study.run(lambda x: 1.0, 2, progress=False, executor=Stuck, workers=2)
        assert len(study.history.finished) == 2

    def test_a_closed_client_of_dask(self):
        distributed = pytest.importorskip("distributed")
        options = {"n_workers": 1, "threads_per_worker": 1, "dashboard_address": None}
        with distributed.Client(processes=False, **options) as client:
            executor = client.get_executor()
        with pytest.raises(nb.NestboError, match=r"takes no more evaluations \(.*closed"):
            evaluated(executor=executor, workers=1)


class TestMethods:
    """A method of a user."""

    @pytest.mark.parametrize("memory", [{"turn": 1}, None, "a text"], ids=str)
    @pytest.mark.parametrize("listed", [True, False])
    def test_what_it_remembers_is_a_memory(self, memory, listed):
        @dataclasses.dataclass(frozen=True, repr=False)
        class Mine(nb.Strategy):
            @classmethod
            def samples(cls):
                return [cls()]

            def propose(self, space, runs):
                return runs.random(space), [memory] if listed else memory

        with pytest.raises(nb.ArgumentError, match=r"is a nestbo\.Memory, got .*Memory\(own=\{…\}\)"):
            nb.Study(nb.Sphere(2), Mine()).ask()

    def test_so_it_is_in_a_suggestion(self):
        with pytest.raises(nb.ArgumentError, match=r"is a nestbo\.Memory, got \{'turn': 1\}"):
            nb.Suggestion(torch.zeros(2), {"turn": 1})
