"""Scripts without times against transcripts: what is spoken when, what is not, and that the answer is the best one."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from graph2vid.alignment import Problem
from graph2vid.cli import main
from graph2vid.errors import InputError
from graph2vid.evidence import Cue, read_captions
from graph2vid.flow import FlowGraph
from graph2vid.grounding import Grounding, align_script, align_text, script_alignment
from graph2vid.sample.narrated import NarratedFiles
from graph2vid.text import script_from_text

FILES = NarratedFiles()
ADDED = (
    ("The shares of three banks fell sharply in March.", "Nobody in the ministry had expected that."),
    ("Put the letters on the table, and wait for the postman.",),
    ("Paint the window with white paint until it is covered.",),
)


def script(seed: int, *, most: int = 3) -> tuple[tuple[tuple[str, ...], ...], dict[str, float]]:
    """Return the words of the bundled video as a script, in paragraphs that are shuffled, and when they are said."""
    cues = list(read_captions(FILES.captions))
    rng = random.Random(seed)
    paragraphs = []
    truth = {cue.text: cue.start for cue in cues}
    while cues:
        count = rng.randint(1, most)
        paragraphs.append(tuple(cue.text for cue in cues[:count]))
        del cues[:count]
    paragraphs += ADDED
    rng.shuffle(paragraphs)
    return tuple(paragraphs), truth


def check(paragraphs: tuple[tuple[str, ...], ...], cues: tuple[Cue, ...], truth: dict[str, float]) -> float:
    """Return the share of what is spoken that begins within a second of the truth; nothing else may be found."""
    found = align_script(paragraphs, cues)
    assert found.gap == 0
    right = []
    for text, one in zip([one for paragraph in paragraphs for one in paragraph], found.sentences, strict=True):
        if text in truth:
            right.append(one is not None and abs(one.start - truth[text]) <= 1.0)
        else:
            assert one is None, text
    return float(np.mean(right))


@pytest.mark.parametrize("seed", range(3))
def test_captions_against_their_shuffled_words(seed: int) -> None:
    paragraphs, truth = script(seed)
    assert check(paragraphs, read_captions(FILES.captions), truth) == 1.0


def test_speech_against_shuffled_removed_and_added_paragraphs() -> None:
    """What was cut out of the video is called absent, as is what was never in it."""
    pytest.importorskip("faster_whisper")
    from spoken import bundled

    _, cues, _ = bundled()
    shares = []
    for seed in range(4):
        paragraphs, truth = script(seed)
        starts = sorted(truth.values())
        first, last = starts[3 + 3 * seed] - 0.4, starts[7 + 3 * seed] - 0.4  # seconds that are cut out
        kept_cues = tuple(cue for cue in cues if not first <= (cue.start + cue.end) / 2 <= last)
        said = {text: at for text, at in truth.items() if not first <= at <= last}
        kept = tuple(paragraph for at, paragraph in enumerate(paragraphs) if at % 5 or paragraph in ADDED)
        shares.append(check(kept, kept_cues, said))
    assert np.mean(shares) >= 0.95


def test_orders() -> None:
    cues = tuple(Cue(10.0 * at, 10.0 * at + 5, text) for at, text in enumerate(("wash the rice", "peel one potato")))
    swapped = (("Peel one potato.",), ("Wash the rice.",))
    free, fixed = (align_script(swapped, cues, order=order).sentences for order in ("any", "written"))
    assert [one and one.start for one in free] == [10.0, 0.0]
    assert sum(one is None for one in fixed) == 1  # they cannot both be there
    with pytest.raises(InputError, match="order must be 'any' or 'written'"):
        align_text(swapped, FILES.captions, order="free")


@pytest.mark.parametrize("seed", range(6))
def test_the_answer_is_the_best(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Against all paragraphs aligned at once; and where one gives way to another, the gap holds the difference."""
    rng = np.random.default_rng(seed)
    words = [f"w{at}" for at in range(12)]
    paragraphs = tuple(
        tuple(" ".join(rng.choice(words, size=rng.integers(1, 5))) for _ in range(rng.integers(1, 3))) for _ in range(4)
    )
    cues = (Cue(0.0, 20.0, " ".join(rng.choice(words, size=40))),)
    found = align_script(paragraphs, cues)
    table = script_alignment._Table(
        [script_alignment._stems(one) for paragraph in paragraphs for one in paragraph],
        [stem for stem, _, _ in script_alignment._words(cues)],
    )
    ends = np.cumsum([len(one) for one in paragraphs]).tolist()
    steps = range(ends[-1])
    flow = FlowGraph.from_edges([str(at) for at in steps], [(at, at + 1) for at in steps[:-1] if at + 1 not in ends])
    skip = -script_alignment._LEAST_SHARE * table.masses
    best = Problem(flow, table.match(steps).astype(np.float64), 0.0, skip=skip).align("exact").cost
    assert found.gap == 0 and found.cost == pytest.approx(best, rel=1e-5)
    monkeypatch.setattr(script_alignment, "_MOST_STATES", 1)
    quick = align_script(paragraphs, cues)
    assert best - 1e-4 <= quick.cost and quick.cost - quick.gap <= best + 1e-4


def test_words_that_were_transcribed_otherwise() -> None:
    cue = Cue(0.0, 13.0, "so then put nine eggs in to the bowel and stir them well now")
    (one,) = align_script((("Put 9 eggs into the bowl and stir them well.",),), (cue,)).sentences
    assert one is not None and one.start == pytest.approx(1.8, abs=0.8) and one.end == pytest.approx(12.2, abs=0.8)
    assert 0.5 < one.share < 1 and one.confidence > 0.8


def test_reading_scripts() -> None:
    text = "# Title\n\nOne thing. Two\nthings!\n\n- a bullet\n- another **bold** one\n\n1. first\n---\nLast?\n"
    assert script_from_text(text) == (
        ("One thing.", "Two things!"),
        ("a bullet", "another bold one"),
        ("first",),
        ("Last?",),
    )
    assert script_from_text("One line.\nAnd one that\ngoes on.") == (("One line.",), ("And one that goes on.",))
    with pytest.raises(InputError, match="holds no words"):
        script_from_text("...\n\n# 1\n")


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "notes.md"
    path.write_text(
        "The water is boiling, so cook the spaghetti for nine minutes.\n\nI take one onion, peel it, and chop it "
        "finely.\n\nBanks fell sharply in March.\n",
        encoding="utf-8",
    )
    arguments = ["align-text", str(path), str(FILES.captions), "-o", str(tmp_path / "r.json")]
    assert main([*arguments, "--export", "srt"]) == 0
    shown = capsys.readouterr().out
    assert "2 of 3 sentences said, 1 not" in shown and "paragraphs in the order 2 → 1" in shown
    assert "0:24.8–0:28.3" in shown and "not said" in shown.splitlines()[3]
    found = Grounding.load(tmp_path / "r.json")
    assert found.flow.ids == ("1.1", "2.1", "3.1") and found.not_shown == (2,) and found.options["script"]["gap"] == 0
    assert "00:00:24,794 --> 00:00:28,285" in (tmp_path / "r.steps.srt").read_text(encoding="utf-8")
    assert main([*arguments, "--order", "free"]) == 2
    assert "order must be" in capsys.readouterr().err


def test_nothing_is_said() -> None:
    assert align_script((("One.",),), ()).sentences == (None,)
    assert align_script((("One.",),), (Cue(0.0, 1.0, "..."),)).sentences == (None,)
