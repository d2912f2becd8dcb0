"""A voice for the narrated sample: the speech synthesiser espeak-ng."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import wave
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from graph2vid.errors import Graph2VidError, MissingDependencyError

PROGRAM = "espeak-ng"
RATE = 22_050
"""Samples per second of its voices."""

_SILENT = 0.01


def has_voice() -> bool:
    """Say whether the synthesiser is installed."""
    return shutil.which(PROGRAM) is not None


def speak(text: str, *, voice: str, words_per_minute: int, pitch: int) -> NDArray[np.float32]:
    """Return a sentence spoken, without silence around it, in -1 … 1 at :data:`RATE` samples per second."""
    if not has_voice():
        raise MissingDependencyError(f"a voice needs the program {PROGRAM}: apt-get install {PROGRAM}")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "voice.wav"
        command = [PROGRAM, "-v", voice, "-s", str(words_per_minute), "-p", str(pitch), "-w", str(path), "--", text]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode or not path.exists():
            raise Graph2VidError(f"{PROGRAM} did not speak: {done.stderr.strip() or f'status {done.returncode}'}")
        with wave.open(str(path)) as file:
            samples = np.frombuffer(file.readframes(file.getnframes()), dtype="<i2")
            rate = file.getframerate()
    if rate != RATE:
        raise Graph2VidError(f"{PROGRAM} speaks at {rate} samples per second, not at {RATE}")
    sound = samples.astype(np.float32) / np.float32(32768)
    loud = np.flatnonzero(np.abs(sound) > _SILENT)
    return sound[loud[0] : loud[-1] + 1] if len(loud) else sound[:0]
