"""Build the sdist and from it a wheel for each Python found, install each wheel unpinned, and run the README.

For each Python (3.11 and newer; on the path or of pyenv) there is a fresh environment with the extras text and media,
the newest release of every dependency, and a working folder. Every command of the README's section on the command
line and every Python block is run there as written. One line is printed for each; the status is 1 if any failed.

    check_wheel.py [--python 3.12]… [--torch]

Python blocks that import torch need the extra learn. An unpinned torch brings gigabytes of CUDA, so they are run where
the release of constraints.txt can be had without it (`TORCH_FROM`), everywhere with --torch, and passed over
elsewhere.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DIST = ROOT / "dist"
WORK = ROOT / "build" / "check-wheel"
MINORS = range(11, 16)
TORCH_FROM = Path(os.environ.get("PIP_FIND_LINKS", "/nowhere"))
EXTRAS = "text,media"
INSTALL = re.compile(r"pip install '\.\[([\w,]+)\]'")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--python", action="append", metavar="3.X", help="Only this version; may be repeated.")
    parser.add_argument("--torch", action="store_true", help="Run the blocks that need torch with every Python.")
    parser.add_argument("--ends", action="store_true", help="Only the oldest and the newest that are found.")
    arguments = parser.parse_args()
    found = {name: path for name, path in pythons() if not arguments.python or name in arguments.python}
    if missing := sorted({*(arguments.python or ())} - {*found}):
        print(f"no Python {', '.join(missing)} was found")
        return 1
    if arguments.ends:
        found = {name: found[name] for name in [*found][:1] + [*found][1:][-1:]}
    for folder in (DIST, WORK):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
    sdist = build_sdist()
    failures = [f"{name}: {what}" for name, path in found.items() for what in check(name, path, sdist, arguments.torch)]
    print(f"{len(found)} Python{'s' if len(found) != 1 else ''}: {', '.join(found)}; {len(failures)} failed")
    for failure in failures:
        print(f"  {failure}")
    return 1 if failures else 0


def pythons() -> Iterator[tuple[str, str]]:
    """Find a Python of each version that graph2vid supports: on the path, else of pyenv."""
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    for minor in MINORS:
        name = f"3.{minor}"
        installed = sorted(root.glob(f"versions/{name}.*/bin/python{name}"), key=lambda path: len(str(path)))
        for candidate in (shutil.which(f"python{name}"), *map(str, reversed(installed))):
            ask = "import sys, venv, ensurepip; print('%d.%d' % sys.version_info[:2])"
            if candidate and run([candidate, "-c", ask]).stdout.strip() == name:
                yield name, candidate
                break


def run(command: list[str], cwd: Path = ROOT, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a command; nothing from outside decides what it finds."""
    hidden = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "PIP_CONSTRAINT", "PIP_REQUIRE_VIRTUALENV")
    environment = {key: value for key, value in os.environ.items() if key not in hidden}
    return subprocess.run(
        command,
        cwd=cwd,
        env=environment | {"PYTHONNOUSERSITE": "1", "PYTHONIOENCODING": "utf-8"} | variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        encoding="utf-8",
        errors="replace",
        check=False,
    )


def told(name: str, what: str, command: list[str], cwd: Path = ROOT, **variables: str) -> bool:
    """Run a command, print one line about it (and on failure the end of its output), and say whether it went well."""
    began = time.monotonic()
    done = run(command, cwd, **variables)
    verdict = "ok" if done.returncode == 0 else f"exit {done.returncode}"
    print(f"{name:5} {verdict:8} {time.monotonic() - began:6.1f} s  {what}", flush=True)
    if done.returncode:
        print("\n".join(f"      | {line}" for line in done.stdout.splitlines()[-25:]), flush=True)
    return done.returncode == 0


def build_sdist() -> Path:
    code = f"from scikit_build_core.build import build_sdist; build_sdist({str(DIST)!r})"
    if not told("", "build the sdist", [sys.executable, "-c", code]):
        sys.exit(1)
    (sdist,) = DIST.glob("*.tar.gz")
    return sdist


def check(name: str, python: str, sdist: Path, torch: bool) -> Iterator[str]:
    """Build, install and use the wheel for one Python; yield what failed."""
    place, folder = WORK / name, WORK / f"{name}-work"
    folder.mkdir()
    if not told(name, f"create an environment with {python}", [python, "-m", "venv", str(place)]):
        yield "venv"
        return
    scripts = place / ("Scripts" if os.name == "nt" else "bin")
    inside = str(scripts / "python")
    pip = [inside, "-m", "pip", "--disable-pip-version-check", "--no-input"]
    build = [*pip, "wheel", "-q", "--no-deps", "-w", str(WORK / f"{name}-wheel"), str(sdist)]
    if not told(name, f"build a wheel of {sdist.name}", build):
        yield "pip wheel"
        return
    (built,) = (WORK / f"{name}-wheel").glob("*.whl")
    wheel = Path(shutil.copy(built, DIST))
    install = [*pip, "install", "-q", f"{wheel}[{EXTRAS}]"]
    if not told(name, f"pip install '{wheel.name}[{EXTRAS}]'", install):
        yield "pip install"
        return
    path = {"PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}", "BROWSER": "true", "COLUMNS": "80"}
    path["GRAPH2VID_CACHE"] = str(WORK / f"{name}-cache")  # what was transcribed elsewhere does not help here
    for command in readme_commands():
        if not told(name, command, ["bash", "-euc", command], folder, **path):
            yield command
    plain, with_torch = readme_blocks()
    if not told(name, f"the README's Python ({len(plain)} blocks)", [inside, "-c", "".join(plain)], folder):
        yield "the README's Python"
    if with_torch:
        yield from check_torch(name, pip, wheel, "".join([*plain, *with_torch]), folder, torch)


def check_torch(name: str, pip: list[str], wheel: Path, code: str, folder: Path, everywhere: bool) -> Iterator[str]:
    """Install the extra learn, and run the blocks that need it."""
    pin = next(
        line for line in (ROOT / "constraints.txt").read_text("utf-8").splitlines() if line.startswith("torch==")
    )
    local = any(TORCH_FROM.glob(f"torch-*cp{name.replace('.', '')}-*.whl"))
    if not (everywhere or local):
        print(f"{name:5} skipped           the README's Python with torch: for this Python it brings gigabytes of CUDA")
        return
    wanted = [f"{wheel}[learn]", *([pin] if local else [])]
    if not told(name, f"pip install '{wheel.name}[learn]'", [*pip, "install", "-q", *wanted]):
        yield "pip install [learn]"
        return
    if not told(name, "the README's Python with torch", [pip[0], "-c", code], folder):
        yield "the README's Python with torch"


def readme_commands() -> list[str]:
    """Return the commands of the README's section on the command line, less the installation, which was done."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    (section,) = re.findall(r"^## The command line\n(.*?)^## ", text, flags=re.DOTALL | re.MULTILINE)
    lines = [line[4:] for line in section.replace("\\\n", " ").splitlines() if line.startswith("    ")]
    lines = [re.sub(r"  +", " ", re.sub(r" +#.*", "", line)) for line in lines]
    installed = [INSTALL.match(line) for line in lines]
    if not any(match and match[1] == EXTRAS for match in installed):
        sys.exit(f"the README no longer says how to install the extras {EXTRAS}")
    return [line for line, match in zip(lines, installed, strict=True) if not match]


def readme_blocks() -> tuple[list[str], list[str]]:
    """Return the Python blocks of the README: those that need no torch, and those that do."""
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), flags=re.DOTALL)
    needs = [bool(re.search(r"^import torch", block, flags=re.MULTILINE)) for block in blocks]
    pairs = list(zip(blocks, needs, strict=True))
    return [block for block, torch in pairs if not torch], [block for block, torch in pairs if torch]


if __name__ == "__main__":
    sys.exit(main())
