"""Training of the networks that weigh pairs of steps."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from graph2vid.errors import InputError
from graph2vid.text import Instruction, Procedure
from graph2vid.text.precedence import FOLDS, LAYERS, OrderNetwork, fold_of, inputs, step_pairs
from graph2vid.text.precedence.order_network import FARTHEST, NETWORK_SHARE

torch = pytest.importorskip("torch")

from graph2vid.learn.order import OrderedProcedure, OrderTrainingOptions, train_order  # noqa: E402
from graph2vid.learn.order.order_training import TorchOrderNetwork  # noqa: E402

THINGS = (
    *("onion", "carrot", "leek", "pepper", "potato", "apple", "pear", "plum", "lemon", "lime"),
    *("egg", "ham", "fish", "bean", "pea", "corn", "chard", "fig", "date", "nut", "kale", "beet", "swede", "turnip"),
)
OPTIONS = OrderTrainingOptions(epochs=2)


def texts() -> list[OrderedProcedure]:
    found = []
    for one in THINGS:
        steps = (f"Wash the {one}.", f"Cut the {one}.", "Heat the oil.", f"Fry the {one} in the oil.")
        pairs = frozenset({(0, 1), (1, 3), (2, 3)})
        found.append(OrderedProcedure(Procedure(tuple(map(Instruction, steps))), pairs))
    return found


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, OrderNetwork]:
    path = tmp_path_factory.mktemp("order") / "order.safetensors"
    return path, train_order(texts(), path, OPTIONS)


def test_numpy_and_torch_agree(trained: tuple[Path, OrderNetwork]) -> None:
    network = OrderNetwork.load(trained[0])
    seen = step_pairs(texts()[0].procedure)
    module = TorchOrderNetwork(seen.meaning.shape[1], OPTIONS).eval()
    for layer in LAYERS:
        part = getattr(module, layer)
        part.weight.data = torch.tensor(network.tensors[f"1.{layer}.weight"].T.copy())
        part.bias.data = torch.tensor(network.tensors[f"1.{layer}.bias"].copy())
    scaled = (inputs(seen) - network.tensors["mean"]) / network.tensors["deviation"]
    features = torch.tensor(np.clip(scaled, -FARTHEST, FARTHEST))[None]
    later = torch.triu(torch.ones(4, 4), 1)[None]
    padded = torch.nn.functional.pad(features, (0, 0, 0, 2, 0, 2))
    meaning = torch.nn.functional.pad(torch.tensor(seen.meaning)[None], (0, 0, 0, 2))
    with torch.no_grad():
        found = module(padded, meaning, torch.nn.functional.pad(later, (0, 2, 0, 2)))[0, :4, :4].numpy()
    plain = features[0].numpy() @ network.tensors["1.plain.weight"] + network.tensors["1.plain.bias"]
    found = NETWORK_SHARE * found + (1 - NETWORK_SHARE) * plain[..., 0]
    upper = np.triu_indices(4, 1)
    assert np.allclose(found[upper], network.logits(seen, 1)[upper], atol=1e-4)


def test_what_is_saved_is_what_was_trained(trained: tuple[Path, OrderNetwork]) -> None:
    path, network = trained
    loaded = OrderNetwork.load(path)
    assert loaded.calibration == network.calibration
    assert {"auto", "rules", "learned"} == set(loaded.calibration)
    assert all(np.array_equal(loaded.tensors[name], array) for name, array in network.tensors.items())


def test_the_same_seed_gives_the_same_weights(trained: tuple[Path, OrderNetwork], tmp_path: Path) -> None:
    again = train_order(texts(), tmp_path / "again.safetensors", OPTIONS)
    assert np.array_equal(again.tensors["0.last.weight"], trained[1].tensors["0.last.weight"])


def test_too_few_texts(tmp_path: Path) -> None:
    few = [text for text in texts() if fold_of(text.procedure.texts) != FOLDS - 1]
    with pytest.raises(InputError, match="too few"):
        train_order(few, tmp_path / "few.safetensors", OPTIONS)
