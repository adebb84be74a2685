import pytest
import torch

torch.set_num_threads(1)


@pytest.fixture
def rng() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def pytest_addoption(parser):
    parser.addoption("--full", action="store_true", help="also the long versions of tests that have one")
