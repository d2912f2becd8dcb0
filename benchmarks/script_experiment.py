"""How well ``align-text`` finds the sentences of a script, and how its confidence was fitted.

    python benchmarks/script_experiment.py [--fit | --long]

Scripts are the paragraphs of this repository's documentation. Of each a transcript is made: paragraphs shuffled, a
fifth left out, others put between, words left out, put in and replaced by others at a word error rate of 5 to 30%.
Half of the scripts fit the confidence (``--fit`` prints it), the other half test it. ``--long`` takes the time of 3,000
sentences of made-up words and their transcript of two hours and a half, a tenth of it wrong.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np

from graph2vid.evidence import Cue, Word
from graph2vid.grounding import ORDERS, align_script
from graph2vid.text import Script, script_from_text

FOLDER = Path(__file__).resolve().parent.parent / "docs"
ERROR_RATES = (0.05, 0.1, 0.2, 0.3)
_MOST_REPEATED = 0.05  # of a page: where sentences are written twice, nobody knows which is said
_CODE = ("    ", "|", "```", "<", "!", "$", ":")


def scripts() -> list[Script]:
    """Return the prose of each page that has enough of it and does not repeat itself."""
    found = []
    for path in sorted(FOLDER.glob("*/*.md")):
        lines = ["" if line.startswith(_CODE) else line for line in path.read_text(encoding="utf-8").splitlines()]
        script = script_from_text("\n".join(lines))
        sentences = [one for paragraph in script for one in paragraph]
        repeated = len(sentences) - len({*sentences})
        if len(script) >= 8 and repeated <= _MOST_REPEATED * len(sentences):
            found.append(script)
    return found


def transcript(
    script: Script, others: list[str], rate: float, rng: np.random.Generator
) -> tuple[tuple[Cue, ...], list[float | None]]:
    """Return what a recogniser with this word error rate might write, and when each sentence begins."""
    numbers = np.cumsum([0, *map(len, script)])
    begins: list[float | None] = [None] * int(numbers[-1])
    words: list[Word] = []
    now = 0.0

    def say(text: str, wrong: float) -> None:
        nonlocal now
        for word in text.split():
            lasts = 0.1 + 0.05 * len(word)
            kind = rng.random()
            if kind >= wrong / 3:  # else it is left out
                told = word if kind >= wrong * 2 / 3 else str(rng.choice(others))
                words.append(Word(now, now + lasts, told))
            if kind > 1 - wrong / 3:
                words.append(Word(now + lasts / 2, now + lasts, str(rng.choice(others))))
            now += lasts
        now += 0.3

    for at in rng.permutation(len(script)):
        if rng.random() < 0.2:
            continue
        for place, sentence in enumerate(script[at]):
            begins[int(numbers[at]) + place] = now
            say(sentence, rate)
        if rng.random() < 0.3:
            say(" ".join(rng.choice(others, size=15)), 0.0)
    return (Cue(0.0, now, "", tuple(words)),), begins


def main() -> None:
    """Print what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fit", action="store_true", help="print a confidence fitted on half of the scripts")
    parser.add_argument("--long", action="store_true", help="measure the time of 3,000 sentences")
    given = parser.parse_args()
    long_script() if given.long else short_scripts(given.fit)


def short_scripts(fit: bool) -> None:
    """Print how many sentences are found, by word error rate, and how the confidence does."""
    rng = np.random.default_rng(0)
    pages = scripts()
    others = [word for page in pages for paragraph in page for one in paragraph for word in one.split()]
    rows = []  # page, rate, said, found, right, confidence, share, words
    for rate in ERROR_RATES:
        for number, page in enumerate(pages):
            cues, begins = transcript(page, others, rate, rng)
            found = align_script(page, cues).sentences
            texts = [one for paragraph in page for one in paragraph]
            for text, begin, one in zip(texts, begins, found, strict=True):
                right = one is not None and begin is not None and abs(one.start - begin) <= 1.0
                about = (0.0, 0.0) if one is None else (one.confidence, one.share)
                rows.append((number, rate, begin is not None, one is not None, right, *about, len(text.split())))
    table = np.array(rows, float)
    page_of, rate_of, said, shown, right, sure, share, count = table.T
    print("word errors  said  begins within 1 s  of found right  absent called so")
    for rate in ERROR_RATES:
        of = rate_of == rate
        values = right[of & (said > 0)].mean(), right[of & (shown > 0)].mean(), 1 - shown[of & (said == 0)].mean()
        print(f"{rate:11.0%}  {int(said[of].sum()):4d}  " + "  ".join(f"{one:14.1%}" for one in values))
    test = (page_of % 2 == 1) & (shown > 0)
    if fit:
        train = (page_of % 2 == 0) & (shown > 0)
        weights = _fitted(_inputs(share, count)[train], right[train])
        print("fitted:", tuple(round(float(one), 2) for one in weights))
        sure = 1 / (1 + np.exp(-_inputs(share, count) @ weights))
    print("on the other half of the pages:  stated  right  sentences")
    for low, high in ((0.0, 0.5), (0.5, 0.8), (0.8, 0.95), (0.95, 0.99), (0.99, 1.01)):
        of = test & (sure >= low) & (sure < high)
        if of.any():
            print(f"{'':31}  {sure[of].mean():6.1%}  {right[of].mean():5.1%}  {int(of.sum()):9d}")


def long_script() -> None:
    """Print how long 3,000 sentences take, in either order of paragraphs."""
    rng = np.random.default_rng(0)
    words = np.array(["".join(rng.choice(list("abdegiklmnoprstu"), size=rng.integers(3, 9))) for _ in range(6000)])
    often = 1 / np.arange(10, 6010)
    sentences = [" ".join(rng.choice(words, size=rng.integers(4, 16), p=often / often.sum())) for _ in range(3000)]
    script = tuple(tuple(f"{one}." for one in sentences[at : at + 10]) for at in range(0, 3000, 10))
    cues, begins = transcript(script, words.tolist(), 0.1, rng)
    print(f"{len(sentences)} sentences, {len(cues[0].words)} words in {cues[0].end / 3600:.1f} hours")
    for order in ORDERS:
        began = time.perf_counter()
        found = align_script(script, cues, order=order)
        took = time.perf_counter() - began
        right = [
            one is not None and abs(one.start - begin) <= 1
            for one, begin in zip(found.sentences, begins, strict=True)
            if begin is not None
        ]
        print(f"{order}: {took:.1f} s, gap {found.gap:.4g}, {np.mean(right):.1%} of the spoken ones begin within 1 s")


def _inputs(share: np.ndarray, count: np.ndarray) -> np.ndarray:
    return np.stack([np.ones(len(share)), share, np.log(np.maximum(count, 1))], axis=1)


def _fitted(inputs: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Fit a logistic regression by Newton's steps."""
    weights = np.zeros(inputs.shape[1])
    for _ in range(30):
        sure = 1 / (1 + np.exp(-inputs @ weights))
        curvature = (inputs * (sure * (1 - sure))[:, None]).T @ inputs + 1e-3 * np.eye(len(weights))
        weights += np.linalg.solve(curvature, inputs.T @ (right - sure) - 1e-3 * weights)
    return weights


if __name__ == "__main__":
    main()
