"""Imports point one way, and importing the library needs none of the packages that only its edges use."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import nestbo

SOURCE = Path(nestbo.__file__).parent

# From the ground up: a module imports from the layers below its own, and from inside itself. A new module finds its
# place here.
LAYERS = (
    ("errors", "calls", "interrupts", "text"),
    ("lazy",),
    ("specification", "linalg", "apart", "fronts"),
    ("manifolds",),
    ("memory",),
    ("optimise", "history", "outputs", "keywords"),
    ("nested", "kernels", "constraints", "evaluation"),
    ("surrogate", "problems"),
    ("acquisition", "storage", "progress", "parallel", "stop"),
    ("search",),
    ("strategies", "files"),
    ("study",),
    ("minimum",),
    ("plots",),
    ("gallery",),
    ("experiment", "report", "notebook"),
    ("bridges", "cli", "testing"),
    ("botorch", "optuna", "__main__"),
    ("__init__",),
)
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}
GEOMETRY = {"errors", "text", "specification", "linalg", "manifolds"}

# What the order alone would still allow.
ONLY = {
    "kernels": GEOMETRY,
    "history": GEOMETRY | {"memory", "fronts", "lazy"},
    "storage": GEOMETRY | {"history", "memory", "calls", "interrupts", "lazy"},
    "problems": GEOMETRY | {"nested", "optimise"},
    "plots": GEOMETRY | {"history", "memory", "storage", "fronts"},
}


def modules():
    """Every file, with the name of the module of LAYERS that it belongs to."""
    for path in sorted(SOURCE.rglob("*.py")):
        yield path, path.relative_to(SOURCE).with_suffix("").parts[0]


def imports(tree, known):
    """The modules of the package that a file imports, wherever in it; "__init__" is the package itself."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name.split(".") for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level:
            names = [["nestbo", "a relative import"]]
        elif isinstance(node, ast.ImportFrom):
            names = [[*node.module.split("."), alias.name] for alias in node.names]
        else:
            continue
        for parts in names:
            if parts[0] == "nestbo":
                inside = len(parts) > 1 and (parts[1] in known or parts[1] == "a relative import")
                yield parts[1] if inside else "__init__"


def allowed(module, other):
    if other == module:
        return True
    return LEVEL[other] < LEVEL[module] and other in ONLY.get(module, LEVEL)


def test_every_module_has_a_place():
    strangers = {module for _, module in modules()} - set(LEVEL)
    assert not strangers, f"place {sorted(strangers)} in LAYERS"


def test_every_import_points_downward():
    known = {module for _, module in modules()}
    upward = [
        f"{path.relative_to(SOURCE)} imports {other}"
        for path, module in modules()
        for other in imports(ast.parse(path.read_text()), known)
        if module in LEVEL and not (other in LEVEL and allowed(module, other))
    ]
    assert not upward, "\n".join(upward)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("import nestbo.study", ["study"]),
        ("from nestbo.study import Study", ["study"]),
        ("from nestbo import study, linalg", ["study", "linalg"]),
        ("from nestbo import Sphere", ["__init__"]),
        ("import nestbo as nb", ["__init__"]),
        ("def f():\n    from nestbo.manifolds.sphere import Sphere", ["manifolds"]),
        ("from . import study", ["a relative import"]),
        ("import torch\nfrom nestbo_extras import x", []),
    ],
)
def test_the_reader_sees_every_kind_of_import(text, found):
    assert list(imports(ast.parse(text), set(LEVEL))) == found


def test_the_order_is_that_of_the_design():
    assert allowed("manifolds", "linalg")
    assert allowed("strategies", "history")
    assert allowed("problems", "nested")
    assert not allowed("linalg", "manifolds")
    assert not allowed("manifolds", "optimise")
    assert not allowed("kernels", "optimise")
    assert not allowed("problems", "kernels")
    assert not allowed("plots", "study")
    assert not allowed("history", "strategies")


IMPORT = """
import sys
for name in ("rich", "typer", "matplotlib"):
    sys.modules[name] = None  # importing it raises ImportError
from nestbo import *
edges = ("rich", "typer", "matplotlib", "sklearn", "pymanopt", "geoopt", "hypothesis", "pytest", "pandas", "optuna")
edges += ("dask", "distributed", "loky")
print(*(name for name in edges if sys.modules.get(name) is not None))
"""


def test_importing_the_library_needs_no_package_of_its_edges():
    done = subprocess.run([sys.executable, "-c", IMPORT], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == []


def test_importing_the_library_leaves_global_state_alone():
    """Neither the default dtype, nor the number of threads, nor the random state."""
    text = (
        "import torch; before = (torch.get_default_dtype(), torch.get_num_threads(), torch.get_rng_state().tolist());"
        "from nestbo import *;"
        "after = (torch.get_default_dtype(), torch.get_num_threads(), torch.get_rng_state().tolist());"
        "raise SystemExit(before != after)"
    )
    assert subprocess.run([sys.executable, "-c", text], capture_output=True, timeout=120).returncode == 0


def alone(text):
    """What a fresh Python prints that runs a text."""
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_names_are_imported_when_they_are_first_used():
    """Also modules beside the public names, which need no import of their own."""
    look, beside = "print('torch' in sys.modules)", ["botorch", "optuna", "plots", "report"]
    found = f"print(*(getattr(nb, name).__name__ for name in {beside}))"
    printed = alone(f"import sys, nestbo as nb; nb.StoreError; {look}; nb.Sphere; {look}; {found}")
    assert printed == ["False", "True", *(f"nestbo.{name}" for name in beside)]


def test_all_public_names_are_listed_before_they_are_imported():
    listed = alone("import nestbo as nb; print(*dir(nb))")
    assert set(listed) >= {*nestbo.__all__, "__version__", "botorch", "optuna", "plots", "report"}
    assert not [name for name in nestbo.__all__ if getattr(nestbo, name, None) is None]


@pytest.mark.parametrize("name", ["Spere", "_private", "__wrapped__"])
def test_an_unknown_name_is_an_ordinary_error(name):
    with pytest.raises(AttributeError, match=f"module 'nestbo' has no attribute '{name}'"):
        getattr(nestbo, name)
