"""Make the narrated sample anew: ``python -m tools.sample.make_video [FOLDER] [SEED]``.

The procedure, the words, the pictures and the sounds are ours: a script drawn with a seed (see ``script``), spoken by
espeak-ng (``apt-get install espeak-ng``), drawn frame by frame, and written with the true time of every step. Another
seed is another video of the same procedure: other order, words, voice and colours.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graph2vid._files import write_json, write_text
from graph2vid.errors import MissingDependencyError
from graph2vid.sample.load import FOLDER, TRUTH_KIND, TRUTH_VERSION
from graph2vid.sample.narrated import NarratedFiles
from tools.sample.scenes import HEIGHT, LOOKS, WIDTH, Look, picture
from tools.sample.script import FLOW, Script, write_script
from tools.sample.voice import RATE, speak

SEED = 0
FRAME_RATE = 8
_SENTENCE_GAP = 0.45
_VOICE_LEVEL = 0.5
_ROOM_LEVEL = 0.002
_SOUND_LEVEL = 0.02

# What one hears while a step is done.
_SIZZLE, _BUBBLE, _KNOCK = "sizzle", "bubble", "knock"
_SOUNDS = {
    "water": _BUBBLE,
    "pasta": _BUBBLE,
    "fry": _SIZZLE,
    "sauce": _SIZZLE,
    "chop": _KNOCK,
    "butter": _KNOCK,
    "toss": _KNOCK,
}


@dataclass(frozen=True)
class _Shot:
    """What is seen from ``start`` to ``end`` (seconds): a step, or the cook (empty)."""

    step: str
    start: float
    end: float


@dataclass(frozen=True)
class _Sentence:
    """What is said, from ``start`` on (seconds)."""

    start: float
    text: str
    sound: NDArray[np.float32]

    @property
    def end(self) -> float:
        return self.start + len(self.sound) / RATE


def make_video(folder: Path, seed: int = SEED) -> NarratedFiles:
    """Write a procedure and a narrated video of it into ``folder``.

    Parameters
    ----------
    folder : Path
        Where the files go; must be there.
    seed : int
        0 is the sample that comes with the package.

    Returns
    -------
    NarratedFiles
        What was written.
    """
    files = NarratedFiles(folder)
    script = write_script(seed)
    shots, sentences = _staged(script)
    duration = shots[-1].end
    sound = _sound(shots, sentences, duration, np.random.default_rng([seed, 11]))
    _encode(files.video, shots, sound, LOOKS[seed % len(LOOKS)])
    FLOW.save(files.flow)
    write_text(files.text, _written())
    write_text(files.captions, _captions(sentences))
    write_json(
        files.truth,
        {
            "format": TRUTH_KIND,
            "version": TRUTH_VERSION,
            "seed": seed,
            "duration": round(duration, 3),
            "other_words": script.other_words,
            "segments": [
                {"step": shot.step, "start": round(shot.start, 3), "end": round(shot.end, 3)}
                for shot in shots
                if shot.step
            ],
        },
    )
    return files


def _staged(script: Script) -> tuple[list[_Shot], list[_Sentence]]:
    """Lay the parts of a script one after the other, on the grid of the frames."""
    shots: list[_Shot] = []
    sentences: list[_Sentence] = []
    now = 0.0
    for part in script.parts:
        start, said = now, max(now + part.lead, sentences[-1].end + 0.2 if sentences else 0.0)
        for text in part.sentences:
            spoken = speak(text, voice=script.voice, words_per_minute=script.words_per_minute, pitch=script.pitch)
            sentences.append(_Sentence(said, text, spoken))
            said = sentences[-1].end + _SENTENCE_GAP
        now = round((sentences[-1].end + part.rest) * FRAME_RATE) / FRAME_RATE
        shots.append(_Shot(part.step, start, now))
    return shots, sentences


def _sound(
    shots: list[_Shot], sentences: list[_Sentence], duration: float, random: np.random.Generator
) -> NDArray[np.float32]:
    """Return the voice over the sounds of the kitchen [samples]."""
    count = round(duration * RATE)
    sound = (_ROOM_LEVEL * random.standard_normal(count)).astype(np.float32)
    for shot in shots:
        first, last = round(shot.start * RATE), min(round(shot.end * RATE), count)
        sound[first:last] += _noise(_SOUNDS.get(shot.step, ""), last - first, random)
    for sentence in sentences:
        first = round(sentence.start * RATE)
        sound[first : first + len(sentence.sound)] += _VOICE_LEVEL * sentence.sound[: count - first]
    return np.clip(sound, -1.0, 1.0)


def _noise(kind: str, count: int, random: np.random.Generator) -> NDArray[np.float32]:
    seconds = np.arange(count) / RATE
    noise = random.standard_normal(count)
    if kind == _SIZZLE:
        made = np.diff(noise, prepend=0.0) * (0.5 + 0.2 * np.sin(5 * seconds))
    elif kind == _BUBBLE:
        made = np.sin(2 * np.pi * (110 + 30 * np.sin(9 * seconds)) * seconds) * np.maximum(np.sin(14 * seconds), 0) ** 3
    elif kind == _KNOCK:
        made = noise * np.exp(-40 * (seconds % 0.45))
    else:
        return np.zeros(count, dtype=np.float32)
    fade = np.minimum(1.0, np.minimum(seconds, seconds[::-1]) / 0.3)
    return (_SOUND_LEVEL * made * fade).astype(np.float32)


def _written() -> str:
    """Return the procedure as a text for people."""
    steps = "\n".join(f"{number}. {text}" for number, text in enumerate(FLOW.texts, 1))
    return f"{FLOW.title}\n\n{steps}\n"


def _captions(sentences: list[_Sentence]) -> str:
    cues = [f"{_clock(said.start)} --> {_clock(said.end)}\n{said.text}\n" for said in sentences]
    return "\n".join(["WEBVTT\n", *cues])


def _clock(seconds: float) -> str:
    minutes, milliseconds = divmod(round(seconds * 1000), 60_000)
    return f"00:{minutes:02d}:{milliseconds // 1000:02d}.{milliseconds % 1000:03d}"


def _pictures(shots: list[_Shot], sound: NDArray[np.float32], look: Look) -> Iterator[NDArray[np.uint8]]:
    shot = 0
    for number in range(round(shots[-1].end * FRAME_RATE)):
        now = number / FRAME_RATE
        while now >= shots[shot].end:
            shot += 1
        heard = sound[round(now * RATE) : round((now + 1 / FRAME_RATE) * RATE)]
        loudness = min(4 * float(np.sqrt(np.mean(np.square(heard)))), 1.0) if len(heard) else 0.0
        yield picture(shots[shot].step, now - shots[shot].start, loudness, look)


def _encode(path: Path, shots: list[_Shot], sound: NDArray[np.float32], look: Look) -> None:
    try:
        import av
    except ImportError:
        raise MissingDependencyError("writing videos needs the package av", extra="media") from None

    temporary = path.with_name(f".{path.stem}.part{path.suffix}")
    try:
        with av.open(str(temporary), "w", options={"movflags": "faststart"}) as container:
            film: Any = container.add_stream("libx264", rate=FRAME_RATE, options={"crf": "27", "preset": "slow"})
            film.width, film.height, film.pix_fmt = WIDTH, HEIGHT, "yuv420p"
            track: Any = container.add_stream("aac", rate=RATE)
            track.layout, track.bit_rate = "mono", 48_000
            heard = 0
            for number, image in enumerate(_pictures(shots, sound, look)):
                frame = av.VideoFrame.from_ndarray(image, format="rgb24")
                frame.pts, frame.time_base = number, Fraction(1, FRAME_RATE)
                container.mux(film.encode(frame))
                while heard < min((number + 1) * RATE // FRAME_RATE, len(sound)):  # beside the picture, not after it
                    piece = av.AudioFrame.from_ndarray(sound[None, heard : heard + 1024], format="fltp", layout="mono")
                    piece.sample_rate, piece.pts, piece.time_base = RATE, heard, Fraction(1, RATE)
                    container.mux(track.encode(piece))
                    heard += 1024
            container.mux(film.encode(None))
            container.mux(track.encode(None))
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


if __name__ == "__main__":
    make_video(
        Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER,
        int(sys.argv[2]) if len(sys.argv) > 2 else SEED,
    )
