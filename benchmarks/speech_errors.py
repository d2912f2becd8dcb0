"""Words that are wrong under noise: ``python -m benchmarks.speech_errors [--decibels 5] [--seeds 3]``.

Mixes pink noise into the sound of the narrated sample, so many decibels below the voice, and transcribes it with each
model (tiny.en, base): without hot words, with the words of the steps, and with the steps as sentences, as
``--hot-words`` does. Prints a Markdown table: word error rate against the captions that the voice was made from (mean
over the seeds of the noise), the share recognised of the procedure's words that are said, and processor time.
"""

from __future__ import annotations

import argparse
import tempfile
import wave
from pathlib import Path
from time import process_time

import numpy as np
from numpy.typing import NDArray

from benchmarks.speech_speed import distance, words_of
from graph2vid.evidence import content_words, read_captions, speech
from graph2vid.evidence.media import SAMPLE_RATE, audio
from graph2vid.flow import FlowGraph
from graph2vid.sample.narrated import NarratedFiles


def noisy(sound: NDArray[np.float32], decibels: float, seed: int) -> NDArray[np.float32]:
    """Return the sound under pink noise: its power is ``decibels`` below that of the voice, where there is voice."""
    random = np.random.default_rng(seed)
    spectrum = np.fft.rfft(random.standard_normal(len(sound)))
    spectrum /= np.sqrt(np.maximum(np.arange(len(spectrum)), 1.0))
    noise = np.fft.irfft(spectrum, len(sound))
    frames = sound[: len(sound) // 400 * 400].reshape(-1, 400)
    power = np.square(frames, dtype=np.float64).mean(axis=1)
    voice = power[power > 0.1 * np.percentile(power, 95)].mean()
    noise *= np.sqrt(voice / np.square(noise).mean() / 10 ** (decibels / 10))
    return (sound + noise).astype(np.float32)


def write_sound(path: Path, sound: NDArray[np.float32]) -> None:
    """Write a WAV file."""
    scaled = np.clip(sound / max(float(np.abs(sound).max()), 1.0), -1.0, 1.0)
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(SAMPLE_RATE)
        file.writeframes((32767 * scaled).astype("<i2").tobytes())


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--decibels", type=float, default=5.0)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--models", default="tiny.en,base")
    asked = parser.parse_args()
    files = NarratedFiles()
    written = words_of(read_captions(files.captions))
    texts = FlowGraph.load(files.flow).texts
    hot = " ".join(dict.fromkeys(word for text in texts for word in content_words(text)))
    wanted = set(hot.split()) & set(written)
    clean = np.concatenate(list(audio(files.video)))
    print(
        f"| model | hot words | word error at {asked.decibels:g} dB | words of the procedure recognised | processor s |"
    )
    print("| --- | --- | ---: | ---: | ---: |")
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{seed}.wav" for seed in range(asked.seeds)]
        for seed, path in enumerate(paths):
            write_sound(path, noisy(clean, asked.decibels, seed))
        for model in asked.models.split(","):
            for words in ("", hot, " ".join(texts)):
                began = process_time()
                found = [
                    words_of(speech.transcribe(path, model=model, language="en", hot_words=words)) for path in paths
                ]
                spent = (process_time() - began) / len(paths)
                wrong = np.mean([distance(one, written) / len(written) for one in found])
                right = np.mean([len(wanted & set(one)) / len(wanted) for one in found])
                name = {"": "none", hot: "words of the steps"}.get(words, "the steps as sentences")
                print(f"| {model} | {name} | {wrong:.1%} | {right:.0%} | {spent:.1f} |", flush=True)


if __name__ == "__main__":
    main()
