"""What was embedded once is not embedded again; arrays stand behind the same interface."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from graph2vid.errors import FormatError, InputError
from graph2vid.evidence.embed import Embedder, Frames, Grid, cached, embedder, joint_embedder, video_clips
from graph2vid.evidence.evidence_cache import Cache


class Counted:
    """Embeds, and counts what it embeds."""

    def __init__(self) -> None:
        self.texts = 0
        self.videos = 0

    def embed_texts(self, texts: Sequence[str]) -> NDArray[np.float64]:
        self.texts += len(texts)
        return np.array([[len(text), 1.0] for text in texts])

    def embed_clips(self, frames: Frames, grid: Grid) -> NDArray[np.float64]:
        self.videos += 1
        means = [float(image.mean()) for _, image in frames]
        return np.array([[mean, 2.0] for mean in means])

    def embedder(self, name: str = "counted", version: str = "1") -> Embedder:
        return Embedder(
            name, version, 2, text_function=self.embed_texts, clip_function=self.embed_clips, joint=True, frame_rate=1.0
        )


def frames(count: int = 3) -> Iterator[tuple[float, NDArray[np.uint8]]]:
    for at in range(count):
        yield float(at), np.full((2, 2, 3), at, dtype=np.uint8)


def unread() -> Iterator[Any]:
    raise AssertionError("frames were read again")
    yield


def test_a_second_run_embeds_nothing(tmp_path: Path) -> None:
    first, second = Counted(), Counted()
    texts = ["cut", "", "fry the onion"]
    one = cached(first.embedder(), Cache(tmp_path))
    made = one(texts), one.clips(frames(), content="abc")
    assert (first.texts, first.videos) == (2, 1)

    cache = Cache(tmp_path)
    two = cached(second.embedder(), cache)
    again = two.texts(texts), two.clips(unread(), content="abc")
    assert (second.texts, second.videos) == (0, 0)
    assert (cache.hits, cache.misses) == (2, 0)
    for old, new in zip(made, again, strict=True):
        np.testing.assert_array_equal(old, new)
        assert new.dtype == np.float32


@pytest.mark.parametrize(
    "other",
    [
        {"version": "2"},
        {"name": "another"},
        {"texts": ["cutfry"]},
        {"content": "abd"},
        {"clip_seconds": 2.0},
        {"offset": 0.5},
    ],
)
def test_whatever_matters_is_part_of_the_key(other: dict[str, Any], tmp_path: Path) -> None:
    def run(
        texts: Sequence[str] = ("cut", "fry"),
        content: str = "abc",
        clip_seconds: float = 1.0,
        offset: float = 0.0,
        **who: str,
    ) -> Counted:
        counted = Counted()
        chosen = cached(counted.embedder(**who), Cache(tmp_path))
        chosen(texts)
        chosen.clips(frames(), content=content, clip_seconds=clip_seconds, offset=offset)
        return counted

    run()
    counted = run(**other)
    assert counted.texts + counted.videos > 0
    again = run(**other)
    assert again.texts + again.videos == 0


def test_frames_of_an_unknown_file_are_not_kept(tmp_path: Path) -> None:
    counted = Counted()
    chosen = cached(counted.embedder(), Cache(tmp_path))
    chosen.clips(frames())
    chosen.clips(frames())
    assert counted.videos == 2 and not list(tmp_path.iterdir())


def test_an_interrupted_embedding_leaves_nothing(tmp_path: Path) -> None:
    def stop(texts: Sequence[str]) -> NDArray[np.float64]:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cached(Embedder("counted", "1", 2, text_function=stop), Cache(tmp_path))(["cut"])
    assert not list(tmp_path.iterdir())
    assert cached(Counted().embedder(), Cache(tmp_path))(["cut"]).shape == (1, 2)


def test_what_cannot_be_embedded_is_refused_as_without_a_cache(tmp_path: Path) -> None:
    chosen = cached(Embedder("words", "1", 2, text_function=Counted().embed_texts), Cache(tmp_path))
    with pytest.raises(InputError, match="'words' does not embed clips"):
        chosen.clips(frames(), content="abc")
    with pytest.raises(InputError, match="impossible clips"):
        cached(Counted().embedder(), Cache(tmp_path)).clips(frames(), content="abc", clip_seconds=float("inf"))


def test_a_video_file_is_decoded_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    media = pytest.importorskip("graph2vid.evidence.media")
    asked: list[float] = []

    def decode(path: Path, *, rate: float) -> Iterator[Any]:
        asked.append(rate)
        yield from frames()

    monkeypatch.setattr(media, "frames", decode)
    video = tmp_path / "video.mp4"
    video.write_bytes(b"one")
    counted = Counted()
    made = [video_clips(video, counted.embedder(), cache=Cache(tmp_path / "cache")) for _ in range(2)]
    np.testing.assert_array_equal(*made)
    assert counted.videos == 1 and asked == [1.0]
    video.write_bytes(b"two")  # another content under the same name
    video_clips(video, counted.embedder(), cache=Cache(tmp_path / "cache"))
    assert counted.videos == 2
    video_clips(video, counted.embedder())
    assert counted.videos == 3


# -- arrays --------------------------------------------------------------------------------------------------


@pytest.fixture
def arrays(tmp_path: Path) -> tuple[str, str]:
    np.save(tmp_path / "clips.npy", np.arange(8, dtype=np.float16).reshape(4, 2))
    np.save(tmp_path / "steps.npy", np.ones((3, 2)))
    return str(tmp_path / "clips.npy"), str(tmp_path / "steps.npy")


def test_arrays(arrays: tuple[str, str]) -> None:
    joint = joint_embedder(f"array:{arrays[0]},{arrays[1]}")
    clips, steps = joint.clips(unread()), joint(["a", "b", "c"])
    assert clips.dtype == steps.dtype == np.float32
    np.testing.assert_array_equal(clips, np.arange(8).reshape(4, 2))
    assert joint.similarity(steps, clips).shape == (3, 4)
    np.testing.assert_array_equal(joint.clips([], n_clips=3), clips[:3])  # the end of the video rounded otherwise
    assert joint.clips([], n_clips=5).tolist() == [*clips.tolist(), [0.0, 0.0]]
    with pytest.raises(InputError, match="holds the vectors of 4 clips, and 6 are wanted"):
        joint.clips([], n_clips=6)
    with pytest.raises(InputError, match="holds the vectors of 3 texts, and those of 2 are wanted"):
        joint(["a", "b"])


def test_clips_alone(arrays: tuple[str, str]) -> None:
    assert embedder(f"array:{arrays[0]}").clips([], n_clips=4).shape == (4, 2)
    with pytest.raises(InputError, match="embeds clips alone"):
        joint_embedder(f"array:{arrays[0]}")


def test_arrays_that_do_not_fit(arrays: tuple[str, str], tmp_path: Path) -> None:
    np.save(tmp_path / "wide.npy", np.ones((3, 5)))
    with pytest.raises(InputError, match="must agree on axis 1"):
        embedder(f"array:{arrays[0]},{tmp_path / 'wide.npy'}")
    np.save(tmp_path / "nan.npy", np.array([[1.0, np.nan]]))
    with pytest.raises(InputError, match="embeddings must be finite"):
        embedder(f"array:{tmp_path / 'nan.npy'}")
    (tmp_path / "text.npy").write_text("none")
    with pytest.raises(FormatError, match=r"is not a \.npy file"):
        embedder(f"array:{tmp_path / 'text.npy'}")
