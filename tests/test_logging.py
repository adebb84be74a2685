"""What the library says to those who listen, and that it says nothing to others."""

import logging
from dataclasses import replace

import pytest
import torch

import nestbo as nb
from nestbo.memory import Fit, Memory
from nestbo.study.journal import log_suggestions, news

FITTED = Memory(arm="full", fits={"full": Fit((0.0,), 5)})


@pytest.mark.parametrize(
    ("memory", "last", "said"),
    [
        (FITTED, FITTED, []),
        (FITTED, Memory(), ["suggested by full"]),
        (replace(FITTED, arm="nested:2"), FITTED, ["suggested by nested:2, after full"]),
        (replace(FITTED, closed=(3, 7)), replace(FITTED, closed=(3,)), ["the basin around trial 7 is closed"]),
        (FITTED, replace(FITTED, closed=(3,)), ["the basin around trial 3 is open again"]),
        (replace(FITTED, moved="to satisfy the constraints"), FITTED, ["moved, to satisfy the constraints"]),
        (
            replace(FITTED, fits={"full": Fit((0.0,), 5, failed=True)}),
            FITTED,
            ["the fit of full to 5 evaluations failed, and its start is used instead"],
        ),
    ],
)
def test_what_is_new(memory, last, said):
    assert list(news(memory, last)) == said


def test_a_random_point_is_no_news(caplog):
    with caplog.at_level(logging.INFO, "nestbo"):
        log_suggestions(
            [nb.Trial(6, torch.zeros(2))], [nb.Trial(5, torch.zeros(2), memory=replace(FITTED, closed=(3,)))]
        )
    assert caplog.messages == []


def test_a_run_is_told_to_those_who_listen(caplog):
    study = nb.Study(nb.Sphere(2), nb.GaBO(initial=2), seed=0)
    with caplog.at_level(logging.INFO, "nestbo"):
        study.run(lambda x: float(1 - x[0]), budget=3, progress=False)
    assert "Trial 2: suggested by full:0." in caplog.messages
    assert caplog.messages[-1] == "The run ended after 3 evaluations: the budget of 3 is used up."


def test_it_is_quiet_by_default(capfd):
    assert not logging.getLogger("nestbo").isEnabledFor(logging.INFO)
    nb.minimize(lambda x: float(x[0]), nb.Sphere(1), budget=3, strategy=nb.GaBO(initial=2))
    assert capfd.readouterr() == ("", "")
