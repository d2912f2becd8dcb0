"""Videos grounded by their frames and transcripts: made films whose colours stand for steps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import films
from graph2vid.cli import main
from graph2vid.errors import FormatError, InputError
from graph2vid.evidence import (
    Cache,
    Cue,
    EvidenceOptions,
    Transcript,
    VisualFeatures,
    Word,
    embed_frames,
    frames_evidence,
    frames_similarity,
    media,
    speech,
    transcript_of,
)
from graph2vid.evidence.embed import EMBEDDERS, Embedder, Frames, Grid, embedder
from graph2vid.evidence.embed.frames import clips_by_frame
from graph2vid.evidence.fusion import frames_likeness
from graph2vid.flow import FlowGraph
from graph2vid.grounding import Grounding, ground

pytest.importorskip("av", reason="needs graph2vid[media]")

COLOURS = {"red": (220, 30, 30), "green": (30, 220, 30), "blue": (30, 30, 220)}
GREY = (128, 128, 128)
FLOW = FlowGraph.from_edges(["Slice the red pepper.", "Wash the green salad.", "Fill the blue bowl."], [(0, 2), (1, 2)])
SHOWN = [(3, GREY), (5, COLOURS["green"]), (2, GREY), (6, COLOURS["red"]), (4, COLOURS["blue"]), (2, GREY)]
"""Seconds and colours of the film: the second step is done first."""
STARTS = {1: 3.0, 0: 10.0, 2: 16.0}
DURATION = 22.0

IN_WORDS = "1. Slice the red pepper.\n2. Wash the green salad.\n3. Fill the blue bowl.\n"


@dataclass
class Colours:
    """Embeds a text by the colours that it names, a clip by those seen and by how grey it is; counts what it does."""

    texts: int = 0
    frames: int = 0
    loaded: list[str] = field(default_factory=list)

    def of_texts(self, texts: Sequence[str]) -> NDArray[np.float64]:
        self.texts += len(texts)
        return np.array([[1e-3 + (name in text) for name in COLOURS] + [0.0] for text in texts])

    def of_clips(self, frames: Frames, grid: Grid) -> NDArray[np.floating[Any]]:
        def embed(pictures: Sequence[NDArray[Any]]) -> NDArray[np.float64]:
            self.frames += len(pictures)
            return np.array(pictures)

        def prepare(image: NDArray[np.uint8]) -> NDArray[np.float64]:
            mean = image.reshape(-1, 3).mean(axis=0)
            return np.append(np.maximum(mean - mean.mean(), 0.0), 60.0)

        return clips_by_frame(frames, grid, prepare, embed, rate=2.0, dimension=4)

    def load(self, argument: str) -> Embedder:
        self.loaded.append(argument)
        return Embedder(
            f"colours:{argument}", "1", 4, text_function=self.of_texts, clip_function=self.of_clips, joint=True
        )


@pytest.fixture
def colours(monkeypatch: pytest.MonkeyPatch) -> Iterator[Colours]:
    toy = Colours()
    monkeypatch.setitem(EMBEDDERS._parts, "colours", toy.load)
    embedder.cache_clear()
    yield toy
    embedder.cache_clear()


@pytest.fixture(scope="module")
def film(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_film(tmp_path_factory.mktemp("film") / "film.mp4")


def make_film(path: Path, **options: Any) -> Path:
    seconds = [colour for count, colour in SHOWN for _ in range(count)]
    images = [np.full((32, 48, 3), colour, dtype=np.uint8) for colour in seconds for _ in range(2)]
    return films.film(path, [at / 2 for at in range(len(images))], images=images, **options)


def embedded(path: Path, name: str, cache: Cache, progress: Any = None, **options: Any) -> VisualFeatures:
    asked = EvidenceOptions(frames=name, **options)
    return embed_frames(path, Transcript((), DURATION), asked, cache=cache, progress=progress)[1]


def starts(found: Grounding) -> dict[int, float]:
    return {segment.step: segment.start for segment in found.segments}


def test_a_silent_film_is_grounded_by_its_frames(film: Path, colours: Colours) -> None:
    found = ground(FLOW, film, frames="colours:x")
    assert starts(found) == pytest.approx(STARTS, abs=1.0) and found.order == (1, 0, 2)
    assert [segment.end - segment.start for segment in found.segments] == pytest.approx([5.0, 6.0, 4.0], abs=1.0)
    assert found.options["frames"] == {"embedder": "colours:x", "weight": 1.0} and "narration" not in found.options
    assert found.not_shown == () and found.cues == ()


def test_a_step_that_is_not_seen_where_it_could_be_is_not_shown(film: Path, colours: Colours) -> None:
    flow = FlowGraph.from_edges(FLOW.texts, [(2, 0), (2, 1)])
    found = ground(flow, film, frames="colours:x")  # blue comes last, and all else would have to follow it
    assert found.not_shown == (2,) and found.order == (1, 0)


CUES = (
    Cue(3.0, 5.0, "first we wash our green salad"),
    Cue(10.0, 12.0, "then slice the pepper"),
    Cue(16.0, 18.0, "and fill it into the bowl"),
)


def vtt(path: Path, cues: Sequence[Cue] = CUES) -> Path:
    lines = [f"00:{cue.start:06.3f} --> 00:{cue.end:06.3f}\n{cue.text}\n" for cue in cues]
    path.write_text("WEBVTT\n\n" + "\n".join(lines), encoding="utf-8")
    return path


def test_words_and_frames_are_weighed(film: Path, tmp_path: Path, colours: Colours) -> None:
    pytest.importorskip("wordllama", reason="needs graph2vid[text]")
    wrong = [
        Cue(4.0, 6.0, "slice the red pepper"),
        Cue(12.0, 14.0, "wash the green salad"),
        Cue(18.0, 20.0, "the bowl"),
    ]
    captions = vtt(tmp_path / "wrong.vtt", wrong)
    seen = ground(FLOW, film, captions=captions, frames="colours:x", frames_weight=20.0)
    assert starts(seen) == pytest.approx(STARTS, abs=1.0)
    said = ground(FLOW, film, captions=captions, frames="colours:x", frames_weight=0.0)
    assert said.order[:2] == (0, 1)
    assert starts(said) == starts(ground(FLOW, film, captions=captions))
    assert said.options["frames"]["weight"] == 0.0 and said.options["narration"]["cues"] == 3


def test_each_source_is_kept_apart(film: Path, tmp_path: Path, colours: Colours) -> None:
    """Words for the first half, scores of one's own for the second, frames for all of it."""
    pytest.importorskip("wordllama", reason="needs graph2vid[text]")
    captions = vtt(tmp_path / "said.vtt", CUES[:2])
    scores = np.full((3, 22), np.nan)
    scores[:, 12:] = np.random.default_rng(0).normal(size=(3, 10))
    scores[2, 16:20] += 10.0
    np.save(tmp_path / "mine.npy", scores)
    asked: dict[str, Any] = {"captions": captions, "extra_scores": str(tmp_path / "mine.npy"), "confidence": False}
    found = ground(FLOW, film, frames="colours:x", **asked)
    assert starts(found) == pytest.approx(STARTS, abs=1.0)
    assert list(found.sources) == ["narration", "frames", "scores"]
    assert all(nats.shape == (3, 22) and np.isfinite(nats).all() for nats in found.sources.values())
    assert found.options["narration"]["weight"] == 1.0
    assert found.options["frames"]["weight"] > 0 and found.options["extra_scores"]["file"] == "mine.npy"
    again = Grounding.from_json(found.to_json())
    np.testing.assert_allclose(again.sources["scores"], found.sources["scores"], atol=0.1)
    without = ground(FLOW, film, captions=captions, confidence=False)
    assert without.sources == {} and "sources" not in without.to_json()
    alone = ground(FLOW, film, extra_scores=str(tmp_path / "mine.npy"), narration_weight=0.0, confidence=False)
    assert alone.options["extra_scores"]["weight"] == 1.0 and starts(alone)[2] == pytest.approx(16.0, abs=1.0)
    damaged = found.to_json() | {"sources": {"scores": {"shape": [1, 1], "range": [0, 1], "bytes": "AA=="}}}
    with pytest.raises(FormatError, match=r"sources\.scores\.shape"):
        Grounding.from_json(damaged)


def test_frames_alone_do_not_listen(tmp_path: Path, colours: Colours, monkeypatch: pytest.MonkeyPatch) -> None:
    path = make_film(tmp_path / "loud.mp4", sound=films.clicks(22, 44_100))
    monkeypatch.setattr(speech, "transcribe", never)
    found = ground(FLOW, path, frames="colours:x", narration_weight=0.0)
    assert starts(found) == pytest.approx(STARTS, abs=1.0)


def never(*_: Any, **__: Any) -> Any:
    raise AssertionError("this was kept from the first run")


def test_a_second_run_neither_listens_nor_decodes_nor_embeds(
    tmp_path: Path, colours: Colours, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("wordllama", reason="needs graph2vid[text]")
    from wordllama import WordLlama

    monkeypatch.setenv("GRAPH2VID_CACHE", str(tmp_path / "kept"))
    path = make_film(tmp_path / "loud.mp4", sound=films.clicks(22, 44_100))
    (tmp_path / "recipe.txt").write_text(IN_WORDS, encoding="utf-8")
    transcribed: list[str] = []

    def recognise(*_: Any) -> Iterator[Cue]:
        transcribed.append("all of it")
        return iter(CUES)

    monkeypatch.setattr(speech, "_recognise", recognise)
    results = []
    for run in range(2):
        result = tmp_path / "result.json"
        embedder.cache_clear()
        arguments = ["ground", str(tmp_path / "recipe.txt"), str(path), "--frames", "colours:x", "--parser", "bag"]
        assert main([*arguments, "-o", str(result)]) == 0, capfd.readouterr().err
        results.append(Grounding.load(result))
        if run == 0:
            assert transcribed == ["all of it"] and colours.frames == 44 and colours.texts == 3
            monkeypatch.setattr(speech, "_recognise", never)
            monkeypatch.setattr(media, "_on_screen", never)
            monkeypatch.setattr(WordLlama, "load", never)
    assert colours.frames == 44 and colours.texts == 3
    assert results[0] == results[1] and starts(results[0]) == pytest.approx(STARTS, abs=1.5)
    with pytest.raises(AssertionError, match="kept"):  # clips of another length were not embedded before
        embedded(path, "colours:x", Cache(tmp_path / "result.json.cache"), clip_seconds=2.0)


def test_the_cache_goes_by_content(film: Path, tmp_path: Path, colours: Colours) -> None:
    cache = Cache(tmp_path / "kept")
    first = embedded(film, "colours:x", cache)
    copy = tmp_path / "other name.mp4"
    copy.write_bytes(film.read_bytes())
    assert embedded(copy, "colours:x", cache).clips.tolist() == first.clips.tolist()
    assert colours.frames == 44
    embedded(film, "colours:other", cache)
    assert colours.frames == 88


def test_an_interrupted_run_keeps_nothing(film: Path, tmp_path: Path, colours: Colours) -> None:
    def interrupt(stage: str, done: float, total: float) -> None:
        assert stage == "embedding frames" and total == DURATION
        if done > 10:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        embedded(film, "colours:x", Cache(tmp_path / "kept"), interrupt)
    assert not (tmp_path / "kept").exists()


def test_of_several_procedures_the_one_that_is_seen(
    film: Path, tmp_path: Path, colours: Colours, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "salad.txt").write_text(IN_WORDS, encoding="utf-8")
    (tmp_path / "other.txt").write_text("1. Saw the board.\n2. Paint it.\n", encoding="utf-8")
    files = [str(tmp_path / "other.txt"), str(tmp_path / "salad.txt"), str(film)]
    result = tmp_path / "result.json"
    assert main(["ground", *files, "--parser", "linear", "--frames", "colours:x", "-o", str(result)]) == 0
    assert len(Grounding.load(result).flow) == 3
    assert "fits best: procedure 2; procedure 1" in capfd.readouterr().err


def test_arrays_take_the_place_of_frames(film: Path, tmp_path: Path) -> None:
    clips = np.array([colour for count, colour in SHOWN for _ in range(count)], dtype=np.float32)
    np.save(tmp_path / "clips.npy", clips - clips.mean(axis=1, keepdims=True))
    np.save(tmp_path / "steps.npy", np.eye(3))
    name = f"array:{tmp_path / 'clips.npy'},{tmp_path / 'steps.npy'}"
    assert starts(ground(FLOW, film, frames=name)) == pytest.approx(STARTS, abs=1.0)
    pytest.importorskip("wordllama", reason="needs graph2vid[text]")
    found = ground(FLOW, vtt(tmp_path / "said.vtt"), frames=name)  # without a video they tell its length
    assert found.end == DURATION and starts(found) == pytest.approx(STARTS, abs=1.5)


def test_clips_in_which_nothing_is_seen_are_uncertain(colours: Colours) -> None:
    clips = np.array([[1, 0, 0, 0], [0, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]], dtype=np.float32)
    visual = VisualFeatures(clips, embedder("colours:x"))
    similarity = frames_similarity(FLOW.texts, visual)
    assert np.isnan(similarity[:, 1]).all() and similarity[:, [0, 2, 3]].argmax(axis=1).tolist() == [0, 1, 2]
    evidence = frames_evidence(FLOW.texts, visual)
    assert np.isnan(evidence[:, 1]).all() and np.isfinite(evidence[:, [0, 2, 3]]).all()
    assert frames_likeness(FLOW.texts, visual) == pytest.approx(1.0, abs=0.01)
    assert ground(FlowGraph.bag(FLOW.texts), Transcript((), 4.0), visual=visual).labels.tolist() == [0, -1, 1, 2]
    with pytest.raises(InputError, match="finds no frame in any of the 4 clips"):
        frames_evidence(FLOW.texts, VisualFeatures(np.zeros((4, 4), dtype=np.float32), embedder("colours:x")))
    with pytest.raises(InputError, match="no steps"):
        frames_similarity([], visual)
    with pytest.raises(InputError, match=r"4 clips were embedded, but a video of .* has 9 of 1 s"):
        ground(FLOW, Transcript((), 9.0), visual=visual)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            [],
            "give captions (--captions FILE), a model that embeds its frames (--frames MODEL), or scores",
        ),
        (["--frames", "colors:x"], "unknown embedder 'colors'"),
        (["--frames", "wordllama"], "embeds texts alone, not frames"),
        (["--narration-weight", "0"], "nothing is left to go by"),
        (["--frames", "colours:x", "--frames-weight", "-1"], "--frames-weight"),
        (["--frames", "s3d:missing.pth"], "missing.pth"),
    ],
)
def test_a_silent_film_that_cannot_be_grounded(
    film: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], colours: Colours, arguments: list[str], message: str
) -> None:
    FLOW.save(tmp_path / "flow.json")
    assert main(["ground", str(tmp_path / "flow.json"), str(film), "-o", str(tmp_path / "r.json"), *arguments]) == 2
    error = capfd.readouterr().err
    assert message in error and error.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["flow.json"]


def test_what_holds_no_frames(tmp_path: Path, colours: Colours) -> None:
    sound = films.film(
        tmp_path / "a.wav", sound=np.zeros(48_000, dtype=np.float32), rate=16_000, sound_codec="pcm_s16le"
    )
    with pytest.raises(InputError, match="no moving picture"):
        ground(FLOW, sound, frames="colours:x", narration_weight=0.0)
    with pytest.raises(InputError, match=r"said\.vtt holds captions, which have no frames"):
        ground(FLOW, vtt(tmp_path / "said.vtt"), frames="colours:x")
    with pytest.raises(FormatError, match="not a video"):
        ground(FLOW, vtt(tmp_path / "said.vtt"), frames="colours:x", narration_weight=0.0)


def test_silence_is_an_error_only_where_words_are_needed(film: Path) -> None:
    with pytest.raises(InputError, match="has no sound"):
        transcript_of(film)
    found = transcript_of(film, required=False)
    assert found.cues == () and found.source == "no sound" and found.duration == pytest.approx(DURATION)


def test_speech_that_was_guessed_is_warned_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recwarn: pytest.WarningsRecorder
) -> None:
    path = films.film(tmp_path / "a.wav", sound=films.clicks(3, 16_000), rate=16_000, sound_codec="pcm_s16le")
    for probability, warned in ((0.9, 0), (0.3, 1)):
        words = tuple(Word(at, at + 1.0, "storm", probability) for at in range(3))
        said = (Cue(0.0, 3.0, "storm storm storm", words),)
        monkeypatch.setattr(speech, "transcribe", lambda *_, said=said, **__: said)
        assert transcript_of(path).cues == said
        assert len([one for one in recwarn if "hardly understood" in str(one.message)]) == warned


def test_frames_with_arrays_are_refused(film: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    FLOW.save(tmp_path / "flow.json")
    np.save(tmp_path / "s.npy", np.zeros((3, 9)))
    arguments = ["ground", str(tmp_path / "flow.json"), "--scores", str(tmp_path / "s.npy"), "--frames", "clip:x"]
    assert main(arguments) == 2
    assert "--frames is for a video" in capfd.readouterr().err
