"""A release: its version, its changelog, and archives that install and work where nothing else of the repository is."""

import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest
import torch

import nestbo as nb

ROOT = Path(__file__).parent.parent


def test_the_changelog_has_this_version_first_and_known_headings_only():
    """As Keep a Changelog has it: versions with dates, newest first, changes under six headings."""
    text = (ROOT / "CHANGELOG.md").read_text()
    versions = re.findall(r"^## \[([^\]]+)\](?: - (\d{4}-\d{2}-\d{2}))?$", text, re.MULTILINE)
    assert versions[0] == ("Unreleased", "")
    assert versions[1][0] == nb.__version__
    assert all(date for name, date in versions[1:] if name != "0.1.0")
    headings = set(re.findall(r"^### (.+)$", text, re.MULTILINE))
    assert headings <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def test_a_retired_name_works_and_warns():
    trial = nb.Trial(0, torch.zeros(2)).with_failure("motor")
    with pytest.warns(DeprecationWarning, match=r"Trial\.notes is deprecated; nestbo 0\.3 removes it\. Use"):
        assert trial.notes["failed"] == "motor"


SCRIPT = """
import sys, nestbo as nb
assert nb.__file__.startswith(sys.prefix), nb.__file__
study = nb.Study(nb.Sphere(2), nb.GaBO(initial=2), store="s.db").run(lambda x: float(x[0]), budget=3, progress=False)
assert "<svg" in nb.report.page(study) or "data:image" in nb.report.page(study)
print(nb.__version__)
"""


@pytest.fixture(scope="module")
def archives(request, tmp_path_factory):
    """The wheel and the source archive of this checkout."""
    if not request.config.getoption("--full"):
        pytest.skip("builds and installs archives; --full does")
    pytest.importorskip("build")
    pytest.importorskip("hatchling")
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return {"wheel": next(folder.glob("*.whl")), "source": next(folder.glob("*.tar.gz"))}


def test_the_archives_hold_what_belongs_into_them(archives):
    wheel = zipfile.ZipFile(archives["wheel"]).namelist()
    for name in ("py.typed", "report/page.html", "report/page.css", "report/page.js", "cli/__init__.py"):
        assert f"nestbo/{name}" in wheel
    assert not [name for name in wheel if name.startswith(("tests", "docs", "benchmarks"))]
    with tarfile.open(archives["source"]) as source:
        names = {name.partition("/")[2] for name in source.getnames()}
    assert {"pyproject.toml", "README.md", "CHANGELOG.md", "LICENSE", "src/nestbo/__init__.py"} <= names
    assert not [name for name in names if name.startswith(("tests/", "benchmarks/", ".venv"))]


@pytest.mark.parametrize("kind", ["wheel", "source"])
def test_an_archive_installs_and_works_in_a_fresh_environment(archives, kind, tmp_path):
    """Its dependencies are those installed here; everything of nestbo is what the archive brings."""
    venv.create(tmp_path / "env", with_pip=True)
    python, tool = (tmp_path / "env" / "bin" / name for name in ("python", "nestbo"))
    here = next((tmp_path / "env" / "lib").glob("python*/site-packages"))
    (here / "dependencies.pth").write_text(sysconfig.get_paths()["purelib"] + "\n" + extra_paths())
    install = [python, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-build-isolation"]
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | {"OMP_NUM_THREADS": "1"}
    options = {"cwd": tmp_path, "env": clean, "capture_output": True, "text": True}
    done = subprocess.run([*install, "--force-reinstall", archives[kind]], **options)
    assert done.returncode == 0, done.stderr
    done = subprocess.run([python, "-c", SCRIPT], **options)
    assert (done.returncode, done.stdout.strip()) == (0, nb.__version__), done.stderr
    done = subprocess.run([tool, "best", "s.db"], **options)
    assert done.returncode == 0, done.stderr
    assert nb.__version__ in subprocess.run([tool, "--version"], **options).stdout


def extra_paths():
    """Folders of packages that the environment of the tests has on its path besides its own."""
    return "\n".join(path for path in sys.path if path.endswith("site-packages"))
