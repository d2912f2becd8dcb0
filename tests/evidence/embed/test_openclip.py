"""Models of open_clip."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graph2vid.errors import InputError, MissingDependencyError
from graph2vid.evidence.embed import embedder, joint_embedder

TINY = {
    "embed_dim": 12,
    "vision_cfg": {"image_size": 16, "layers": 1, "width": 64, "patch_size": 8},
    "text_cfg": {"context_length": 77, "vocab_size": 49408, "width": 64, "heads": 2, "layers": 1},
}


def load_open_clip() -> Any:
    try:
        import open_clip
    except (ImportError, RuntimeError) as error:
        pytest.skip(f"open_clip does not load here: {error}")
    return open_clip


def test_a_tiny_model_from_a_file(tmp_path: Path) -> None:
    open_clip = load_open_clip()
    import torch

    (tmp_path / "tiny-test.json").write_text(json.dumps(TINY))
    open_clip.add_model_config(tmp_path / "tiny-test.json")
    model = open_clip.create_model("tiny-test").eval()
    torch.save(model.state_dict(), tmp_path / "tiny.pt")
    joint = joint_embedder(f"open_clip:tiny-test/{tmp_path / 'tiny.pt'}")
    assert joint.dimension == 12
    made = joint(["cut the tomato", ""])
    with torch.inference_mode():
        own = model.encode_text(open_clip.get_tokenizer("tiny-test")(["cut the tomato"]), normalize=True).numpy()
    np.testing.assert_allclose(made[0], own[0], atol=1e-5)
    image = np.random.default_rng(0).integers(0, 256, (16, 24, 3), dtype=np.uint8)
    assert joint.clips([(0.0, image)]).shape == (1, 12)
    with pytest.raises(InputError, match="open_clip cannot load 'nowhere' for tiny-test"):
        embedder("open_clip:tiny-test/nowhere")


def test_a_package_that_does_not_load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A torchvision of another build than torch fails with a RuntimeError, deep inside."""
    (tmp_path / "open_clip").mkdir()
    (tmp_path / "open_clip" / "__init__.py").write_text(
        "raise RuntimeError('operator torchvision::nms does not exist')"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "open_clip", raising=False)
    with pytest.raises(
        MissingDependencyError, match=r"torchvision::nms does not exist.*clip:… does without torchvision"
    ):
        embedder("open_clip:ViT-B-32/openai")
