"""On-screen text on rendered videos: ``python -m benchmarks.screen_text [--videos 20] [--first-seed 0] [--json FILE]``.

Each video is drawn with a seed: a procedure of seven to nine steps in a legal order that is mostly not the written one,
captions in their own words in a random font, size, place, colour and box, of random durations, some fading in or typed
out, with jitter, over moving pictures with noise, compressed hard; beside them a title, a list of ingredients, a
watermark, and remarks that name no step. Printed are, per video: captions found (recall) and by how much they begin
off, cues that are no text of the video (false cues), and steps that begin within two seconds of the truth.
The settings were chosen on the seeds from 100 on; those from 0 on are for the result.

``--long 60`` makes an hour of silent video in 480p of one of them and reads it: seconds of processor time, memory. What
is interrupted goes on where it stopped when it is run again with the same ``--folder``.
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graph2vid.evidence import Cache, Cue, Transcript
from graph2vid.evidence.ocr import CAPTION, WATERMARK, read_screen, screen_cues
from graph2vid.flow import FlowGraph
from graph2vid.grounding import ground

NEAR = 2.0
"""Seconds within which a step counts as found."""

WIDTH, HEIGHT, FRAME_RATE = 854, 480, 10

# Steps as they are written, and as captions may say them.
PROCEDURES: tuple[tuple[str, tuple[tuple[str, tuple[str, ...]], ...], tuple[tuple[int, int], ...]], ...] = (
    (
        "Vegetable soup",
        (
            ("Peel and dice the carrots.", ("Dice carrots", "Peel & dice the carrots", "Carrots: peel and dice")),
            ("Slice the leek into rings.", ("Slice the leek", "Cut leek into rings")),
            ("Heat olive oil in a large pot.", ("Heat the oil", "Heat olive oil in a pot")),
            ("Cook the vegetables for five minutes.", ("Cook veggies 5 min", "Cook the vegetables")),
            ("Pour in the stock and bring to a boil.", ("Add stock, bring to boil", "Pour in the stock")),
            ("Season with salt and pepper.", ("Salt & pepper", "Season to taste with salt and pepper")),
            ("Blend the soup until smooth.", ("Blend until smooth", "Blend the soup")),
            ("Ladle the soup into bowls and top with cream.", ("Top with cream", "Ladle into bowls")),
        ),
        ((0, 3), (1, 3), (2, 3), (3, 4), (4, 5), (4, 6), (5, 7), (6, 7)),
    ),
    (
        "How to repot a plant",
        (
            ("Water the plant an hour before.", ("Water the plant first", "Water plant 1 hour before")),
            ("Put gravel at the bottom of the new pot.", ("Gravel goes in first", "Add gravel to the new pot")),
            ("Fill the pot one third with fresh soil.", ("Fill 1/3 with fresh soil", "Add fresh soil")),
            ("Pull the plant gently out of the old pot.", ("Gently pull the plant out", "Remove from the old pot")),
            ("Loosen the roots with your fingers.", ("Loosen the roots", "Untangle roots by hand")),
            ("Place the plant in the middle of the pot.", ("Center the plant", "Place plant in the middle")),
            ("Fill the gaps with soil and press it down.", ("Fill gaps, press soil down", "Press down the soil")),
        ),
        ((0, 3), (1, 2), (2, 5), (3, 4), (4, 5), (5, 6)),
    ),
    (
        "Change a bicycle tyre",
        (
            ("Open the brake.", ("Open the brake", "Release brake")),
            ("Take the wheel off the frame.", ("Take off the wheel", "Remove wheel from frame")),
            ("Lever the tyre off the rim.", ("Lever the tyre off", "Use levers to lift the tyre")),
            ("Pull out the old tube.", ("Pull out old tube", "Remove the inner tube")),
            ("Check the tyre for glass and thorns.", ("Check tyre for thorns", "Look for glass")),
            ("Inflate the new tube a little.", ("Inflate new tube slightly", "Pump a bit of air into the tube")),
            ("Fit the tube and the tyre onto the rim.", ("Fit tube + tyre on the rim", "Tyre back onto the rim")),
            ("Pump it up to full pressure.", ("Pump to full pressure", "Pump it up")),
            ("Put the wheel back and close the brake.", ("Wheel back in, close brake", "Mount wheel, close the brake")),
        ),
        ((0, 1), (1, 2), (2, 3), (3, 4), (3, 6), (4, 6), (5, 6), (6, 7), (7, 8)),
    ),
    (
        "Banana bread",
        (
            ("Preheat the oven to 350 degrees.", ("Preheat oven to 350°F", "Preheat the oven")),
            ("Mash the bananas with a fork.", ("Mash bananas", "Mash the bananas with a fork")),
            ("Melt the butter.", ("Melt butter", "Melt the butter")),
            ("Whisk the eggs with the sugar.", ("Whisk eggs & sugar", "Whisk the eggs with sugar")),
            ("Stir the bananas and the butter into the eggs.", ("Add bananas and butter to eggs", "Stir in bananas")),
            ("Fold in flour and baking soda.", ("Fold in the flour", "Fold in flour + baking soda")),
            ("Pour the batter into a greased loaf pan.", ("Pour batter into loaf pan", "Into a greased pan")),
            ("Bake for one hour.", ("Bake 1 hour", "Bake for 60 minutes")),
            ("Let it cool and slice.", ("Cool, then slice", "Let cool before slicing")),
        ),
        ((0, 7), (1, 4), (2, 4), (3, 4), (4, 5), (5, 6), (6, 7), (7, 8)),
    ),
)
REMARKS = (
    "So good!",
    "My favourite part",
    "Almost there...",
    "Don't rush this",
    "10:00",
    "Wait for it",
    "Yummy",
    "2x speed",
)
NAMES = ("@homemade.diy", "MY CHANNEL", "www.easyhow.com", "@slowliving")
LISTS = (
    ("INGREDIENTS", "2 cups flour", "1 tsp salt", "3 large eggs"),
    ("You will need:", "500 g potting soil", "1 pot"),
    ("1 kg carrots", "2 tbsp olive oil", "1 l stock"),
)


@dataclass
class Written:
    """A text in the picture: lines, from ``start`` to ``end``; ``step``, if it is the caption of one."""

    lines: tuple[str, ...]
    start: float
    end: float
    step: int | None = None


@dataclass
class Video:
    """What is rendered: the procedure, the texts, and when each step is shown."""

    flow: FlowGraph
    texts: list[Written]
    truth: dict[int, tuple[float, float]]
    duration: float
    style: dict[str, Any] = field(default_factory=dict)


def script(seed: int) -> Video:
    """Draw a video with a seed."""
    random = np.random.default_rng([seed, 22])
    title, steps, edges = PROCEDURES[seed % len(PROCEDURES)]
    flow = FlowGraph.from_edges([text for text, _ in steps], list(edges), title=title)
    numbered = bool(random.random() < 0.2)
    order = list(range(len(steps))) if numbered else _another_order(flow, random)
    texts: list[Written] = []
    truth = {}
    now = 0.0
    if random.random() < 0.7:
        texts.append(Written((title,), 0.0, 3.0))
        now = 3.5
    if random.random() < 0.6:
        texts.append(Written(LISTS[int(random.integers(len(LISTS)))], now, now + 4.0))
        now += 4.5
    style = random.choice(["whole", "begin"])
    for place, step in enumerate(order):
        lasts = float(random.uniform(3.5, 9.0))
        written = str(random.choice(steps[step][1]))
        if numbered:
            written = (f"Step {place + 1}: {written}", f"{place + 1}/{len(order)} {written}")[seed % 2]
        shown = lasts - 0.3 if style == "whole" else max(2.2, 0.5 * lasts)
        texts.append(Written(_wrapped(written, random), now, now + shown, step))
        truth[step] = (now, now + lasts)
        now += lasts
        if random.random() < 0.25:
            texts.append(Written((str(random.choice(REMARKS)),), now + 0.2, now + 2.0))
            now += 2.2
        elif random.random() < 0.25:
            now += float(random.uniform(1.0, 3.0))
    if random.random() < 0.6:
        texts.append(Written(("Thanks for watching!",), now, now + 2.5))
        now += 2.5
    if random.random() < 0.7:
        texts.append(Written((str(random.choice(NAMES)),), 0.0, now))
    return Video(flow, texts, truth, now)


def _another_order(flow: FlowGraph, random: np.random.Generator) -> list[int]:
    left, order = set(range(len(flow))), []
    while left:
        ready = [step for step in sorted(left) if not set(flow.predecessors[step]) & left]
        order.append(int(random.choice(ready)))
        left.remove(order[-1])
    return order


def _wrapped(text: str, random: np.random.Generator) -> tuple[str, ...]:
    words = text.split()
    if len(words) > 3 and random.random() < 0.35:
        return " ".join(words[: len(words) // 2]), " ".join(words[len(words) // 2 :])
    return (text,)


def _fonts() -> list[Path]:
    import matplotlib

    folder = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
    names = ["DejaVuSans", "DejaVuSans-Bold", "DejaVuSerif", "DejaVuSansMono-Bold", "DejaVuSerif-BoldItalic"]
    names += ["STIXGeneral", "STIXGeneralBol", "DejaVuSans-Oblique", "STIXGeneralItalic"]
    return [folder / f"{name}.ttf" for name in names]


def pictures(video: Video, seed: int) -> Iterator[NDArray[np.uint8]]:
    """Draw the frames of a video."""
    from PIL import Image, ImageDraw, ImageFont

    random = np.random.default_rng([seed, 23])
    file = str(random.choice([str(path) for path in _fonts()]))
    size = int(random.integers(24, 44))
    place = random.choice(["low", "low", "high", "middle", "left"])
    boxed, outlined = random.random() < 0.4, random.random() < 0.6
    ink = [(255, 255, 255), (255, 240, 120), (20, 20, 20)][int(random.integers(3))]
    dark = sum(ink) < 200
    jitter = float(random.choice([0.0, 0.0, 1.0, 2.0]))
    enters = random.choice(["cut", "cut", "fade", "typed"])
    noise = float(random.uniform(0.0, 10.0))
    shapes = [random.uniform(0, 1, 8) for _ in range(14)]
    usual, large, tiny = (ImageFont.truetype(file, one) for one in (size, int(1.5 * size), 18))
    ground_colours = [tuple(int(one) for one in random.integers(50, 210, 3)) for _ in range(len(video.truth) + 2)]
    spans = sorted(video.truth.values())
    for number in range(round(video.duration * FRAME_RATE)):
        now = number / FRAME_RATE
        shot = sum(start <= now for start, _ in spans)
        image = Image.new("RGB", (WIDTH, HEIGHT), ground_colours[shot])
        pen = ImageDraw.Draw(image, "RGBA")
        for at, (x, y, u, v, wide, red, green, blue) in enumerate(shapes):
            cx = WIDTH * ((x + 0.05 * (u - 0.5) * now + 0.13 * shot) % 1.0)
            cy = HEIGHT * ((y + 0.05 * (v - 0.5) * now + 0.07 * shot) % 1.0)
            r = 20 + 90 * wide
            colour = (int(255 * red), int(255 * green), int(255 * blue), 255)
            (pen.ellipse if at % 2 else pen.rectangle)((cx - r, cy - r / 2, cx + r, cy + r / 2), fill=colour)
        for text in video.texts:
            if not text.start <= now < text.end:
                continue
            always = text.end - text.start > 0.9 * video.duration
            lines, alpha = text.lines, 255
            if text.step is not None and enters == "fade":
                alpha = int(255 * min(1.0, (now - text.start) / 0.6, (text.end - now) / 0.4))
            if text.step is not None and enters == "typed":
                letters = int(25 * (now - text.start)) + 1
                lines = tuple("\n".join(lines)[:letters].split("\n"))
            font = tiny if always else large if text.step is None and text.start == 0.0 else usual
            dx, dy = random.normal(0, jitter, 2) if jitter else (0.0, 0.0)
            anchor, xy = (
                "mm",
                {"low": (WIDTH / 2, 0.84 * HEIGHT), "high": (WIDTH / 2, 0.14 * HEIGHT)}.get(
                    str(place), (WIDTH / 2, HEIGHT / 2)
                ),
            )
            if place == "left":
                anchor, xy = "lm", (0.05 * WIDTH, 0.7 * HEIGHT)
            if always:
                anchor, xy = "rm", (0.97 * WIDTH, 0.05 * HEIGHT)
            xy = (xy[0] + dx, xy[1] + dy)
            joined = "\n".join(lines)
            around = pen.multiline_textbbox(xy, joined, font, anchor=anchor, spacing=6)
            if boxed and not always:
                back = (245, 245, 240, 225) if dark else (25, 25, 30, 225)
                pen.rectangle((around[0] - 10, around[1] - 6, around[2] + 10, around[3] + 6), fill=(*back[:3], alpha))
            edge: dict[str, Any] = {
                "stroke_width": 2,
                "stroke_fill": ((255, 255, 255) if dark else (0, 0, 0)) + (alpha,),
            }
            if not outlined and boxed:
                edge = {}
            pen.multiline_text(xy, joined, (*ink, alpha), font, anchor=anchor, spacing=6, align="center", **edge)
        frame = np.asarray(image, dtype=np.float32)
        if noise:
            grain = random.normal(0, noise, (HEIGHT // 2, WIDTH // 2, 1)).astype(np.float32)
            frame = frame + np.repeat(np.repeat(grain, 2, axis=0), 2, axis=1)
        yield np.clip(frame, 0, 255).astype(np.uint8)


def render(path: Path, video: Video, seed: int) -> None:
    """Write a video."""
    import av

    crf = int(np.random.default_rng([seed, 24]).integers(24, 38))
    temporary = path.with_name(f"part-{path.name}")
    with av.open(str(temporary), "w") as container:
        film: Any = container.add_stream("libx264", rate=FRAME_RATE, options={"crf": str(crf), "preset": "veryfast"})
        film.width, film.height, film.pix_fmt = WIDTH, HEIGHT, "yuv420p"
        for number, image in enumerate(pictures(video, seed)):
            frame = av.VideoFrame.from_ndarray(image, format="rgb24")
            frame.pts, frame.time_base = number, Fraction(1, FRAME_RATE)
            container.mux(film.encode(frame))
        container.mux(film.encode(None))
    temporary.rename(path)


def measure(folder: Path, seed: int) -> dict[str, Any]:
    """Render a video (once), read it, ground it; return what was found."""
    video, path = script(seed), folder / f"screen-{seed}.mp4"
    if not path.exists():
        render(path, video, seed)
    began = time.process_time()
    readings = read_screen(path, video.duration, cache=Cache(folder / "cache"))
    cues = screen_cues(readings, video.duration)
    spent = time.process_time() - began
    captions = [text for text in video.texts if text.step is not None]
    found, off = 0, []
    for text in captions:
        match = [cue for cue in cues if cue.kind == CAPTION and _same(text, cue.text) and _overlap(text, cue) > 0.3]
        if match:
            found += 1
            off.append(abs(match[0].start - text.start))
    false = [cue.text for cue in cues if not any(_same(text, cue.text) for text in video.texts)]
    kinds = [cue for cue in cues if cue.kind != CAPTION and any(_same(text, cue.text) for text in captions)]
    kinds += [cue for cue in cues if cue.kind != WATERMARK and any(cue.text == name for name in NAMES)]
    grounding = ground(video.flow, Transcript(cues, video.duration, "on-screen text"), confidence=False, cache=False)
    near = sum(
        bool(parts := grounding.segments_of(step)) and abs(parts[0].start - start) <= NEAR
        for step, (start, _) in video.truth.items()
    )
    return {
        "seed": seed,
        "seconds": round(video.duration, 1),
        "captions": len(captions),
        "found": found,
        "off": round(float(np.mean(off)), 2) if off else None,
        "false": false,
        "wrong_kind": len(kinds),
        "steps": len(video.truth),
        "near": near,
        "readings": len(readings),
        "processor_seconds": round(spent, 1),
    }


def _same(text: Written, cue: str) -> bool:
    whole = "".join(" ".join(text.lines).casefold().split())
    read = "".join(cue.casefold().split())
    return SequenceMatcher(None, whole, read, autojunk=False).ratio() > 0.75


def _overlap(text: Written, cue: Cue) -> float:
    return (min(text.end, cue.end) - max(text.start, cue.start)) / (text.end - text.start)


def long(folder: Path, minutes: float, seed: int = 2) -> dict[str, Any]:
    """Read a long silent video, 480p: a rendered video as it was encoded, again and again."""
    import av

    path, duration = folder / f"long-{minutes:g}.mp4", 60.0 * minutes
    part = folder / f"screen-{seed}.mp4"
    if not part.exists():
        render(part, script(seed), seed)
    if not path.exists():
        temporary, began = folder / f"part-{path.name}", 0.0
        with av.open(str(temporary), "w") as container:
            film: Any = None
            while began < duration:
                with av.open(str(part)) as source:
                    stream = source.streams.video[0]
                    film = film or container.add_stream_from_template(stream)
                    ends = began
                    for packet in source.demux(stream):
                        if packet.dts is None or packet.pts is None:
                            continue
                        shift = round(began / packet.time_base)
                        ends = max(ends, float((packet.pts + shift + (packet.duration or 0)) * packet.time_base))
                        packet.pts, packet.dts, packet.stream = packet.pts + shift, packet.dts + shift, film
                        container.mux(packet)
                began = ends
        temporary.rename(path)
    wall, processor, cache = time.monotonic(), time.process_time(), Cache(folder / "cache")
    readings = read_screen(path, duration, cache=cache)
    return {
        "minutes": minutes,
        "readings": len(readings),
        "cues": len(screen_cues(readings, duration)),
        "parts_kept_from_before": cache.hits,
        "seconds": round(time.monotonic() - wall),
        "processor_seconds": round(time.process_time() - processor),
        "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }


def main() -> None:
    """Print a table, or the line of an hour."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--videos", type=int, default=20)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--folder", type=Path, help="where videos are kept; by default they are not")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--long", type=float, metavar="MINUTES")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = asked.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        if asked.long:
            print(json.dumps(long(folder, asked.long)))
            return
        rows = []
        print("seed  seconds  captions found  off (s)  false cues  wrong kind  steps within 2 s  readings  processor s")
        for seed in range(asked.first_seed, asked.first_seed + asked.videos):
            row = measure(folder, seed)
            rows.append(row)
            print(
                f"{seed:4}  {row['seconds']:7}  {row['found']:8} of {row['captions']:2}  {row['off']!s:>7}  "
                f"{len(row['false']):10}  {row['wrong_kind']:10}  {row['near']:10} of {row['steps']:2}  "
                f"{row['readings']:8}  {row['processor_seconds']:11}",
                flush=True,
            )
        total = {name: sum(row[name] for row in rows) for name in ("captions", "found", "steps", "near", "wrong_kind")}
        false, minutes = sum(len(row["false"]) for row in rows), sum(row["seconds"] for row in rows) / 60
        print(
            f"captions found: {total['found']} of {total['captions']} ({total['found'] / total['captions']:.1%}); "
            f"false cues: {false} in {minutes:.0f} minutes; steps found: {total['near']} of {total['steps']} "
            f"({total['near'] / total['steps']:.1%})"
        )
        if asked.json is not None:
            asked.json.write_text(json.dumps({"rows": rows, "total": total | {"false": false}}, indent=1), "utf-8")


if __name__ == "__main__":
    main()
