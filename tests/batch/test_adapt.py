"""``batch --adapt``: learns from all rows of a procedure, grounds them with it, and goes on with the same model."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("pyarrow")

import pyarrow.parquet as pq

import graph2vid as g2v
from graph2vid.batch import RunOptions, run_batch
from graph2vid.evidence import Cache

STEPS = ["crack the eggs", "toast the bread"]
CUES = ["hello and welcome", "crack an egg here", "egg goes in", "thanks for that", "toast some bread", "golden toast"]


@pytest.mark.filterwarnings("ignore:.*rows changed since")
def test_a_corpus_teaches_itself(tmp_path: Path) -> None:
    rows = []
    for video in range(6):
        said = CUES[video % 3 :] + CUES[: video % 3]
        cues = [f"00:00:{5 * at:02}.000 --> 00:00:{5 * at + 5:02}.000\n{cue}\n" for at, cue in enumerate(said)]
        (tmp_path / f"v{video}.vtt").write_text("\n".join(["WEBVTT\n", *cues]))
        rows.append({"id": f"v{video}", "procedure": "flow.json", "captions": f"v{video}.vtt"})
    flow = g2v.FlowGraph.bag(STEPS)
    flow.save(tmp_path / "flow.json")
    manifest, out = tmp_path / "m.jsonl", tmp_path / "out"
    manifest.write_text("\n".join(map(json.dumps, rows[:5])))

    def run(**options: bool) -> object:
        return run_batch(manifest, out, options=RunOptions(adapt=True, workers=1, **options), cache=tmp_path / "cache")

    assert run().done == 5
    (model,) = (out / "adapted").iterdir()
    found = pq.read_table(out / "segments").to_pylist()
    alone = g2v.ground(flow, tmp_path / "v1.vtt", adapted=model, cache=Cache(tmp_path / "cache"))
    starts = sorted(row["start"] for row in found if row["id"] == "v1")
    assert starts == sorted(part.start for part in alone.segments)
    assert alone.options["narration"]["adapted"]["videos"] == 5
    assert run(resume=True).skipped == 5  # the model is the same
    manifest.write_text("\n".join(map(json.dumps, rows)))
    again = run(resume=True)
    assert (again.done, again.skipped, again.changed) == (6, 0, 5)  # it has learnt from another video
    assert len(list((out / "adapted").iterdir())) == 2


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_killed_while_it_learns_or_grounds(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    rows = []
    for task in range(6):
        g2v.FlowGraph.bag([f"{step} number {task}" for step in STEPS]).save(tmp_path / f"flow{task}.json")
        for video in range(5):
            said = chance.sample(CUES, len(CUES))
            cues = [f"00:00:{5 * at:02}.000 --> 00:00:{5 * at + 5:02}.000\n{cue}\n" for at, cue in enumerate(said)]
            (tmp_path / f"v{task}{video}.vtt").write_text("\n".join(["WEBVTT\n", *cues]))
            rows.append({"id": f"v{task}{video}", "procedure": f"flow{task}.json", "captions": f"v{task}{video}.vtt"})
    manifest = tmp_path / "m.jsonl"
    manifest.write_text("\n".join(map(json.dumps, rows)))
    run_batch(manifest, tmp_path / "calm", options=RunOptions(adapt=True, workers=2), cache=tmp_path / "cache")
    out = tmp_path / "out"
    command = [sys.executable, "-m", "graph2vid", "batch", str(manifest), "-o", str(out), "--adapt", "--resume"]
    for number in range(5):
        process = subprocess.Popen([*command, "--workers", "2"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if number == 4:
            assert process.wait(timeout=120) == 0
            break
        limit = time.monotonic() + 30
        while process.poll() is None and time.monotonic() < limit:
            time.sleep(chance.uniform(0.0, 0.1))
            if len(list(out.glob("adapted/*.safetensors"))) > number:  # it learns, or grounds
                break
        process.kill()
        process.wait()
    calm, found = (pq.read_table(folder / "segments").to_pylist() for folder in (tmp_path / "calm", out))
    assert found == calm and len(found) >= len(rows)
