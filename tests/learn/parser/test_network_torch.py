"""The network in torch and the one that runs without torch are the same function."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from graph2vid.text.learned.decode import FORBIDDEN, best_tags
from graph2vid.text.learned.learned_parser import RecipeModel
from graph2vid.text.learned.network_numpy import Network, expected_shapes
from graph2vid.text.learned.pairs import pair_features
from graph2vid.text.learned.words import TAGS, Pieces, sentence_numbers, spans_of
from tiny_parser import SHAPE, VOCABULARY, random_tensors

torch = pytest.importorskip("torch")

from graph2vid.learn.parser.examples import NO_LABEL, Example, collate  # noqa: E402
from graph2vid.learn.parser.network_torch import TorchNetwork, crf_loss  # noqa: E402

WORDS = ("Mix", "flour", "and", "water", "in", "the", "bowl", ".", "Bake", "it", "!")
GOLD = ("B-Ac", "B-F", "O", "B-F", "O", "O", "B-T", "O", "B-Ac", "B-F", "O")
EXAMPLES = (
    Example(WORDS, GOLD, GOLD, ((1, 0, "t"), (3, 0, "t"), (6, 0, "d"), (0, 9, "f-eq"), (9, 8, "t"))),
    Example(WORDS[:4], GOLD[:4], GOLD[:4], ((1, 0, "t"), (3, 0, "t"))),
)


@pytest.fixture
def network() -> TorchNetwork:
    network = TorchNetwork(SHAPE, len(VOCABULARY))
    network.load_state_dict({name: torch.from_numpy(value) for name, value in random_tensors().items()})
    return network.eval()


def test_both_networks_have_the_same_tensors(network: TorchNetwork) -> None:
    shapes = {name: tuple(value.shape) for name, value in network.state_dict().items()}
    assert shapes == expected_shapes(SHAPE, len(VOCABULARY))


def test_scores_agree_padding_or_not(network: TorchNetwork) -> None:
    pieces = Pieces(VOCABULARY)
    model = RecipeModel(Network(SHAPE, random_tensors()), pieces)
    with torch.no_grad():
        branches = network(collate(EXAMPLES, pieces, SHAPE))
    for number, example in enumerate(EXAMPLES):
        words = list(example.words)
        (reading,) = model.read(words)
        spans = spans_of(example.tags)
        sentences = sentence_numbers(words)
        features = pair_features(words, sentences, spans)
        scores = model.network.score_edges(reading.words, spans, features)
        tags = model.network.score_tags(reading.words)
        expected = {
            name: torch.stack([getattr(branch, name) for branch in branches]).mean(dim=0)[number].numpy()
            for name in ("tags", "arc", "same", "label")
        }
        count = len(spans)
        np.testing.assert_allclose(tags, expected["tags"][: len(words)], atol=1e-4)
        np.testing.assert_allclose(scores.arc, expected["arc"][:count, :count], atol=1e-4)
        np.testing.assert_allclose(scores.same, expected["same"][:count, :count], atol=1e-4)
        np.testing.assert_allclose(scores.label, expected["label"][:count, :count], atol=1e-4)


def test_batches_hold_the_edges_and_cut_what_is_too_long() -> None:
    pieces = Pieces(VOCABULARY)
    batch = collate(EXAMPLES, pieces, SHAPE)
    assert (batch["labels"] != NO_LABEL).sum().item() == 7
    assert batch["pieces"].shape[0] == 2
    long = Example(("the",) * 100, ("O",) * 100, ("O",) * 100, ())
    batch = collate([long], pieces, SHAPE)
    assert batch["pieces"].shape == (1, SHAPE.positions)
    assert batch["is_word"].sum().item() == SHAPE.positions - 2


def test_crf_loss_is_that_of_all_valid_sequences() -> None:
    generator = torch.Generator().manual_seed(0)
    kept = [0, 1, 2, 3, 4]  # O and two classes, so that all sequences can be listed
    scores = torch.full((1, 3, len(TAGS)), -100.0)
    scores[..., kept] = torch.randn(1, 3, len(kept), generator=generator)
    transitions = torch.randn(len(TAGS), len(TAGS), generator=generator)
    tags = torch.tensor([[1, 2, 0]])

    def value(sequence: tuple[int, ...]) -> float:
        total = sum(scores[0, at, tag].item() for at, tag in enumerate(sequence))
        return total + sum(transitions[a, b].item() for a, b in itertools.pairwise(sequence))

    def valid(sequence: tuple[int, ...]) -> bool:
        return all(FORBIDDEN[a, b] == 0 for a, b in itertools.pairwise((0, *sequence)))

    valid_ones = [sequence for sequence in itertools.product(kept, repeat=3) if valid(sequence)]
    every = np.logaddexp.reduce([value(sequence) for sequence in valid_ones])
    loss = crf_loss(scores, transitions, tags, torch.ones(1, 3, dtype=torch.bool))
    assert loss.item() == pytest.approx((every - value((1, 2, 0))) / 3, abs=1e-3)
    best = max(valid_ones, key=value)
    assert best_tags(scores[0].numpy(), transitions.numpy()) == [TAGS[tag] for tag in best]
