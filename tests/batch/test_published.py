"""Exports and clips of the videos of a batch, beside their documents."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from films import film
from graph2vid.batch import publish
from graph2vid.cli import main

pytest.importorskip("pyarrow")
pytest.importorskip("av")


def test_exports_and_clips_of_a_manifest(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    film(tmp_path / "a.mp4", [at / 5 for at in range(60)])
    (tmp_path / "p.flow").write_text("wash: Wash the rice\nboil: Boil it\nserve: Serve\nwash -> boil -> serve\n")
    cues = "".join(
        f"00:{at:02d}.000 --> 00:{at + 4:02d}.000\n{text}\n\n"
        for at, text in ((0, "we wash the rice"), (4, "now boil the rice"), (8, "and serve it"))
    )
    (tmp_path / "c.vtt").write_text(f"WEBVTT\n\n{cues}")
    rows = [
        {"id": name, "procedure": "p.flow", "captions": "c.vtt", **video}
        for name, video in (("with", {"video": "a.mp4"}), ("without", {}))
    ]
    manifest = tmp_path / "m.jsonl"
    manifest.write_text("".join(json.dumps(row) + "\n" for row in rows))
    arguments = ["batch", str(manifest), "-o", str(tmp_path / "out"), "--workers", "1"]
    assert main([*arguments, "--export", "vtt,youtube,podcast", "--clips"]) == 0
    shown = capsys.readouterr().out
    assert "5 exports and folders of clips written, 0 kept" in shown
    assert "not written, 2 ×: youtube: " in shown and "not written, 1 ×: clips: " in shown
    documents = tmp_path / "out" / "documents"
    assert len(list(documents.glob("*/*.chapters.vtt"))) == 2
    (folder,) = [path for path in documents.glob("*/with") if path.is_dir()]
    names = {one.name for one in folder.iterdir()}
    assert {"01-wash-the-rice.mp4", "01-wash-the-rice.jpg", "howto.jsonld", "contact-sheet.svg"} <= names
    again = publish(documents, ["vtt", "podcast"], clips=True)
    assert (again.written, again.kept) == (0, 5) and sum(again.reasons.values()) == 1
    assert main([*arguments, "--export", "nothing"]) == 2 and "unknown export format" in capsys.readouterr().err
