"""What a method remembers: there and back through JSON to the last bit, damage refused, earlier memories translated."""

import dataclasses
import json
import math
import random

import pytest
import torch

import nestbo as nb
from nestbo.history import History, Told, Trial
from nestbo.memory import Fit, Memory
from nestbo.search.runs import Runs

FIT = Fit((0.1 + 0.2, -9.2), 7, (1 / 3, -5e-324, 1.7e308), 5, True, 40)
WHOLE = Memory(
    "nested:2",
    {"nested:2": FIT, "constraint:0": Fit((1e-17,), 7)},
    noise=1e-300,
    frame=2**53 + 1,
    moved="to satisfy the constraints",
    span=(0, 7),
    closed=(2,),
    best=4,
    forecast={"full": (-1e-17, 0.1 + 0.2, 1e300)},
    own={"mine": [1, None, {"deep": "ü"}], "noise": 3.0},
)
MEMORIES = [
    Memory(),
    WHOLE,
    Memory("full"),
    Memory(frame=0, best=0),
    Memory(noise=0.0),
    Memory(fits={"full": Fit((), 0)}),
    Memory(own={"arm": None, "fits": 3}),
]


def through_json(memory):
    return Memory.of(json.loads(json.dumps(memory.json, allow_nan=False)))


class TestJson:
    @pytest.mark.parametrize("memory", MEMORIES, ids=lambda memory: str(sorted(memory.json)))
    def test_there_and_back(self, memory):
        assert through_json(memory) == memory
        assert through_json(through_json(memory)).json == memory.json

    def test_numbers_come_back_to_the_last_bit(self):
        back = through_json(WHOLE)
        assert [x.hex() for x in back.fits["nested:2"].basis] == [x.hex() for x in FIT.basis]

    def test_many_random_numbers_do(self):
        draw = random.Random(0)
        numbers = tuple(math.ldexp(draw.uniform(-1, 1), draw.randint(-1000, 1000)) for _ in range(500))
        memory = Memory(fits={"full": Fit(numbers, 3, numbers)})
        assert through_json(memory) == memory

    def test_what_says_nothing_is_left_out(self):
        assert Memory().json == {}
        assert Memory("full", {"full": Fit((1.0,), 3)}).json == {
            "arm": "full",
            "fits": {"full": {"parameters": (1.0,), "evaluations": 3}},
        }
        assert set(WHOLE.json) == {field.name for field in dataclasses.fields(Memory)}
        assert set(WHOLE.json["fits"]["nested:2"]) == {field.name for field in dataclasses.fields(Fit)}

    def test_without_some_fits(self):
        assert set(WHOLE.without(["nested:2"]).fits) == {"constraint:0"}
        assert WHOLE.without(["nested:2"]).json == WHOLE.json | {
            "fits": {"constraint:0": WHOLE.json["fits"]["constraint:0"]}
        }
        assert WHOLE.without(["full"]) is WHOLE
        assert set(WHOLE.fits) == {"nested:2", "constraint:0"}

    @pytest.mark.parametrize("method", [nb.GaBO(), nb.HDGaBO(2), nb.HDGaBO.paper(2), nb.REMBO(2)], ids=repr)
    def test_of_suggestions(self, method):
        """Each made from memories that went through JSON, and equal to that made from those that did not."""
        space = nb.SPD(3, eigenvalues=(0.1, 5.0))
        straight = history = History(noise="infer")
        for k in range(8):
            found, other = (
                method.suggest(space, past, 1, torch.Generator().manual_seed(k))[0] for past in (straight, history)
            )
            assert torch.equal(found.x, other.x)
            assert through_json(other.memory) == found.memory
            trial = Trial(k, found.x).with_value(float(found.x[0, 0]))
            straight = straight.add(dataclasses.replace(trial, memory=found.memory))
            history = history.add(dataclasses.replace(trial, memory=through_json(other.memory)))


def nested(depth):
    """A number in lists in lists."""
    value = 1.0
    for _ in range(depth):
        value = [value]
    return value


GOOD = {"parameters": [1.0], "evaluations": 3}
JUNK = [None, True, 3, -1, 2.5, math.nan, math.inf, 10**400, "x", "", [], [[]], ["x"], [None], [math.nan], {}, {"a": 1}]
DAMAGED = {
    "arm": [3, True, ["full"], {"full": 1}],
    "fits": [
        3,
        "full",
        [],
        {"full": 3},
        {"full": []},
        {"full": None},
        {"full": {}},
        {"full": {"parameters": [1.0]}},
        {"full": {"evaluations": 3}},
        {"full": GOOD | {"parameters": ["1"]}},
        {"full": GOOD | {"parameters": [math.nan]}},
        {"full": GOOD | {"parameters": [1.0, [None]]}},
        {"full": GOOD | {"parameters": {"a": 1.0}}},
        {"full": GOOD | {"parameters": [10**400]}},
        {"full": GOOD | {"evaluations": 3.0}},
        {"full": GOOD | {"evaluations": -3}},
        {"full": GOOD | {"evaluations": True}},
        {"full": GOOD | {"basis": "x"}},
        {"full": GOOD | {"basis": [math.inf]}},
        {"full": GOOD | {"seen": "x"}},
        {"full": GOOD | {"failed": "no"}},
        {"full": GOOD | {"given": 2.5}},
    ],
    "noise": ["x", math.nan, math.inf, True, [1.0], {}, 10**400],
    "frame": [1.5, "a", False, [1], -7],
    "moved": [True, False, 0, 1.5, [], ["x"], {}],
    "span": [3, "ab", None, {"a": 1}, [1.5], [-1], [True], [[1]], nested(5000)],
    "closed": [3, "ab", None, {"a": 1}, [1.5], [-1], ["x"]],
    "best": [1.5, "x", True, [1], -1],
    "forecast": [3, [], {"full": 1.0}, {"full": [1.0, 2.0]}, {"full": [1.0, 2.0, math.nan]}, {"full": ["a", "b", "c"]}],
    "own": [3, "x", "", [], [["a", 1]], None],
}


class TestDamage:
    @pytest.mark.parametrize("found", [None, 3, "x", [], [{}], True, math.nan], ids=repr)
    def test_what_is_no_object_is_refused(self, found):
        with pytest.raises(ValueError, match=r"is a JSON object, got \w+"):
            Memory.of(found)

    @pytest.mark.parametrize("name", DAMAGED)
    def test_a_field_of_another_kind_is_refused(self, name):
        for value in DAMAGED[name]:
            for more in ({}, {"moved": "away", "start": 3} if name == "arm" else {"arm": "full"}):
                with pytest.raises(ValueError, match=r"memory of a trial is damaged: ") as caught:
                    Memory.of(more | {name: value})
                assert len(str(caught.value)) < 300

    @pytest.mark.parametrize("name", DAMAGED)
    def test_junk_is_read_or_refused_in_one_sentence(self, name):
        """And what is read can be written."""
        for junk in (*JUNK, nested(30), nested(100_000)):
            try:
                memory = Memory.of({name: junk})
            except ValueError:
                continue
            assert through_json(memory) == memory

    def test_random_damage_is_read_or_refused(self):
        draw, text = random.Random(0), json.dumps(WHOLE.json)
        for _ in range(2000):
            spoilt, place = list(text), draw.randrange(len(text))
            spoilt[place] = draw.choice('0123456789.-eE"[]{},:tfn ax')
            try:
                found = json.loads("".join(spoilt))
            except ValueError:
                continue
            try:
                assert isinstance(Memory.of(found), Memory)
            except ValueError:
                continue


MOVED = "to satisfy the constraints"
OLD_FIT = {"parameters": [-0.2, -9.2], "evaluations": 5}
OLD_BASIS = [[0.6, 0.0], [0.8, 0.0], [0.0, 1.0]]


class TestEarlier:
    """Memories as nestbo 0.1 wrote them: fits under the names of models, beside everything else."""

    @pytest.mark.parametrize(
        ("found", "wanted"),
        [
            ({}, Memory()),
            ({"arm": "full", "full": OLD_FIT}, Memory("full", {"full": Fit((-0.2, -9.2), 5)})),
            (
                {"arm": "full", "full": OLD_FIT, "inferred_noise": 2.8e-5, "steep": [False, 5]},
                Memory("full", {"full": Fit((-0.2, -9.2), 5)}, noise=2.8e-5),
            ),
            (
                {"arm": "nested:2:incumbent", "nested:2": OLD_FIT | {"basis": OLD_BASIS}, "worth:nested:2": -3.5},
                Memory(
                    "nested:2:incumbent",
                    {"nested:2": Fit((-0.2, -9.2), 5, (0.6, 0.0, 0.8, 0.0, 0.0, 1.0))},
                ),
            ),
            (
                {
                    "arm": "full",
                    "full": OLD_FIT | {"fitted_to": 3, "fallback": "the fit failed; its first start stands in"},
                },
                Memory("full", {"full": Fit((-0.2, -9.2), 5, seen=3, failed=True)}),
            ),
            (
                {"arm": "full", "full": OLD_FIT, "constraint:0": OLD_FIT, "moved": MOVED},
                Memory("full", {"full": Fit((-0.2, -9.2), 5), "constraint:0": Fit((-0.2, -9.2), 5)}, moved=MOVED),
            ),
            ({"moved": MOVED}, Memory(moved=MOVED)),
            ({"embedding": 2**53 - 1, "model": OLD_FIT}, Memory(fits={"model": Fit((-0.2, -9.2), 5)}, frame=2**53 - 1)),
            ({"mine": [1, 2]}, Memory(own={"mine": [1, 2]})),
            ({"explored": MOVED}, Memory(moved=MOVED)),
            ({"explored": MOVED, "mine": 1}, Memory(moved=MOVED, own={"mine": 1})),
            ({"explored": 3}, Memory(own={"explored": 3})),
            (
                {"arm": "full", "full": OLD_FIT, "explored": MOVED, "mine": {"a": [1]}},
                Memory("full", {"full": Fit((-0.2, -9.2), 5)}, moved=MOVED, own={"mine": {"a": [1]}}),
            ),
            ({"arm": "mine", "turns": 3}, Memory("mine", own={"turns": 3})),
        ],
        ids=lambda part: str(sorted(part)) if isinstance(part, dict) else "",
    )
    def test_they_are_translated(self, found, wanted):
        assert Memory.of(found) == wanted
        assert through_json(Memory.of(found)) == wanted

    def test_a_random_point_of_an_embedding_keeps_its_seed(self):
        assert Memory.of({"embedding": 7}).frame == 7

    @pytest.mark.parametrize(
        "found",
        [
            {"arm": "full:embedded:2", "full": OLD_FIT, "full:embedded:2": OLD_BASIS},
            {"arm": "nested:2:local", "nested:2": OLD_FIT | {"basis": OLD_BASIS}, "start": [0.1, 0.2, 0.3]},
        ],
        ids=lambda found: found["arm"],
    )
    def test_embedded_spaces_and_starts_of_regions_begin_anew(self, found):
        memory = Memory.of(found)
        assert memory.arm == found["arm"]
        assert memory.fits
        assert (memory.frame, memory.span, memory.own) == (None, (), {})

    @pytest.mark.parametrize(
        "found",
        [
            {"arm": 3, "full": OLD_FIT},
            {"arm": "full", "full": OLD_FIT | {"parameters": ["x"]}},
            {"arm": "full", "full": OLD_FIT | {"evaluations": None}},
            {"arm": "full", "full": OLD_FIT, "inferred_noise": math.nan},
            {"arm": "full", "full": OLD_FIT | {"basis": [[1.0], [None]]}},
        ],
        ids=str,
    )
    def test_damaged_ones_are_refused(self, found):
        with pytest.raises(ValueError, match="damaged"):
            Memory.of(found)

    @pytest.mark.parametrize("name", ["full:embedded:2", "nested:2:local"])
    def test_a_method_goes_on_from_them(self, name, rng):
        space = nb.SPD(3)
        old = {"arm": name, "full": OLD_FIT, name: OLD_BASIS, "start": [0.1, 0.2]}
        x = space.random(6, rng=rng)
        trials = [Trial(k, x[k], memory=Memory.of(old)).with_value(float(k)) for k in range(6)]
        (found,) = nb.HDGaBO(2).suggest(space, History(tuple(trials)), 1, rng)
        space.check(found.x, 1e-9)

    def test_what_methods_remembered_that_are_gone_is_left_out(self):
        found = {"arm": "full", "worth": {"nested:2": 1.0}, "steep": [True, 5], "start": 3, "columns": [0.5], "best": 2}
        assert Memory.of(found) == Memory("full", best=2)
        assert Memory.of({"start": 3}) == Memory(own={"start": 3})  # of a method of a user


class TestFacts:
    """What was told is apart from what a method remembers, whatever the method calls it."""

    sly = Memory("full", noise=9.0, own={"noise": 3.0, "constraints": [-1.0], "failed": "no", "violation": 2.0})

    def history(self, memory):
        x = nb.Sphere(2).random(6, rng=torch.Generator().manual_seed(0))
        return History(tuple(Trial(k, x[k], memory=memory).with_value(float(k)) for k in range(6)))

    def test_a_memory_makes_no_facts(self):
        history = self.history(self.sly)
        assert not history.noisy
        assert history.variances is history.constraints is None
        assert history.best.index == 0
        for trial in history:
            assert (trial.noise, trial.constraints, trial.feasible, trial.status) == (None, None, True, "told")
            assert trial.told == Told((trial.value,))

    def test_nor_does_it_change_the_data_of_methods(self, rng):
        plain, sly = (Runs.of(nb.Sphere(2), self.history(memory), rng) for memory in (Memory("full"), self.sly))
        for field in dataclasses.fields(Runs):
            one, other = (getattr(runs, field.name) for runs in (plain, sly))
            if field.name != "memories":
                assert torch.equal(one, other) if isinstance(one, torch.Tensor) else one == other, field.name
        assert plain.scores == sly.scores
        assert torch.equal(plain.ranking, sly.ranking)

    def test_nor_a_suggestion(self):
        found = [
            nb.GaBO().suggest(nb.Sphere(2), self.history(memory), 1, torch.Generator().manual_seed(1))[0]
            for memory in (Memory("full"), self.sly)
        ]
        assert torch.equal(found[0].x, found[1].x)
        assert found[0].memory == found[1].memory

    def test_a_method_of_your_own_may_remember_anything(self, tmp_path):
        """A study with it stays exact, its trials feasible, and the memory comes back."""
        remembered = {"noise": 3.0, "constraints": [-1.0], "violation": 1.0, "arm": "x"}

        class Sly(nb.RandomSearch):
            def suggest(self, *given, **options):
                found = super().suggest(*given, **options)
                return [dataclasses.replace(each, memory=Memory(own=remembered)) for each in found]

        with nb.Study(nb.Sphere(2), nb.RandomSearch(), store=tmp_path / "s.db") as study:
            study.strategy = Sly()
            study.run(lambda x: float(x[0]), 3, progress=False)
        history = nb.Study.load(tmp_path / "s.db").history
        assert not history.noisy
        assert history.constraints is None
        assert history.best.value == min(trial.value for trial in history)
        assert [trial.memory.own for trial in history] == [remembered] * 3

    @pytest.mark.filterwarnings("ignore:Trial.notes is deprecated:DeprecationWarning")
    def test_notes_show_both_and_cannot_be_changed(self):
        trial = Trial(0, torch.zeros(2), memory=Memory("full", noise=9.0, best=4))
        told = trial.with_value(1.0, noise=0.5, constraints=(1.0, -2.0), lost=("gone",))
        assert dict(told.notes) == {
            "arm": "full",
            "best": 4,
            "noise": 0.5,
            "constraints": [1.0, -2.0],
            "lost": ["gone"],
        }
        assert dict(trial.notes) == {"arm": "full", "best": 4, "noise": 9.0}
        assert dict(trial.with_failure("motor").notes)["failed"] == "motor"
        with pytest.raises(TypeError):
            told.notes["arm"] = "other"
