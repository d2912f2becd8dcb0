"""Clips of a file of two hours in 1080p: copied, not decoded, in little memory."""

from __future__ import annotations

import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("av")

SECONDS, LOOP = 7200, 2


def two_hours(path: Path, work: Path) -> Path:
    """Write a film of two hours, 25 frames a second, by repeating the packets of two seconds."""
    import av

    rng = np.random.default_rng(0)
    noise = np.repeat(np.repeat(rng.integers(0, 255, (27, 48, 3), dtype=np.uint8), 40, 0), 40, 1)
    with av.open(str(work), "w") as container:
        picture: Any = container.add_stream("libx264", rate=25)
        picture.width, picture.height, picture.pix_fmt = 1920, 1080, "yuv420p"
        picture.options = {"preset": "ultrafast", "g": "50", "bf": "0"}
        for at in range(25 * LOOP):
            frame = av.VideoFrame.from_ndarray(np.roll(noise, 8 * at, axis=1), format="rgb24")
            frame.pts, frame.time_base = at, Fraction(1, 25)
            container.mux(picture.encode(frame))
        container.mux(picture.encode(None))
    with av.open(str(work)) as source, av.open(str(path), "w") as container:
        track = container.add_stream_from_template(source.streams.video[0])
        packets = [(bytes(one), one) for one in source.demux(video=0) if one.size]
        clock = source.streams.video[0].time_base
        assert clock is not None
        for turn in range(SECONDS // LOOP):
            for data, one in packets:
                copy: Any = av.Packet(data)
                copy.pts, copy.dts = (stamp + turn * round(LOOP / clock) for stamp in (one.pts, one.dts))
                copy.time_base, copy.is_keyframe, copy.duration = clock, one.is_keyframe, one.duration
                copy.stream = track
                container.mux(copy)
    return path


CUT = """
import resource, sys, time
from graph2vid.footage import cut
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
began = time.perf_counter()
for at in range(20):
    start, end = cut(sys.argv[1], f"{sys.argv[2]}/{at}.mp4", 350.0 * at, 350.0 * at + 60)
    assert 0 <= 350.0 * at - start <= 2.01 and 0 <= end - 350.0 * at - 60 <= 0.05, (start, end)
print(time.perf_counter() - began, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)
"""


@pytest.mark.slow
def test_two_hours_are_cut_in_little_memory(tmp_path: Path) -> None:
    """How long it takes depends on the disk; decoding what is copied would take many minutes."""
    path = two_hours(tmp_path / "long.mp4", tmp_path / "short.mp4")
    done = subprocess.run([sys.executable, "-c", CUT, path, tmp_path], check=True, capture_output=True, text=True)
    seconds, megabytes = map(float, done.stdout.split())
    print(f"{path.stat().st_size / 1e9:.1f} GB: 20 clips of a minute in {seconds:.1f} s, {megabytes:.0f} MB")
    assert megabytes < 200 and seconds < 120
    path.unlink()
