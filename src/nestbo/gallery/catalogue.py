"""Which examples there are: their files, what they need, how one is loaded or copied."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from dataclasses import dataclass
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

from nestbo.errors import ArgumentError, NestboError
from nestbo.gallery.application import Application
from nestbo.specification import check_known


@dataclass(frozen=True)
class Entry:
    """An example: what it is about, its space, the packages that it needs, other files beside it that it imports."""

    name: str
    about: str
    space: str
    packages: tuple[str, ...]
    helpers: tuple[str, ...] = ()
    objectives: int = 1

    @property
    def files(self) -> tuple[str, ...]:
        """What is copied for a start of one's own."""
        return tuple(f"{name}.py" for name in (self.name, *self.helpers))

    @property
    def missing(self) -> tuple[str, ...]:
        """The packages that are not installed."""
        return tuple(package for package in self.packages if importlib.util.find_spec(MODULES[package]) is None)


MODULES = {
    "cantera": "cantera",
    "manifold3d": "manifold3d",
    "mujoco": "mujoco",
    "rdkit": "rdkit",
    "rtree": "rtree",
    "scikit-learn": "sklearn",
    "tblite": "tblite",
    "trimesh": "trimesh",
}
_ENTRIES = (
    Entry("molecule", "the lowest conformer of cysteine", "Torus(5)", ("rdkit", "tblite"), ("chemistry",)),
    Entry("burner", "a fuel blend for a gas turbine", "Simplex(5) × Box(2)", ("cantera",)),
    Entry("printing", "how a part lies on the bed of a 3-D printer", "S²", ("trimesh", "manifold3d", "rtree")),
    Entry("emissions", "cheap or clean, the burner again", "Simplex(5) × Box(2)", ("cantera",), ("burner",), 2),
    Entry("peg", "the stiffness of a wrist that inserts a peg", "SPD(6)", ("mujoco",)),
    Entry("water", "where a water molecule binds", "S² × Box × SO(3)", ("rdkit", "tblite"), ("placement", "chemistry")),
    Entry("basepair", "how two bases of DNA pair", "S² × Box × SO(3)", ("rdkit", "tblite"), ("placement", "chemistry")),
    Entry("gust", "the worst gust for a drone", "S^95", ("mujoco",), ("quadrotor",)),
    Entry("lqr", "the weights of a drone's controller", "SPD(12)", ("mujoco",), ("quadrotor",)),
    Entry("neighbours", "what makes two wines alike", "SPD(13)", ("scikit-learn",)),
    Entry("ensemble", "a committee that reads digits", "Simplex × Integer × Choice × Box", ("scikit-learn",)),
)
CATALOGUE = {entry.name: entry for entry in _ENTRIES}


def folder() -> Path:
    """Where the files of the examples are: in the installed package, or beside its source."""
    inside = Path(__file__).parent / "examples"
    found = inside if inside.is_dir() else Path(__file__).parents[3] / "examples" / "gallery"
    if not found.is_dir():
        raise NestboError(f"The examples are missing: there is no {inside}. Install nestbo again.")
    return found


def entry(name: str) -> Entry:
    """An example by its name."""
    check_known("example", name, CATALOGUE)
    return CATALOGUE[name]


def load(name: str) -> Application:
    """The application that the file of an example declares."""
    application = _imported(entry(name)).APPLICATION
    if not isinstance(application, Application):
        raise NestboError(f"{name}.py declares no Application: wanted one named APPLICATION, got {application!r}.")
    return application


def _imported(chosen: Entry) -> ModuleType:
    """The module of an example; its helpers are found beside it."""
    place = folder()
    spec = importlib.util.spec_from_file_location(f"nestbo_gallery_{chosen.name}", place / f"{chosen.name}.py")
    if not isinstance(spec, ModuleSpec) or spec.loader is None:
        raise NestboError(f"{chosen.name}.py cannot be read. Install nestbo again.")
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(place))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(place))
    return module


def copy(name: str, to: Path) -> list[Path]:
    """Copy the files of an example into a folder; a file that is there already has to be the same one."""
    sources = [folder() / file for file in entry(name).files]
    targets = [to / source.name for source in sources]
    for source, target in zip(sources, targets, strict=True):
        if target.exists() and target.read_bytes() != source.read_bytes():  # two examples may share a helper
            raise ArgumentError(
                f"{target} exists already, and is another file than that of the example. It is left as it is. "
                "Choose another folder with --to."
            )
    to.mkdir(parents=True, exist_ok=True)
    for source, target in zip(sources, targets, strict=True):
        shutil.copyfile(source, target)
    return targets
