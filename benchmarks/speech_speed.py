"""How much quicker than real time speech is recognised: ``python benchmarks/speech_speed.py [--all]``.

Recognises the speech of the bundled sample's video with the bundled model, on all processors that the process may use
(``taskset -c 0,1`` gives it two): as graph2vid does it and, with ``--all``, in other ways. Prints, as JSON, how many
seconds of sound are recognised in a second of time and of processor time (the best of three), and the share of words
that are wrong (against the sample's captions). Loading the model is not counted.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Sequence
from time import perf_counter, process_time
from typing import Any

from graph2vid.evidence import Cue, read_captions, speech
from graph2vid.evidence.media import probe
from graph2vid.sample.narrated import NarratedFiles

TURNS = 3
SHIPPED = "as shipped"
WAYS: dict[str, dict[str, Any]] = {
    SHIPPED: {},
    "beam of 1": {"_OPTIONS": speech._OPTIONS | {"beam_size": 1}},
    "one stretch at a time": {"_MOST_WORKERS": 1},
    "two threads a stretch": {"_THREADS": 2},
    "the slow way": {"_REPETITIVE": 0.0},  # after the quick one: the two are added up
    "windows of 60 s": {"_WINDOW_SECONDS": 60.0},
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--all", action="store_true", help="Measure the other ways too.")
    given = asked.parse_args(arguments)
    files = NarratedFiles()
    seconds = probe(files.video).duration
    speech.load_model(speech.BUNDLED)
    written = words_of(read_captions(files.captions))
    found = {}
    for name, changed in WAYS.items() if given.all else [(SHIPPED, WAYS[SHIPPED])]:
        kept = {key: getattr(speech, key) for key in changed}
        for key, value in changed.items():
            setattr(speech, key, value)
        speech.load_model.cache_clear()  # workers and threads are a matter of loading
        speech.load_model(speech.BUNDLED)
        wall, processor, cues = zip(*(measure(files) for _ in range(TURNS)), strict=True)
        for key, value in kept.items():
            setattr(speech, key, value)
        found[name] = {
            "times_real_time": round(seconds / min(wall), 1),
            "times_real_time_per_processor": round(seconds / min(processor), 1),
            "words_wrong": round(distance(words_of(cues[0]), written) / len(written), 3),
        }
    print(json.dumps({"seconds_of_sound": round(seconds, 1), "ways": found}, indent=2))


def measure(files: NarratedFiles) -> tuple[float, float, tuple[Cue, ...]]:
    """Return the seconds that passed, those of the processors, and what was recognised."""
    wall, processor = perf_counter(), process_time()
    cues = speech.transcribe(files.video)
    return perf_counter() - wall, process_time() - processor, cues


def words_of(cues: Sequence[Cue]) -> list[str]:
    """Return the words of cues in lower case, without punctuation."""
    return [word for cue in cues for word in re.findall(r"[a-z']+", cue.text.lower())]


def distance(left: Sequence[str], right: Sequence[str]) -> int:
    """Return how many words must be put in, left out or replaced to turn one text into the other."""
    before = list(range(len(right) + 1))
    for row, word in enumerate(left, start=1):
        now = [row]
        for column, other in enumerate(right, start=1):
            now.append(min(before[column - 1] + (word != other), before[column] + 1, now[-1] + 1))
        before = now
    return before[-1]


if __name__ == "__main__":
    main()
