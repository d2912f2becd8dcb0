"""CLIP and SigLIP on frames, with tiny random weights and with CLIP's true shapes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import films
from graph2vid.errors import FormatError, Graph2VidError, InputError
from graph2vid.evidence import log_likelihood, log_odds
from graph2vid.evidence.embed import embedder, joint_embedder, sources, video_clips
from graph2vid.evidence.embed.pictures import PictureModel
from graph2vid.flow import FlowGraph
from graph2vid.grounding import ground

torch = pytest.importorskip("torch", reason="CLIP and SigLIP need torch")
transformers = pytest.importorskip("transformers", reason="CLIP and SigLIP need transformers")
pytest.importorskip("PIL", reason="CLIP and SigLIP need pillow")

WORDS = {"<pad>": 0, "<s>": 1, "</s>": 2, "<unk>": 3, "cut": 4, "the": 5, "tomato": 6, "fry": 7}
CLIP_MEAN = (0.48145466, 0.4578275, 0.40821073)
CLIP_STD = (0.26862954, 0.26130258, 0.27577711)
TEXT = {
    "vocab_size": 8,
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "max_position_embeddings": 8,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
SIGHT = {
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "image_size": 8,
    "patch_size": 4,
}


def write_tokenizer(folder: Path, words: dict[str, int]) -> None:
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    tokenizer = Tokenizer(models.WordLevel(words, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", words["<s>"]), ("</s>", words["</s>"])]
    )
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", bos_token="<s>", eos_token="</s>", unk_token="<unk>"
    ).save_pretrained(folder)


def write_settings(folder: Path, family: str, side: int) -> None:
    """Write how pictures are prepared, as the released models do."""
    settings: dict[str, Any] = {"do_resize": True, "do_rescale": True, "do_normalize": True, "resample": 3}
    settings |= {"image_processor_type": "CLIPImageProcessor" if family == "clip" else "SiglipImageProcessor"}
    if family == "clip":
        settings |= {
            "size": {"shortest_edge": side},
            "do_center_crop": True,
            "crop_size": {"height": side, "width": side},
        }
        settings |= {"image_mean": CLIP_MEAN, "image_std": CLIP_STD}
    else:
        settings |= {"size": {"height": side, "width": side}, "image_mean": [0.5] * 3, "image_std": [0.5] * 3}
    (folder / "preprocessor_config.json").write_text(json.dumps(settings))


def write_model(folder: Path, family: str, seed: int = 0) -> Any:
    """Write a tiny model with random weights; return it."""
    torch.manual_seed(seed)
    folder.mkdir(exist_ok=True)
    if family == "clip":
        sizes = {"projection_dim": 12}
        config = transformers.CLIPConfig(text_config=TEXT | sizes, vision_config=SIGHT | sizes, projection_dim=12)
        model = transformers.CLIPModel(config)
    else:
        model = transformers.SiglipModel(transformers.SiglipConfig(text_config=TEXT, vision_config=SIGHT))
    with torch.no_grad():
        for weight in model.parameters():
            weight.normal_(0.0, 0.3)  # far enough from nothing that all parts matter
    model.eval().save_pretrained(folder)
    write_tokenizer(folder, WORDS)
    write_settings(folder, family, SIGHT["image_size"])
    return model


def loaded(folder: Path, family: str) -> PictureModel:
    return PictureModel(family, str(folder), str(folder), transformers.AutoConfig.from_pretrained(folder))


def unit(rows: Any) -> NDArray[np.float32]:
    rows = getattr(rows, "pooler_output", rows)
    vectors: NDArray[np.float32] = (rows / rows.norm(dim=1, keepdim=True)).numpy()
    return vectors


@pytest.mark.parametrize("family", ["clip", "siglip"])
def test_a_tiny_model_by_its_folder(family: str, tmp_path: Path) -> None:
    model = write_model(tmp_path / "model", family)
    joint = joint_embedder(f"{family}:{tmp_path / 'model'}")
    assert joint.dimension == (12 if family == "clip" else 16) and joint.joint

    texts = joint(["cut the tomato", "", "fry", "fry " * 20])
    rows = [[1, 4, 5, 6, 2], [1, 7, 2], [1, *[7] * 6, 2]]  # the last is cut to what the model reads
    with torch.inference_mode():
        for made, ids in zip(texts[[0, 2, 3]], rows, strict=True):
            filled = ids + [0] * (8 - len(ids)) if family == "siglip" else ids  # SigLIP reads the filling too
            expected = unit(model.get_text_features(input_ids=torch.tensor([filled])))
            np.testing.assert_allclose(made, expected[0], atol=1e-5)
    assert not texts[1].any()

    rng = np.random.default_rng(0)
    frames = [(at / 2, rng.integers(0, 256, (8, 8, 3), dtype=np.uint8)) for at in range(5)]
    clips = joint.clips(frames, n_clips=4)
    mean, std = (CLIP_MEAN, CLIP_STD) if family == "clip" else ((0.5,) * 3, (0.5,) * 3)
    pixels = (np.stack([image for _, image in frames]) / 255.0 - mean) / std
    with torch.inference_mode():
        given = torch.tensor(pixels.transpose(0, 3, 1, 2), dtype=torch.float32)
        each = unit(model.get_image_features(pixel_values=given))
    expected = [each[0] + each[1], each[2] + each[3], each[4]]
    np.testing.assert_allclose(clips[:3], [row / np.linalg.norm(row) for row in expected], atol=1e-5)
    assert not clips[3].any()
    similarity = joint.similarity(texts, clips)
    np.testing.assert_allclose(similarity, texts @ clips.T, atol=1e-6)


def cubic(x: float) -> float:
    """Keys' kernel with a = -0.5."""
    x = abs(x)
    if x < 1:
        return 1.5 * x**3 - 2.5 * x**2 + 1
    return -0.5 * x**3 + 2.5 * x**2 - 4 * x + 2 if x < 2 else 0.0


def resized(values: NDArray[np.float64], size: int) -> NDArray[np.float64]:
    """Resize a row of values, bicubically, the kernel widened where the row shrinks; whole values, as in a picture."""
    scale = len(values) / size
    widen = max(scale, 1.0)
    result = []
    for at in range(size):
        weights = np.array([cubic((old + 0.5 - (at + 0.5) * scale) / widen) for old in range(len(values))])
        result.append(weights @ values / weights.sum())
    return np.clip(np.round(result), 0, 255)


@pytest.mark.parametrize("family", ["clip", "siglip"])
def test_preprocessing_by_hand(family: str, tmp_path: Path) -> None:
    """A picture of 16 × 24 at 8 pixels: CLIP brings the short side to 8 and cuts the middle; SigLIP squeezes."""
    write_model(tmp_path / "model", family)
    model = loaded(tmp_path / "model", family)
    columns = np.round(np.linspace(0.0, 250.0, 24) ** 2 / 250.0)
    image = np.repeat(np.tile(columns, (16, 1))[:, :, None], 3, axis=2).astype(np.uint8)
    made = model.prepare(image)
    assert made.shape == (3, 8, 8) and made.dtype == np.float32
    row = resized(columns, 12)[2:10] if family == "clip" else resized(columns, 8)
    mean, std = (CLIP_MEAN, CLIP_STD) if family == "clip" else ((0.5,) * 3, (0.5,) * 3)
    for channel in range(3):
        expected = (row / 255.0 - mean[channel]) / std[channel]
        one_value = 1.0 / 255.0 / std[channel]  # rounding half a value up or down
        np.testing.assert_allclose(made[channel], np.tile(expected, (8, 1)), atol=one_value * 1.01)
        assert np.abs(made[channel] - expected).mean() < one_value / 4


def test_red_is_first(tmp_path: Path) -> None:
    write_model(tmp_path / "model", "clip")
    image = np.zeros((8, 8, 3), dtype=np.uint8)
    image[:, :, 0] = 255
    made = loaded(tmp_path / "model", "clip").prepare(image)
    expected = [(1 - CLIP_MEAN[0]) / CLIP_STD[0], -CLIP_MEAN[1] / CLIP_STD[1], -CLIP_MEAN[2] / CLIP_STD[2]]
    np.testing.assert_allclose(made[:, 3, 3], expected, rtol=1e-5)


def test_clip_of_the_true_shapes(tmp_path: Path) -> None:
    """The sizes of ViT-B/32: 151 million weights, kept in half precision as many released ones are."""
    from safetensors.torch import save_file

    config = transformers.CLIPConfig()
    with torch.device("meta"):
        wanted = transformers.CLIPModel(config).state_dict()
    assert wanted["visual_projection.weight"].shape == (512, 768)
    assert sum(tensor.numel() for name, tensor in wanted.items() if "position_ids" not in name) == 151_277_313
    generator = torch.Generator().manual_seed(0)
    state = {
        name: torch.empty(tensor.shape, dtype=torch.float16).uniform_(-0.03, 0.03, generator=generator)
        for name, tensor in wanted.items()
        if "position_ids" not in name
    }
    save_file(state, tmp_path / "model.safetensors", metadata={"format": "pt"})
    config.architectures = ["CLIPModel"]
    config.save_pretrained(tmp_path)
    write_tokenizer(tmp_path, {"<pad>": 0, "<unk>": 3, "cut": 4, "<s>": 49406, "</s>": 49407})
    write_settings(tmp_path, "clip", 224)
    joint = joint_embedder(f"clip:{tmp_path}")
    image = np.random.default_rng(0).integers(0, 256, (240, 320, 3), dtype=np.uint8)
    texts, clips = joint(["cut"]), joint.clips([(0.0, image)])
    assert texts.shape == clips.shape == (1, 512)
    np.testing.assert_allclose(np.linalg.norm([texts[0], clips[0]], axis=1), 1.0, atol=1e-5)
    (tmp_path / "model.safetensors").unlink()  # 300 MB


def test_other_weights_are_another_version(tmp_path: Path) -> None:
    for name, seed in (("one", 0), ("two", 1), ("same", 0)):
        write_model(tmp_path / name, "clip", seed)
    one, two, same = (embedder(f"clip:{tmp_path / name}").version for name in ("one", "two", "same"))
    assert one == same != two


def test_weights_that_are_missing_are_named(tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    write_model(tmp_path / "model", "clip")
    path = tmp_path / "model" / "model.safetensors"
    state = load_file(path)
    del state["text_projection.weight"]
    state["visual_projection.weight"] = torch.zeros(12, 16)
    save_file(state, path, metadata={"format": "pt"})
    with pytest.raises(FormatError, match=r"1 are missing or of another shape: text_projection\.weight"):
        embedder(f"clip:{tmp_path / 'model'}")(["cut"])


def test_a_model_of_another_family(tmp_path: Path) -> None:
    write_model(tmp_path / "model", "siglip")
    with pytest.raises(InputError, match="is a model of type 'siglip', and clip:… needs one of type 'clip'"):
        embedder(f"clip:{tmp_path / 'model'}")


def test_a_folder_without_a_model(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not a model that clip can load"):
        embedder(f"clip:{tmp_path}")
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(InputError, match="is not a model that clip can load"):
        embedder(f"clip:{tmp_path}")


def test_a_hub_that_cannot_be_reached(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sources, "hub_answers", lambda: False)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(Graph2VidError, match=r"cannot load the model 'some/model'.*its folder: clip:PATH/TO/FOLDER"):
        embedder("clip:some/model")


def test_a_model_downloaded_before_is_used_without_the_hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    commit = "0123456789abcdef0123456789abcdef01234567"
    store = tmp_path / "models--some--tiny"
    (store / "refs").mkdir(parents=True)
    (store / "refs" / "main").write_text(commit)
    (store / "snapshots").mkdir()
    write_model(store / "snapshots" / commit, "clip")
    monkeypatch.setattr(sources, "hub_answers", lambda: False)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    tiny = embedder("clip:some/tiny")
    assert tiny.version.startswith(commit)
    assert tiny(["cut the tomato"]).shape == (1, 12)


@pytest.mark.parametrize("family", ["clip", "siglip"])
def test_a_film_is_grounded_by_its_frames(family: str, tmp_path: Path) -> None:
    pytest.importorskip("av", reason="needs graph2vid[media]")
    write_model(tmp_path / family, family)
    name = f"{family}:{tmp_path / family}"
    film = films.film(tmp_path / "film.mp4", [at / 2 for at in range(20)])
    flow = FlowGraph.chain(["cut the tomato", "fry the tomato"])
    found = ground(flow, film, frames=name)
    assert found.options["frames"]["embedder"] == name and len(found.labels) == 10
    clips = video_clips(film, joint_embedder(name))
    expected = log_odds(log_likelihood(joint_embedder(name).similarity(embedder(name)(flow.texts), clips)))
    np.testing.assert_allclose(found.evidence, expected, atol=1e-4)
