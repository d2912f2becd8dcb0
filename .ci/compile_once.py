"""Compile each source once, however many builds ask for it: CMake's compiler launcher while `.ci/run` runs.

    CMAKE_CXX_COMPILER_LAUNCHER="python3;-I;.ci/compile_once.py"

The kernels are built three times, into .venv and into a wheel for each of two Pythons, and most of their sources know
nothing of Python. An object is taken from build/objects where the same compiler was asked for the same options and the
same text, all headers included; the text that is compared is the preprocessor's. Of builds that want the same object
at the same time, one compiles and the others wait for it.
"""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

OBJECTS = Path(__file__).resolve().parent.parent / "build" / "objects"
PLACES = ("-o", "-MF", "-MT", "-MQ", "-I", "-isystem")  # where files lie; what they hold is in the text


def main(command: list[str]) -> int:
    if "-c" not in command or "-o" not in command:  # it links, or CMake asks what the compiler can do
        return subprocess.run(command, check=False).returncode
    at = command.index("-o")
    wanted = Path(command[at + 1])
    # The depfile, too, is written here: it names the headers of this build.
    asked = [part for part in command[:at] + command[at + 2 :] if part != "-c"]
    text = subprocess.run([*asked, "-E", "-P"], stdout=subprocess.PIPE, check=False)
    if text.returncode:
        return text.returncode
    kept = OBJECTS / f"{key(command, text.stdout)}.o"
    OBJECTS.mkdir(parents=True, exist_ok=True)
    with kept.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not kept.exists():
            new = kept.with_suffix(".new.o")
            status = subprocess.run([*command[: at + 1], str(new), *command[at + 2 :]], check=False).returncode
            if status:
                return status
            new.replace(kept)
    shutil.copyfile(kept, wanted)
    return 0


def key(command: list[str], text: bytes) -> str:
    """Return what stands for the compiler, its options without places, and the text."""
    version = subprocess.run([command[0], "--version"], stdout=subprocess.PIPE, check=True).stdout
    options, parts = [], iter(command[1:])
    for part in parts:
        if part in PLACES:
            next(parts)
        elif not part.startswith("-I") and not (part.endswith(".cpp") and Path(part).is_file()):
            options.append(part)
    whole = b"\0".join([command[0].encode(), version, "\n".join(options).encode(), text])
    return hashlib.sha256(whole).hexdigest()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
