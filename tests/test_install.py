"""graph2vid installs without a compiler, and its core runs with its four dependencies alone."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

import graph2vid

ROOT = Path(__file__).parent.parent

ALIGN = """
import warnings
import numpy as np
import graph2vid as g2v

flow = g2v.FlowGraph.from_edges(["cut tomato", "cut cucumber", "mix"], [(0, 2), (1, 2)])
match = np.array([[9.0, 0.0, 9.0, 9.0], [0.0, 9.0, 9.0, 9.0], [9.0, 9.0, 9.0, 0.0]])
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("default")
    for _ in range(3):
        result = g2v.align(flow, match, 1.0)
assert result.labels.tolist() == [1, 0, -1, 2], result.labels
assert result.cost == 1.0, result.cost
"""

# Of all that is installed, only graph2vid, its four dependencies and what these need in turn can be imported.
CORE = """
import re
import sys
from importlib.metadata import PackageNotFoundError, packages_distributions, requires

needed, waiting = set(), ["numpy", "networkx", "typer", "rich"]
while waiting:
    name = re.sub("[-_.]+", "-", waiting.pop().lower())
    try:
        listed = requires(name) or []
    except PackageNotFoundError:
        continue  # needed on other systems only
    if name not in needed:
        needed.add(name)
        waiting += [re.match("[A-Za-z0-9._-]+", entry)[0] for entry in listed if "extra ==" not in entry]

BLOCKED = {
    module
    for module, names in packages_distributions().items()
    if all(re.sub("[-_.]+", "-", name.lower()) not in {*needed, "graph2vid"} for name in names)
}
assert BLOCKED >= {"matplotlib", "pytest", "hypothesis"}


class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in BLOCKED:
            raise ModuleNotFoundError(f"blocked by the test: {name}", name=name)


sys.meta_path.insert(0, Blocker())
"""

GROUND = """
g = g2v.ground(flow, scores=-match, clip_seconds=2.0)
assert g.order == (1, 0, 2)
from graph2vid.cli import main
assert main(["demo"]) == 0
assert main(["doctor"]) == 0
"""


def run(*command: str | Path, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    inherited = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "CC", "CXX")}
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=inherited | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def test_installs_without_a_compiler(tmp_path: Path) -> None:
    pytest.importorskip("scikit_build_core")
    source = tmp_path / "source"
    shutil.copytree(ROOT / "src", source / "src", ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    shutil.copytree(ROOT / "tools", source / "tools", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE", "NOTICE"):
        shutil.copy(ROOT / name, source / name)

    # Of the tools only those beside this interpreter are left: cmake and ninja, but no compiler.
    tools = {"PATH": sysconfig.get_path("scripts"), "CC": "/bin/false", "CXX": "/bin/false"}
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check")
    run(
        *pip,
        "wheel",
        "--no-deps",
        "--no-build-isolation",
        "--no-index",
        "-w",
        tmp_path,
        source,
        cwd=tmp_path,
        **tools,
    )
    (wheel,) = tmp_path.glob("*.whl")

    with zipfile.ZipFile(wheel) as packed:
        (metadata,) = (packed.read(name).decode() for name in packed.namelist() if name.endswith(".dist-info/METADATA"))
    assert f"Version: {graph2vid.__version__}\n" in metadata
    assert "make demo" in metadata and not re.search(r"\]\((?!https?://)", metadata)  # the README, without dead links

    # A virtual environment of its own, which borrows the dependencies of this one.
    venv = tmp_path / "venv"
    run(sys.executable, "-m", "venv", "--without-pip", venv, cwd=tmp_path)
    python = venv / "bin" / "python"
    run(*pip, "--python", python, "install", "--no-deps", "--no-index", wheel, cwd=tmp_path)
    (packages,) = venv.glob("lib/python*/site-packages")
    (packages / "borrowed.pth").write_text(f"{sysconfig.get_path('purelib')}\n", encoding="utf-8")

    where = run(python, "-c", "import graph2vid; print(graph2vid.__file__)", cwd=tmp_path).stdout
    assert Path(where.strip()).is_relative_to(venv)
    once = ALIGN + "slow = [str(w.message) for w in caught if 'slow' in str(w.message)]\nassert len(slow) == 1, slow\n"
    run(python, "-c", once, cwd=tmp_path)
    assert "not built" in " ".join(run(python, "-m", "graph2vid", "doctor", cwd=tmp_path).stdout.split())
    run(venv / "bin" / "graph2vid", "--version", cwd=tmp_path)


def test_core_needs_its_four_dependencies_alone(tmp_path: Path) -> None:
    run(sys.executable, "-c", CORE + ALIGN + GROUND, cwd=tmp_path)
