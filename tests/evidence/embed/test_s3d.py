"""S3D with texts, on random checkpoints of the true shapes."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from graph2vid.errors import FormatError, InputError
from graph2vid.evidence.embed import Embedder, embedder, joint_embedder
from graph2vid.evidence.embed import s3d as module

torch = pytest.importorskip("torch", reason="S3D needs torch")
pytest.importorskip("PIL", reason="S3D needs pillow")

# The blocks of the released network: channels in, of branch 0, of branches 1 and 2 (before, after), of branch 3.
BLOCKS = {
    "3b": (192, 64, 96, 128, 16, 32, 32),
    "3c": (256, 128, 128, 192, 32, 96, 64),
    "4b": (480, 192, 96, 208, 16, 48, 64),
    "4c": (512, 160, 112, 224, 24, 64, 64),
    "4d": (512, 128, 128, 256, 24, 64, 64),
    "4e": (512, 112, 144, 288, 32, 64, 64),
    "4f": (528, 256, 160, 320, 32, 128, 128),
    "5b": (832, 256, 160, 320, 32, 128, 128),
    "5c": (832, 384, 192, 384, 48, 128, 128),
}
WORDS = ("cut", "the", "tomato", "don't", "fry")


def true_shapes(words: int) -> dict[str, tuple[int, ...]]:
    """Return the weights of the released checkpoint, by name."""
    shapes: dict[str, tuple[int, ...]] = {}

    def unit(name: str, part: int, out: int, into: int, kernel: tuple[int, int, int]) -> None:
        shapes[f"{name}.conv{part}.weight"] = (out, into, *kernel)
        for kind in ("weight", "bias", "running_mean", "running_var"):
            shapes[f"{name}.bn{part}.{kind}"] = (out,)
        shapes[f"{name}.bn{part}.num_batches_tracked"] = ()

    def separable(name: str, out: int, into: int) -> None:
        unit(name, 1, out, into, (1, 3, 3))
        unit(name, 2, out, out, (3, 1, 1))

    def linear(name: str, out: int, into: int) -> None:
        shapes[f"{name}.weight"], shapes[f"{name}.bias"] = (out, into), (out,)

    unit("conv1", 1, 64, 24, (2, 4, 4))
    unit("conv_2b", 1, 64, 64, (1, 1, 1))
    separable("conv_2c", 192, 64)
    linear("gating.fc", 192, 192)
    for block, (into, b0, b1a, b1b, b2a, b2b, b3) in BLOCKS.items():
        name = f"mixed_{block}"
        for branch, out in (("b0", b0), ("b1_a", b1a), ("b2_a", b2a), ("b3_b", b3)):
            unit(f"{name}.conv_{branch}", 1, out, into, (1, 1, 1))
        separable(f"{name}.conv_b1_b", b1b, b1a)
        separable(f"{name}.conv_b2_b", b2b, b2a)
        for branch, out in (("b0", b0), ("b1", b1b), ("b2", b2b), ("b3", b3)):
            linear(f"{name}.gating_{branch}.fc", out, out)
    linear("fc", 512, 1024)
    shapes["text_module.word_embd.weight"] = (words, 300)
    linear("text_module.fc1", 2048, 300)
    linear("text_module.fc2", 512, 2048)
    return shapes


def random_state(words: int = len(WORDS) + 1, seed: int = 0) -> dict[str, Any]:
    generator = torch.Generator().manual_seed(seed)
    state: dict[str, Any] = {}
    for name, shape in true_shapes(words).items():
        if name.endswith("num_batches_tracked"):
            state[name] = torch.tensor(7)
        elif name.endswith(("bn1.weight", "bn2.weight", "running_var")):
            state[name] = torch.empty(shape).uniform_(0.7, 1.5, generator=generator)
        else:
            spread = (2.0 / max(int(np.prod(shape[1:])), 1)) ** 0.5 if len(shape) > 1 else 0.1
            state[name] = torch.empty(shape).normal_(0.0, spread, generator=generator)
    return state


@pytest.fixture(scope="module")
def state() -> dict[str, Any]:
    return random_state()


@pytest.fixture(scope="module")
def folder(state: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint with few words, and its dictionary beside it."""
    folder = tmp_path_factory.mktemp("s3d")
    torch.save(state, folder / "s3d.pth")
    np.save(folder / "s3d_dict.npy", np.array(WORDS))
    return folder


def by_functions(state: dict[str, Any], video: Any) -> Any:
    """Compute the vectors of videos [B, 3, T, H, W] from the weights alone, step by step."""
    from torch.nn import functional

    def unit(x: Any, name: str, part: int = 1, padding: Any = 0) -> Any:
        x = functional.conv3d(x, state[f"{name}.conv{part}.weight"], padding=padding)
        mean, variance = state[f"{name}.bn{part}.running_mean"], state[f"{name}.bn{part}.running_var"]
        scale = state[f"{name}.bn{part}.weight"] / (variance + 1e-5).sqrt()
        shift = state[f"{name}.bn{part}.bias"] - mean * scale
        return (x * scale[:, None, None, None] + shift[:, None, None, None]).clamp(min=0)

    def separable(x: Any, name: str) -> Any:
        return unit(unit(x, name, 1, (0, 1, 1)), name, 2, (1, 0, 0))

    def gated(x: Any, name: str) -> Any:
        average = x.flatten(2).mean(dim=2)
        gate = torch.sigmoid(average @ state[f"{name}.fc.weight"].T + state[f"{name}.fc.bias"])
        return torch.einsum("bcthw,bc->bcthw", x, gate)

    def pooled(x: Any, size: tuple[int, int, int], stride: tuple[int, int, int]) -> Any:
        """Pool as TensorFlow's SAME does on sides that the stride divides: what is missing is missing at the end."""
        for axis, (width, step) in enumerate(zip(size, stride, strict=True), start=2):
            count = -(-x.shape[axis] // step)
            parts = [x.narrow(axis, at * step, min(width, x.shape[axis] - at * step)) for at in range(count)]
            x = torch.stack([part.amax(dim=axis) for part in parts], dim=axis)
        return x

    corners = [video[:, :, t::2, h::2, w::2] for t in (0, 1) for h in (0, 1) for w in (0, 1)]
    x = unit(torch.cat(corners, dim=1), "conv1", padding=(1, 2, 2))[:, :, 1:, 1:, 1:]
    x = pooled(x, (1, 3, 3), (1, 2, 2))
    x = gated(separable(unit(x, "conv_2b"), "conv_2c"), "gating")
    x = pooled(x, (1, 3, 3), (1, 2, 2))
    for block in BLOCKS:
        if block in ("4b", "5b"):
            x = pooled(x, *(((3, 3, 3), (2, 2, 2)) if block == "4b" else ((2, 2, 2), (2, 2, 2))))
        name = f"mixed_{block}"
        neighbours = functional.max_pool3d(x, 3, stride=1, padding=1)
        branches = [
            unit(x, f"{name}.conv_b0"),
            separable(unit(x, f"{name}.conv_b1_a"), f"{name}.conv_b1_b"),
            separable(unit(x, f"{name}.conv_b2_a"), f"{name}.conv_b2_b"),
            unit(neighbours, f"{name}.conv_b3_b"),
        ]
        x = torch.cat([gated(branch, f"{name}.gating_b{at}") for at, branch in enumerate(branches)], dim=1)
    return x.flatten(2).mean(dim=2) @ state["fc.weight"].T + state["fc.bias"]


def test_the_network_is_the_released_one() -> None:
    from graph2vid.evidence.embed.s3d_network import S3D

    with torch.device("meta"):
        found = {name: tuple(tensor.shape) for name, tensor in S3D().state_dict().items()}
    assert found == true_shapes(66250)


def test_video_against_functions(state: dict[str, Any], folder: Path) -> None:
    network = module.load_network(folder / "s3d.pth").eval()
    video = torch.rand((2, 3, 16, 64, 48), generator=torch.Generator().manual_seed(1))
    with torch.inference_mode():
        made, expected = network(video), by_functions(state, video)
    assert made.shape == (2, 512) and float(made.std()) > 0.01
    torch.testing.assert_close(made, expected, atol=1e-4, rtol=1e-4)


def test_a_checkpoint_of_the_true_shapes(tmp_path: Path) -> None:
    torch.save(random_state(66250), tmp_path / "s3d_howto100m.pth")
    np.save(tmp_path / "s3d_dict.npy", np.array([f"word{number}" for number in range(66249)]))
    joint = joint_embedder(f"s3d:{tmp_path / 's3d_howto100m.pth'}")
    assert (joint.dimension, joint.frame_rate, joint.clip_seconds, joint.comparison) == (512, 10.0, 3.2, "dot")
    rng = np.random.default_rng(0)
    frames = [(number / 10, rng.integers(0, 256, (240, 320, 3), dtype=np.uint8)) for number in range(32)]
    clips = joint.clips(frames)
    texts = joint(["word1 word66248", "nothing known"])
    assert clips.shape == (1, 512) and texts.shape == (2, 512)
    assert clips.any() and texts[0].any() and not texts[1].any()
    np.testing.assert_allclose(joint.similarity(texts, clips), texts @ clips.T)
    (tmp_path / "s3d_howto100m.pth").unlink()  # 120 MB


def test_texts(state: dict[str, Any], folder: Path) -> None:
    """The largest value is taken over 16 words, of which those that fill up count too."""
    made = joint_embedder(f"s3d:{folder / 's3d.pth'}")(["Cut the onion, the TOMATO!", "onion", "don't " * 20])
    vectors, first, second = (state[f"text_module.{name}.weight"].numpy() for name in ("word_embd", "fc1", "fc2"))
    shift, last = state["text_module.fc1.bias"].numpy(), state["text_module.fc2.bias"].numpy()
    for row, numbers in ((0, [1, 2, 2, 3] + [0] * 12), (2, [4] * 16)):
        each = np.maximum(vectors[numbers] @ first.T + shift, 0.0)
        np.testing.assert_allclose(made[row], each.max(axis=0) @ second.T + last, atol=1e-5)
    assert not made[1].any()


def test_words() -> None:
    numbers = {word: at for at, word in enumerate(WORDS, start=1)}
    assert module.number_words("Cut the—tomato; DON'T fry_it", numbers) == [1, 2, 3, 4] + [0] * 12
    assert module.number_words("fry " * 3 + "cut " * 20, numbers) == [5] * 3 + [1] * 13
    assert not any(module.number_words("", numbers))


def test_preprocessing() -> None:
    """The square in the middle at 224 pixels, red first, 0 to 1, time before space."""
    image = np.zeros((240, 320, 3), dtype=np.uint8)
    image[:, :160] = (255, 0, 51)
    picture = module.prepare(image)
    assert picture.shape == (224, 224, 3) and picture.dtype == np.uint8
    assert picture[5, 5].tolist() == [255, 0, 51] and picture[5, 220].tolist() == [0, 0, 0]
    video = module.to_video([np.stack([picture, 0 * picture])])
    assert video.shape == (1, 3, 2, 224, 224) and video.dtype == np.float32
    np.testing.assert_allclose(video[0, :, 0, 5, 5], [1.0, 0.0, 0.2], rtol=1e-6)
    assert not video[0, :, 1].any()


def test_space_to_depth() -> None:
    from graph2vid.evidence.embed.s3d_network import space_to_depth

    video = torch.arange(2 * 4 * 4 * 6).reshape(1, 2, 4, 4, 6)
    made = space_to_depth(video)
    assert made.shape == (1, 16, 2, 2, 3)
    for t, h, w, c in np.ndindex(2, 2, 2, 2):
        channel = ((2 * t + h) * 2 + w) * 2 + c
        assert torch.equal(made[0, channel], video[0, c, t::2, h::2, w::2])


def test_clips_are_windows_of_32_frames(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[NDArray[np.uint8]] = []

    def look(network: Any, windows: Any) -> NDArray[np.float32]:
        seen.extend(windows)
        return np.ones((len(windows), 512), dtype=np.float32)

    monkeypatch.setattr(module, "_embed_windows", look)
    frames = [(number / 10, np.full((30, 40, 3), number, np.uint8)) for number in range(64)]
    chosen = embedder(f"s3d:{folder / 's3d.pth'}")
    assert chosen.clips(frames).shape == (2, 512)
    assert [window[:, 0, 0, 0].tolist() for window in seen] == [list(range(32)), list(range(32, 64))]
    assert all(window.shape == (32, 224, 224, 3) for window in seen)
    seen.clear()
    assert chosen.clips(frames, clip_seconds=1.0).shape == (7, 512)
    # The first and last seconds are too near the ends for a window of their own.
    assert [int(window[0, 0, 0, 0]) for window in seen] == [0, 9, 19, 29, 32]


@pytest.mark.parametrize("form", ["safetensors", "training"])
def test_other_forms_of_checkpoint(form: str, state: dict[str, Any], folder: Path, tmp_path: Path) -> None:
    kept = {name: value for name, value in state.items() if not name.endswith("num_batches_tracked")}
    if form == "safetensors":
        pytest.importorskip("safetensors", reason="needs the package safetensors")
        from safetensors.torch import save_file

        path = tmp_path / "s3d.safetensors"
        save_file(kept, path)
    else:
        path = tmp_path / "epoch0300.pth.tar"
        torch.save({"epoch": 300, "state_dict": {f"module.{name}": value for name, value in kept.items()}}, path)
    other, first = (embedder(f"s3d:{file},{folder / 's3d_dict.npy'}") for file in (path, folder / "s3d.pth"))
    np.testing.assert_array_equal(other(["cut the tomato"]), first(["cut the tomato"]))
    assert other.version != first.version


def test_weights_that_are_missing_foreign_or_of_another_shape(state: dict[str, Any], tmp_path: Path) -> None:
    changed = dict(state)
    del changed["mixed_4c.gating_b1.fc.bias"]
    changed["head.weight"] = torch.zeros(3)
    changed["fc.weight"] = torch.zeros(400, 1024)
    path = tmp_path / "other.pth"
    torch.save(changed, path)
    with pytest.raises(FormatError) as caught:
        module.load_network(path)
    for part in (
        "1 missing: mixed_4c.gating_b1.fc.bias",
        "1 foreign: head.weight",
        "1 of another shape: fc.weight (400, 1024) instead of (512, 1024)",
    ):
        assert part in str(caught.value)


class Payload:
    """Runs code when it is unpickled."""

    def __reduce__(self) -> Any:
        return (Path.touch, (Path("unpickled"),))


@pytest.mark.parametrize("how", ["pickle", "torch", "text", "list"])
def test_nothing_is_unpickled(how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "bad.pth"
    if how == "pickle":
        path.write_bytes(pickle.dumps({"fc.weight": Payload()}, protocol=2))
    elif how == "torch":
        torch.save({"fc.weight": Payload()}, path)
    elif how == "list":
        torch.save([torch.zeros(2)], path)
    else:
        path.write_text("no checkpoint")
    with pytest.raises(FormatError, match="is not a checkpoint"):
        module.load_network(path)
    assert not (tmp_path / "unpickled").exists()


def test_files_that_are_not_there_or_no_dictionary(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no checkpoint"):
        embedder("s3d:nowhere.pth")
    with pytest.raises(InputError, match="there is no dictionary"):
        embedder(f"s3d:{folder / 's3d.pth'},nowhere.npy")
    for name, array in (("numbers.npy", np.arange(3)), ("objects.npy", np.array(["a", None], dtype=object))):
        np.save(tmp_path / name, array, allow_pickle=True)
        with pytest.raises(FormatError, match="is not a dictionary of words"):
            embedder(f"s3d:{folder / 's3d.pth'},{tmp_path / name}")
    np.save(tmp_path / "long.npy", np.array([f"w{number}" for number in range(9)]))
    with pytest.raises(FormatError, match="holds 9 words, and the checkpoint has vectors for 5"):
        embedder(f"s3d:{folder / 's3d.pth'},{tmp_path / 'long.npy'}")(["w1"])


def test_without_a_dictionary_there_are_clips_alone(folder: Path, tmp_path: Path) -> None:
    alone = tmp_path / "s3d.pth"
    alone.symlink_to(folder / "s3d.pth")
    sight: Embedder = embedder(f"s3d:{alone}")
    assert sight.text_function is None and not sight.joint
    with pytest.raises(InputError, match=r"embeds clips alone.*s3d:CHECKPOINT,DICTIONARY"):
        joint_embedder(f"s3d:{alone}")
