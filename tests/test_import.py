"""`import graph2vid` is quick, and the packages import in one direction."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import graph2vid

PACKAGE = Path(graph2vid.__file__).parent

# The architecture: a package may import from the packages named here, itself and the base modules.
BASE_MODULES = {
    "",
    "_arrays",
    "_deprecated",
    "_evaluation_options",
    "_files",
    "_frames",
    "_memory",
    "_one_thread",
    "_options",
    "_processes",
    "_safetensors",
    "_stopping",
    "_training_options",
    "_transformer",
    "_values",
    "errors",
    "registry",
    "weights",
}
MAY_IMPORT = {
    "_stopping": {"_native"},
    "flow": set(),
    "tsort": {"flow", "_native"},
    "alignment": {"flow", "tsort", "_native"},
    "text": {"flow", "_native"},
    "evidence": {"flow"},
    "footage": {"flow", "evidence"},
    "grounding": {"flow", "tsort", "alignment", "evidence", "footage", "text"},
    "datasets": {"flow", "tsort", "evidence"},
    "learn": {"flow", "tsort", "alignment", "evidence", "text", "datasets", "evaluate"},
    "evaluate": {"flow", "tsort", "alignment", "evidence", "grounding", "datasets", "text"},
    "export": {"flow", "alignment", "evidence", "footage", "grounding", "text"},
    "report": {"flow", "evidence", "grounding"},
    "sample": {"flow", "tsort", "alignment", "evidence", "grounding", "evaluate"},
    "batch": {"flow", "tsort", "alignment", "text", "evidence", "grounding"},
    "studio": {
        "flow",
        "tsort",
        "alignment",
        "text",
        "evidence",
        "footage",
        "grounding",
        "export",
        "report",
        "sample",
    },
    "selfcheck": {"flow", "tsort", "alignment", "evidence", "grounding", "evaluate", "sample", "_native"},
    "doctor": {"alignment", "_native"},
    "trials": {"flow", "text", "evidence", "learn", "sample", "studio"},
}


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout


def test_import_loads_nothing_heavy() -> None:
    heavy = ("networkx", "rich", "typer", "matplotlib", "numpy", "torch")
    loaded = run(f"import sys, graph2vid; print([name for name in {heavy} if name in sys.modules])")
    assert loaded.strip() == "[]"


def test_import_loads_few_modules() -> None:
    """How long that takes, ``python -m benchmarks.startup`` says."""
    own = run("import sys, graph2vid; print([name for name in sys.modules if name.startswith('graph2vid')])")
    assert own.strip() == "['graph2vid']"


# Modules that Python has on POSIX systems only; `fork` likewise.
WITHOUT_POSIX = """
import os, sys
POSIX = ("fcntl", "grp", "pty", "pwd", "resource", "syslog", "termios", "tty")
sys.modules |= dict.fromkeys((*POSIX, "torch"))  # importing them now fails; torch finds out itself where it is
for name in ("fork", "getuid", "geteuid", "killpg", "sched_getaffinity", "setsid"):
    if hasattr(os, name):
        delattr(os, name)
import signal
for name in ("SIGHUP", "SIGKILL", "SIGPIPE", "SIGUSR1"):
    delattr(signal, name)
"""

USE = """
import pkgutil
from importlib import import_module
import graph2vid
from graph2vid.cli import main
for package in ("flow", "text", "tsort", "alignment", "evidence", "grounding", "export", "report", "batch", "studio"):
    module = import_module(f"graph2vid.{package}")
    for inner in pkgutil.walk_packages(module.__path__, f"graph2vid.{package}."):
        try:
            import_module(inner.name)
        except ModuleNotFoundError as error:
            assert error.name not in POSIX, error
assert main(["selfcheck", "--cases", "20"]) == 0
assert main(["complexity", "--max-steps", "8"]) == 0
"""


def test_nothing_needs_posix_to_be_imported(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_POSIX + USE], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.mark.parametrize("arguments", [["--help"], ["ground", "--help"], ["--version"]])
def test_help_loads_nothing_heavy(arguments: list[str]) -> None:
    heavy = ["numpy", "networkx", "multiprocessing", "concurrent.futures", "graph2vid.flow", "graph2vid.alignment"]
    if arguments[0] == "ground":
        heavy += ["graph2vid.cli.evaluate_command", "graph2vid.cli.train_command"]
    if "coverage" in sys.modules:
        heavy.remove("multiprocessing")  # which measuring the lines of other processes loads
    loaded = run(
        f"import sys; from graph2vid.cli import main; main({arguments}); "
        f"print('loaded:', [name for name in {heavy} if name in sys.modules])"
    )
    assert loaded.splitlines()[-1] == "loaded: []"


@pytest.mark.parametrize("name", [name for name in graph2vid.__all__ if name != "__version__"])
def test_public_names_are_there(name: str) -> None:
    assert getattr(graph2vid, name) is not None
    assert name in dir(graph2vid)


def test_unknown_names_are_refused() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = graph2vid.nonsense


def imported_packages(path: Path) -> set[str]:
    """Return the packages of graph2vid that a source file imports from, type-checking imports left out."""
    packages = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            modules = [node.module or ""]
            if node.module == "graph2vid":
                modules = [f"graph2vid.{alias.name}" if is_module(alias.name) else "graph2vid" for alias in node.names]
        elif isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        else:
            continue
        packages |= {[*name.split("."), ""][1] for name in modules if name.split(".")[0] == "graph2vid"}
    return packages


def is_module(name: str) -> bool:
    return (PACKAGE / name).is_dir() or (PACKAGE / f"{name}.py").is_file() or name == "_native"


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_packages_import_in_one_direction(path: Path) -> None:
    package = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    if package in ("__init__", "__main__", "cli"):  # the entry points see everything
        return
    allowed = BASE_MODULES | {package} | MAY_IMPORT.get(package, set())
    assert imported_packages(path) <= allowed


OFFERED = {
    "alignment": {"alignment_plot"},
    "evidence": {"media", "speech"},
    "flow": {"flow_drawing", "flow_plot", "svg"},
    "studio": {"access", "app", "server"},
    "text": {"entity_drawing"},
    "tsort": {"speedup_plot"},
}
"""Modules beside a package's interface that others enter by name, since they load what is not always needed or there;
the package says so."""


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_packages_are_entered_through_their_interface(path: Path) -> None:
    """What a package imports from another one stands in the ``__init__`` of that, or of a package within it."""
    package = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("graph2vid."):
            _, other, *inner = node.module.split(".")
            folder = PACKAGE.joinpath(other, *inner)
            is_offered = set(inner) <= OFFERED.get(other, set())
            assert other == package or is_offered or folder.is_dir(), f"line {node.lineno}: import from its package"


@pytest.mark.parametrize("package", OFFERED)
def test_packages_say_which_of_their_modules_others_enter(package: str) -> None:
    words = import_module(f"graph2vid.{package}").__doc__ or ""
    assert {name for name in OFFERED[package] if f"``{name}``" not in words} == set()


def test_no_two_modules_share_a_name() -> None:
    names = [path.stem for path in PACKAGE.rglob("*.py") if path.stem != "__init__"]
    assert sorted(names) == sorted(set(names))


FACADE = {"Problem.__init__", "align", "align_many", "ground", "k_best", "posterior"}
"""What may take more than eight parameters, beside the commands of cli/."""


def test_functions_take_few_parameters() -> None:
    many = set()
    for path in PACKAGE.rglob("*.py"):
        for scope in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            for node in ast.iter_child_nodes(scope):
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                    names = [one.arg for one in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
                    if len([name for name in names if name not in ("self", "cls")]) > 8 and path.parent.name != "cli":
                        many.add(f"{scope.name}.{node.name}" if isinstance(scope, ast.ClassDef) else node.name)
    assert many <= FACADE
