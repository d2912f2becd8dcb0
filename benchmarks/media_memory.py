"""How much memory an hour of video takes: ``python benchmarks/media_memory.py [SECONDS]``.

Makes a video of that length (3600 s by default; small frames, one per second; tones, silence and, now and then, the
speech of the bundled sample) and reads it in a process of its own: what is in it, its sound, its frames, its speech,
and its clips as embedders take them (frame by frame and, for ten minutes, in windows of 32, prepared as CLIP and S3D
want them but without the models). Prints the peak of the resident memory after each, and the time it took, as JSON.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

SOUND_RATE = 16_000
SPEECH_EVERY = 1200
"""Seconds from one stretch of speech to the next."""

READ = """
import json, sys, time
from pathlib import Path

def peak():
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 1024

import numpy as np
from graph2vid.evidence.embed import Embedder, video_clips
from graph2vid.evidence.embed.frames import clips_by_frame, clips_by_window
from graph2vid.evidence.media import audio, frames, probe
from graph2vid.evidence.speech import transcribe

def prepare(image):
    return np.full((3, 224, 224), image.mean(), dtype=np.float32)

def embed(batch):
    return np.stack([np.mean(one, axis=tuple(range(1, one.ndim))) for one in np.stack(batch)])[:, :1]

def by_frame(frames, grid):
    return clips_by_frame(frames, grid, prepare, embed, rate=2.0, dimension=1)

def by_window(frames, grid):
    return clips_by_window(frames, grid, prepare, embed, rate=10.0, length=32, dimension=1)

path, found = sys.argv[1], {}
def run(name, work):
    start = time.perf_counter()
    result = work()
    found[name] = {"peak_mb": round(peak(), 1), "seconds": round(time.perf_counter() - start, 2), "result": result}

run("probe", lambda: round(probe(path).duration, 1))
run("audio", lambda: sum(len(chunk) for chunk in audio(path)))
run("frames", lambda: sum(1 for _ in frames(path, rate=1.0, size=64)))
run("transcribe", lambda: len(transcribe(path)))
run("embed frames", lambda: len(video_clips(path, Embedder("f", "", 1, clip_function=by_frame))))
windows = Embedder("w", "", 1, clip_function=by_window, frame_rate=10.0)
run("embed windows", lambda: len(video_clips(path, windows, n_clips=600)))
print(json.dumps(found))
"""


def make(path: Path, seconds: int, speech: NDArray[np.float32]) -> None:
    """Write a video of so many seconds."""
    import av

    with av.open(str(path), "w") as container:
        film: Any = container.add_stream("libx264", rate=1, options={"preset": "ultrafast"})
        film.width, film.height, film.pix_fmt = 128, 72, "yuv420p"
        track: Any = container.add_stream("aac", rate=SOUND_RATE)
        track.layout, track.bit_rate = "mono", 32_000
        for second in range(seconds):
            frame = av.VideoFrame.from_ndarray(np.full((72, 128, 3), second % 256, dtype=np.uint8), format="rgb24")
            frame.pts, frame.time_base = second, Fraction(1)
            container.mux(film.encode(frame))
            sound = sound_of(second, speech)
            for start in range(0, SOUND_RATE, 1000):
                piece = av.AudioFrame.from_ndarray(sound[None, start : start + 1000], format="fltp", layout="mono")
                piece.sample_rate, piece.time_base = SOUND_RATE, Fraction(1, SOUND_RATE)
                piece.pts = second * SOUND_RATE + start
                container.mux(track.encode(piece))
        container.mux(film.encode(None))
        container.mux(track.encode(None))


def sound_of(second: int, speech: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return one second of sound: speech, then tones and silence in turn."""
    into = second % SPEECH_EVERY * SOUND_RATE
    if into + SOUND_RATE <= len(speech):
        return speech[into : into + SOUND_RATE]
    times = np.arange(SOUND_RATE) / SOUND_RATE
    tone = 0.1 * np.sin(2 * np.pi * (200 + second % 300) * times) * (second % 7 < 3)
    return tone.astype(np.float32)


def measure(seconds: int) -> dict[str, Any]:
    """Make a video, read it in another process, and return what that took."""
    from graph2vid.evidence.media import audio
    from graph2vid.sample.narrated import NarratedFiles

    speech = np.concatenate(list(audio(NarratedFiles().video, SOUND_RATE)))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "long.mp4"
        make(path, seconds, speech)
        command = [sys.executable, "-c", READ, str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


if __name__ == "__main__":
    print(json.dumps(measure(int(sys.argv[1]) if len(sys.argv) > 1 else 3600), indent=2))
