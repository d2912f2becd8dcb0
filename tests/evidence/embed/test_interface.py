"""What an embedder is: names, checks, and how frames become clips."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from graph2vid.errors import InputError, MissingDependencyError
from graph2vid.evidence.embed import (
    EMBEDDERS,
    Embedder,
    Grid,
    clip_embedder,
    embedder,
    joint_embedder,
    sources,
    text_embedder,
)
from graph2vid.evidence.embed.frames import clips_by_frame, clips_by_window, square_crop


def frame(value: int, shape: tuple[int, int] = (2, 2)) -> NDArray[np.uint8]:
    return np.full((*shape, 3), value, dtype=np.uint8)


def lengths(texts: Sequence[str]) -> NDArray[np.float64]:
    return np.array([[len(text), 1.0] for text in texts])


# -- names ---------------------------------------------------------------------------------------------------


def test_an_unknown_embedder_is_told_the_known_ones() -> None:
    with pytest.raises(
        InputError, match=r"unknown embedder 'bert'; known: array, clip, i3d, minilm, open_clip, s3d, siglip"
    ):
        text_embedder("bert")


@pytest.mark.parametrize("family", ["st", "clip", "siglip", "open_clip", "s3d", "array"])
def test_a_family_without_its_argument_says_how_it_is_written(family: str) -> None:
    with pytest.raises(InputError, match=f"the embedder {family} needs .*{family}:"):
        embedder(family)


@pytest.mark.parametrize("name", ["clip:./nowhere", "siglip:/no/such/folder", "st:~/nowhere", "minilm:/nowhere"])
def test_a_folder_that_is_not_there(name: str) -> None:
    package = {"clip": "transformers", "siglip": "transformers", "st": "sentence_transformers"}
    needed = package.get(name.split(":")[0], "tokenizers")
    if find_spec(needed) is None:
        pytest.skip(f"needs the package {needed}")
    with pytest.raises(InputError, match="there is no file or folder"):
        embedder(name)


def test_a_missing_package_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "find_spec", lambda name: None)
    with pytest.raises(MissingDependencyError, match=r"needs the package sentence-transformers: .*\.\[embed\]"):
        embedder("st:any/model")
    with pytest.raises(MissingDependencyError, match=r"wordllama: pip install '\.\[text\]' in a clone"):
        EMBEDDERS.get("wordllama")("")


def test_other_packages_offer_embedders(monkeypatch: pytest.MonkeyPatch) -> None:
    def load(argument: str) -> Embedder:
        return Embedder(f"mine:{argument}", "1", 2, text_function=lengths)

    monkeypatch.setattr(EMBEDDERS, "_offered", lambda: {"mine": lambda: load})
    monkeypatch.setattr(EMBEDDERS, "_parts", dict(EMBEDDERS._parts))
    assert "mine" in EMBEDDERS
    assert EMBEDDERS.get("mine")("x:y").name == "mine:x:y"


def test_wordllama_embeds_texts() -> None:
    pytest.importorskip("wordllama", reason="needs the package wordllama")
    light = text_embedder()
    assert light is text_embedder("wordllama") is embedder("wordllama")
    vectors = light(["cut the tomato", " ", "slice the tomato", "boil water"])
    assert vectors.shape == (4, light.dimension) and vectors.dtype == np.float32
    assert not vectors[1].any()
    unit = vectors[[0, 2, 3]] / np.linalg.norm(vectors[[0, 2, 3]], axis=1, keepdims=True)
    assert unit[0] @ unit[1] > unit[0] @ unit[2]
    assert light([]).shape == (0, light.dimension)


# -- checks --------------------------------------------------------------------------------------------------


def test_texts_and_clips_that_share_no_space_are_not_compared() -> None:
    words = Embedder("words", "1", 2, text_function=lengths)
    with pytest.raises(InputError, match="'words' has no space that texts and clips share"):
        words.similarity(words(["a"]), np.ones((1, 2), np.float32))
    with pytest.raises(InputError, match="'words' does not embed clips"):
        words.clips([])


def test_an_embedder_for_the_wrong_thing(monkeypatch: pytest.MonkeyPatch) -> None:
    both = Embedder("both", "1", 2, text_function=lengths, clip_function=lambda frames, grid: np.ones((1, 2)))
    sight = Embedder("sight", "1", 2, clip_function=lambda frames, grid: np.ones((1, 2)))
    words = Embedder("words", "1", 2, text_function=lengths)
    parts = {"t_both": lambda _: both, "t_sight": lambda _: sight, "t_words": lambda _: words}
    monkeypatch.setattr(EMBEDDERS, "_parts", parts)
    assert text_embedder("t_both") is clip_embedder("t_both") is both
    with pytest.raises(InputError, match="'sight' does not embed texts"):
        text_embedder("t_sight")
    with pytest.raises(InputError, match="'t_words' embeds texts alone, not frames"):
        clip_embedder("t_words")
    with pytest.raises(InputError, match="'t_sight' embeds clips alone"):
        joint_embedder("t_sight")
    with pytest.raises(InputError, match="'t_both' embeds texts and clips in different spaces"):
        joint_embedder("t_both")
    embedder.cache_clear()


def test_similarity_is_what_the_authors_compare_by() -> None:
    texts, clips = np.array([[3.0, 4.0]], np.float32), np.array([[2.0, 0.0], [0.0, -1.0]], np.float32)
    by_cosine = Embedder("a", "1", 2, text_function=lengths, joint=True)
    by_dot = Embedder("a", "1", 2, text_function=lengths, joint=True, comparison="dot")
    np.testing.assert_allclose(by_cosine.similarity(texts, clips), [[0.6, -0.8]], rtol=1e-6)
    np.testing.assert_allclose(by_dot.similarity(texts, clips), [[6.0, -4.0]], rtol=1e-6)


@pytest.mark.parametrize(("made", "message"), [(np.full((1, 2), np.nan), "not finite"), (np.ones((1, 3)), r"\(1, 3\)")])
def test_what_a_model_makes_is_checked(made: NDArray[np.float64], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Embedder("broken", "1", 2, text_function=lambda texts: made)(["a"])


@pytest.mark.parametrize("wrong", [{"clip_seconds": 0.0}, {"clip_seconds": 1.0, "n_clips": 0}])
def test_impossible_clips(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="impossible clips"):
        Grid(**wrong)


# -- frames to clips -----------------------------------------------------------------------------------------


def picture_vector(pictures: Sequence[NDArray[np.uint8]]) -> NDArray[np.float64]:
    """Embed a picture of one value as a direction; its length must not matter."""
    angle = np.array([picture[0, 0, 0] for picture in pictures]) / 100.0
    return 7.0 * np.stack([np.cos(angle), np.sin(angle)], axis=1)


def by_frame(frames: Any, grid: Grid, rate: float = 2.0, batch: int = 3) -> NDArray[np.float32]:
    return clips_by_frame(frames, grid, lambda image: image, picture_vector, rate=rate, dimension=2, batch=batch)


def test_a_clip_is_the_mean_of_its_frames() -> None:
    frames = [(0.0, frame(0)), (0.5, frame(100)), (1.0, frame(50)), (1.5, frame(50)), (2.0, frame(10))]
    made = by_frame(frames, Grid(1.0))
    half = np.array([np.cos(0.0) + np.cos(1.0), np.sin(0.0) + np.sin(1.0)])
    expected = [half / np.linalg.norm(half), [np.cos(0.5), np.sin(0.5)], [np.cos(0.1), np.sin(0.1)]]
    np.testing.assert_allclose(made, expected, atol=1e-6)


def test_clips_without_a_frame_of_their_own() -> None:
    frames = [(2.0, frame(10)), (4.0, frame(20)), (4.5, frame(30))]
    made = by_frame(frames, Grid(1.0, n_clips=7))
    angles = [math.nan, math.nan, 0.10, 0.10, 0.25, math.nan, math.nan]  # before, and after, there is nothing
    expected = [[0, 0] if math.isnan(angle) else [np.cos(angle), np.sin(angle)] for angle in angles]
    np.testing.assert_allclose(made, expected, atol=1e-6)
    assert len(by_frame(frames, Grid(1.0))) == 5


def test_frames_before_and_beyond_the_clips() -> None:
    frames = [(at / 2, frame(at)) for at in range(20)]
    made = by_frame(frames, Grid(1.0, n_clips=2, offset=3.25))
    np.testing.assert_allclose(made, mean_of([(7, 8), (9, 10)]), atol=1e-6)


def mean_of(pairs: Sequence[tuple[int, int]]) -> NDArray[np.float64]:
    sums = np.array([picture_vector([frame(a), frame(b)]).sum(axis=0) for a, b in pairs])
    return sums / np.linalg.norm(sums, axis=1, keepdims=True)


def test_clips_begin_where_their_frames_do_in_spite_of_rounding() -> None:
    # 9.6 / 3.2 is a little less than 3 in floating point.
    assert Grid(3.2).clip_at(9.6) == 3
    assert Grid(3.2).clips_until(9.6) == 3


def numbers_of(windows: Sequence[NDArray[np.uint8]]) -> NDArray[np.float64]:
    """Embed a window as its first frame's number, and how many of its frames are black."""
    return np.array([[window[0, 0, 0, 0], (window[:, 0, 0, 0] == 0).sum()] for window in windows], dtype=np.float64)


@given(
    n_frames=st.integers(1, 40),
    first=st.integers(0, 12),
    clip_seconds=st.sampled_from([0.5, 1.0, 1.6, 3.2, 5.0]),
    n_clips=st.none() | st.integers(1, 8),
    offset=st.sampled_from([0.0, 0.3, -1.0]),
    batch=st.integers(1, 3),
)
def test_windows_of_frames(
    n_frames: int, first: int, clip_seconds: float, n_clips: int | None, offset: float, batch: int
) -> None:
    length, rate = 8, 5.0
    numbers = range(first, first + n_frames)
    frames = [(number / rate, frame(number + 1)) for number in numbers]
    grid = Grid(clip_seconds, n_clips, offset)
    end = (first + n_frames) / rate
    if grid.count(end) == 0:
        with pytest.raises(InputError, match="no frames to embed"):
            window_rows(frames, grid, rate, length, batch)
        return
    made = window_rows(frames, grid, rate, length, batch)
    per_clip = max(math.ceil(clip_seconds * rate / length - 1e-6), 1)
    for clip in range(grid.count(end)):
        begin = offset + clip * clip_seconds
        if begin + clip_seconds <= first / rate + 1e-6 or begin >= end - 1e-6:
            assert not made[clip].any()
            continue
        rows = []
        for part in range(per_clip):
            middle = begin + (part + 0.5) * clip_seconds / per_clip
            start = round(middle * rate - length / 2)
            start = max(min(start, first + n_frames - length), first)
            rows.append([start + 1, max(length - n_frames, 0)])
        np.testing.assert_allclose(made[clip], np.mean(rows, axis=0), atol=1e-5)


def window_rows(frames: Any, grid: Grid, rate: float, length: int, batch: int) -> NDArray[np.float32]:
    return clips_by_window(
        frames, grid, lambda image: image, numbers_of, rate=rate, length=length, dimension=2, batch=batch
    )


def test_a_gap_shows_the_frame_before_it_and_one_too_many_is_left_out() -> None:
    seen: list[list[int]] = []

    def embed(windows: Sequence[NDArray[np.uint8]]) -> NDArray[np.float64]:
        seen.extend(window[:, 0, 0, 0].tolist() for window in windows)
        return np.ones((len(windows), 1))

    frames = [(0.0, frame(1)), (0.1, frame(2)), (0.12, frame(99)), (0.4, frame(5)), (0.5, frame(6))]
    clips_by_window(frames, Grid(0.6), lambda image: image, embed, rate=10.0, length=6, dimension=1)
    assert seen == [[1, 2, 2, 2, 5, 6]]


def test_a_video_is_never_held_whole() -> None:
    alive = 0

    def frames() -> Iterator[tuple[float, NDArray[np.uint8]]]:
        for number in range(300):
            yield number / 10, frame(number % 200 + 1)

    def embed(windows: Sequence[Any]) -> NDArray[np.float64]:
        nonlocal alive
        alive = max(alive, sum(len(window) for window in windows))
        return np.ones((len(windows), 1))

    made = clips_by_window(frames(), Grid(1.0), lambda image: image, embed, rate=10.0, length=8, dimension=1, batch=2)
    assert made.shape == (30, 1) and alive == 16


def test_no_frames_and_wrong_frames() -> None:
    with pytest.raises(InputError, match="no frames"):
        by_frame([], Grid(1.0))
    with pytest.raises(
        InputError, match=r"the frame at 0 s must be uint8 \[height, width, 3\], not float64 \(2, 2, 3\)"
    ):
        by_frame([(0.0, np.ones((2, 2, 3)))], Grid(1.0))
    with pytest.raises(InputError, match="seen at nan seconds"):
        by_frame([(math.nan, frame(1))], Grid(1.0))


def test_the_square_in_the_middle() -> None:
    pytest.importorskip("PIL", reason="needs the package pillow")
    image = np.arange(4 * 6 * 3, dtype=np.uint8).reshape(4, 6, 3)
    np.testing.assert_array_equal(square_crop(image, 4), image[:, 1:5])
    tall = image.transpose(1, 0, 2)
    np.testing.assert_array_equal(square_crop(tall, 4), tall[1:5])


def test_scaling_is_bicubic() -> None:
    pytest.importorskip("PIL", reason="needs the package pillow")
    columns = np.array([0, 80, 200, 240], dtype=np.uint8)
    image = np.repeat(np.tile(columns, (4, 1))[:, :, None], 3, axis=2)
    made = square_crop(image, 2)
    assert made.shape == (2, 2, 3)

    def cubic(x: float) -> float:
        """Keys' kernel with a = -0.5."""
        x = abs(x)
        if x < 1:
            return 1.5 * x**3 - 2.5 * x**2 + 1
        return -0.5 * x**3 + 2.5 * x**2 - 4 * x + 2 if x < 2 else 0.0

    # Scaled to a half, the kernel is twice as wide; the middles of the new columns lie at 1 and 3.
    for column, middle in enumerate((1.0, 3.0)):
        weights = np.array([cubic((at + 0.5 - middle) / 2) for at in range(4)])
        expected = float(weights @ columns / weights.sum())
        np.testing.assert_allclose(made[:, column], expected, atol=0.5 + 1e-3)  # rounded to whole values
