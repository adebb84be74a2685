import pytest
import torch

torch.set_num_threads(1)

# Files that --quick leaves out: their tests start processes, browsers or long runs, and other files cover the modules.
SLOW = {"test_parallel", "test_interrupts", "test_torture", "test_fuzz", "test_faults", "test_report", "test_prose"}
SLOW |= {"test_site", "test_trajectories", "test_scale", "test_owners", "test_hostile"}


@pytest.fixture
def rng() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def pytest_addoption(parser):
    parser.addoption("--full", action="store_true", help="also the long versions of tests that have one")
    parser.addoption("--quick", action="store_true", help="of every test that has several cases the first one only")


def pytest_collection_modifyitems(config, items):
    """With --quick, keep the first case of each test, and leave out files whose tests start processes or browsers."""
    if not config.getoption("--quick"):
        return
    first = {}
    for item in items:
        if item.path.stem not in SLOW:
            first.setdefault(item.nodeid.partition("[")[0], item)
    kept = set(map(id, first.values()))
    config.hook.pytest_deselected(items=[item for item in items if id(item) not in kept])
    items[:] = list(first.values())
