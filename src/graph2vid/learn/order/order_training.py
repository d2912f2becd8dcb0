"""Training of the networks behind the parser ``auto``: one per fold, each without the texts of its fold."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, dropout

from graph2vid.datasets import captaincook4d, read_asynchow, read_recipes
from graph2vid.errors import InputError, MissingDependencyError
from graph2vid.evaluate.parser import expert_texts, recipe_texts
from graph2vid.text import Instruction, Parse, Procedure, parse
from graph2vid.text.learned import SHIPPED as PARSER_WEIGHTS
from graph2vid.text.precedence import (
    FARTHEST,
    FEATURES,
    FOLDS,
    LAYERS,
    PLAIN,
    OrderNetwork,
    StepPairs,
    closed,
    fold_of,
    inputs,
    step_pairs,
)

Matrix = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]
SEQUENTIAL = 2.5
"""asynchow leaves out tasks in which every step waits for the one before. Its pairs that hold, two thirds of all, count
so much more than the others: as if there were as many such tasks, with as many pairs, as there are others."""
PRIOR = 10.0
"""Of the logistic regression: on the squares of its coefficients."""
_LARGEST_BATCH = 60_000
"""Third steps of all pairs in a batch."""
_MOST_TEXTS = 24


@dataclass(frozen=True)
class OrderTrainingOptions:
    """How the networks are trained.

    Attributes
    ----------
    seed, epochs : int
    rate, decay : float
        The highest learning rate, and the weight decay (AdamW).
    dropout : float
        Share of the inputs and hidden units that are left out.
    meaning, hidden, between : int
        Sizes: of a step's meaning, of a pair, and of a pair seen from a third step.
    """

    seed: int = 0
    epochs: int = 25
    rate: float = 3e-3
    decay: float = 3e-2
    dropout: float = 0.3
    meaning: int = 16
    hidden: int = 32
    between: int = 8


@dataclass(frozen=True)
class OrderedProcedure:
    """A procedure to learn from.

    Attributes
    ----------
    procedure : Procedure
    before : frozenset of (int, int)
        The first step must come before the second.
    weight : float
        How much one of its pairs counts.
    holding : float
        How much more one counts that holds.
    """

    procedure: Procedure
    before: frozenset[tuple[int, int]]
    weight: float = 1.0
    holding: float = 1.0


def procedures_in(data: str | os.PathLike[str]) -> list[OrderedProcedure]:
    """Read what the shipped networks are trained on: asynchow, recipe_flowgraph and captaincook4d in one folder.

    The learned parser was trained on the training recipes and knows them too well: their pairs count for little.
    """
    root = Path(data)
    tasks = read_asynchow(root / "asynchow")
    found = [_ordered(task.steps, task.title, task.before, 1.0, SEQUENTIAL) for task in tasks]
    for split, weight in (("train", 0.1), ("dev", 1.0)):
        texts = recipe_texts(read_recipes(root / "recipe_flowgraph", split))
        found += [_ordered(text.texts, text.title, text.gold.edges, weight) for text in texts]
    experts = expert_texts(captaincook4d.load(root / "captaincook4d"))
    return found + [_ordered(text.texts, text.title, text.gold.edges, 0.5) for text in experts]


def _ordered(
    steps: Sequence[str], title: str, before: Iterable[tuple[int, int]], weight: float, holding: float = 1.0
) -> OrderedProcedure:
    return OrderedProcedure(Procedure(tuple(map(Instruction, steps)), title), frozenset(before), weight, holding)


class TorchOrderNetwork(nn.Module):
    """As :class:`graph2vid.text.precedence.OrderNetwork`, in torch, for batches of texts."""

    def __init__(self, width: int, options: OrderTrainingOptions) -> None:
        super().__init__()
        hidden, between = options.hidden, options.between
        self.share = options.dropout
        self.meaning = nn.Linear(width, options.meaning)
        self.first = nn.Linear(FEATURES + 3 * options.meaning, hidden)
        self.left, self.right = nn.Linear(hidden, between), nn.Linear(hidden, between)
        self.second = nn.Linear(4 * hidden + 2 * between, hidden)
        self.last = nn.Linear(hidden, 1)

    def forward(self, features: Tensor, meaning: Tensor, later: Tensor) -> Tensor:
        """Return logits [texts, n, n] of features [texts, n, n, FEATURES]; ``later`` [texts, n, n] marks the pairs."""
        n, marks = features.shape[1], later[..., None]
        means = self._some(torch.tanh(self.meaning(self._some(meaning))))
        one, other = means[:, :, None].expand(-1, -1, n, -1), means[:, None].expand(-1, n, -1, -1)
        known = torch.cat([self._some(features), one, other, one * other], dim=-1)
        first = torch.relu(self.first(known)) * marks
        of_one = first.sum(2, keepdim=True) / marks.sum(2, keepdim=True).clamp(min=1)
        of_other = first.sum(1, keepdim=True) / marks.sum(1, keepdim=True).clamp(min=1)
        of_all = first.sum((1, 2), keepdim=True) / marks.sum((1, 2), keepdim=True).clamp(min=1)
        around = [part.expand_as(first) for part in (of_one, of_other, of_all)]
        left, right = (torch.sigmoid(side(first)) * marks for side in (self.left, self.right))
        thirds = left[:, :, :, None] * right[:, None]  # [texts, one, third, other, …]
        size = later.amax(2).sum(1).clamp(min=0)[:, None, None, None] + 1  # steps of each text
        known = torch.cat([first, *around, thirds.amax(2), thirds.sum(2) / size], dim=-1)
        found: Tensor = self.last(torch.relu(self.second(self._some(known))))[..., 0]
        return found

    def _some(self, values: Tensor) -> Tensor:
        return dropout(values, self.share, self.training)


@dataclass(frozen=True)
class _Example:
    seen: StepPairs
    rules: Parse | None
    right: Matrix
    weights: Floats
    fold: int

    def __len__(self) -> int:
        return len(self.right)

    @property
    def upper(self) -> tuple[npt.NDArray[np.intp], ...]:
        return np.triu_indices(len(self), 1)


def train_order(
    texts: Sequence[OrderedProcedure],
    output: str | os.PathLike[str],
    options: OrderTrainingOptions | None = None,
    report: Callable[[str, int, int], None] | None = None,
) -> OrderNetwork:
    """Train the networks and write them.

    Parameters
    ----------
    texts : sequence of OrderedProcedure
    output : path
        The weights to write (.safetensors).
    options : OrderTrainingOptions, optional
    report : callable, optional
        Called as (what is done, done, total).
    """
    options = options or OrderTrainingOptions()
    tell = report or (lambda what, done, total: None)
    examples = []
    for number, text in enumerate(texts, start=1):
        if len(text.procedure) > 1:
            right = np.zeros((len(text.procedure),) * 2, dtype=bool)
            for before, after in text.before:
                right[before, after] = True
            fold = fold_of(text.procedure.texts)
            seen, rules = step_pairs(text.procedure), _rules_parse(text.procedure)
            right = np.triu(closed(right))
            weights = np.where(right, text.weight * text.holding, text.weight).astype(np.float32)
            examples.append(_Example(seen, rules, right, weights, fold))
        tell("reading texts", number, len(texts))
    if {example.fold for example in examples} != set(range(FOLDS)):
        raise InputError(f"{len(examples)} procedures of two or more steps are too few for {FOLDS} folds")
    mean, deviation = _scale(examples)
    tensors = {"mean": mean, "deviation": deviation}
    for fold in range(FOLDS):
        known = [example for example in examples if example.fold != fold]
        features = [np.clip((inputs(one.seen) - mean) / deviation, -FARTHEST, FARTHEST) for one in known]
        plain = _plain(features, known).astype(np.float32)
        tensors[f"{fold}.{PLAIN}.weight"], tensors[f"{fold}.{PLAIN}.bias"] = plain[:-1, None], plain[-1:]
        tell_one = partial(tell, f"training network {fold + 1} of {FOLDS}")
        trained = _train(known, features, options, options.seed + fold, tell_one)
        for layer in LAYERS:
            part = getattr(trained, layer)
            tensors[f"{fold}.{layer}.weight"] = np.ascontiguousarray(part.weight.detach().numpy().T)
            tensors[f"{fold}.{layer}.bias"] = part.bias.detach().numpy().copy()
    network = OrderNetwork(tensors, _calibration(OrderNetwork(tensors, {}), examples))
    parser = hashlib.sha256(PARSER_WEIGHTS.read_bytes()).hexdigest()
    network.save(output, {"texts": len(examples), "options": asdict(options), "parser": parser})
    return network


def _rules_parse(procedure: Procedure) -> Parse | None:
    """Parse by the rules, whose own probabilities are calibrated too; None where no English model is installed."""
    try:
        return parse(procedure, "rules")
    except MissingDependencyError:
        return None


def _scale(examples: Sequence[_Example]) -> tuple[Floats, Floats]:
    """Return mean and standard deviation of the features over all pairs, as they are weighed."""
    rows = np.concatenate([inputs(example.seen)[example.upper] for example in examples])
    weights = np.concatenate([example.weights[example.upper] for example in examples])
    mean = np.average(rows, axis=0, weights=weights)
    deviation = np.sqrt(np.average((rows - mean) ** 2, axis=0, weights=weights))
    return mean.astype(np.float32), np.maximum(deviation, 1e-3).astype(np.float32)


def _train(
    examples: Sequence[_Example],
    of_texts: Sequence[Floats],
    options: OrderTrainingOptions,
    seed: int,
    report: Callable[[int, int], None],
) -> TorchOrderNetwork:
    torch.manual_seed(seed)
    random = np.random.default_rng(seed)
    network = TorchOrderNetwork(examples[0].seen.meaning.shape[1], options)
    optimiser = torch.optim.AdamW(network.parameters(), lr=options.rate, weight_decay=options.decay)
    plan = [list(_batches(examples, random)) for _ in range(options.epochs)]
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, options.rate, total_steps=sum(map(len, plan)))
    for epoch, batches in enumerate(plan, start=1):
        for batch in batches:
            n = max(len(examples[at]) for at in batch)
            features = np.zeros((len(batch), n, n, FEATURES), dtype=np.float32)
            meaning = np.zeros((len(batch), n, examples[0].seen.meaning.shape[1]), dtype=np.float32)
            right, later, weight = (np.zeros((len(batch), n, n), dtype=np.float32) for _ in range(3))
            for row, at in enumerate(batch):
                k = len(examples[at])
                features[row, :k, :k] = of_texts[at]
                meaning[row, :k] = examples[at].seen.meaning
                right[row, :k, :k] = examples[at].right
                later[row, :k, :k] = np.triu(np.ones((k, k)), 1)
                weight[row, :k, :k] = later[row, :k, :k] * examples[at].weights
            logits = network(*map(torch.from_numpy, (features, meaning, later)))
            losses = binary_cross_entropy_with_logits(logits, torch.from_numpy(right), reduction="none")
            loss = (losses * torch.from_numpy(weight)).sum() / float(weight.sum())
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            schedule.step()
        report(epoch, options.epochs)
    return network.eval()


def _batches(examples: Sequence[_Example], random: np.random.Generator) -> Iterator[list[int]]:
    """Return texts of about the same length together, in random order."""
    sizes = np.array([len(example) for example in examples])
    batches: list[list[int]] = [[]]
    for at in np.argsort(sizes + 2 * random.random(len(sizes))).tolist():
        most = max([sizes[at], *(sizes[one] for one in batches[-1])])
        full = len(batches[-1]) == _MOST_TEXTS or (len(batches[-1]) + 1) * most**3 > _LARGEST_BATCH
        if batches[-1] and full:
            batches.append([])
        batches[-1].append(at)
    return (batches[at] for at in random.permutation(len(batches)))


def _calibration(network: OrderNetwork, examples: Sequence[_Example]) -> dict[str, tuple[float, ...]]:
    """Fit slope, base and bonus of each parser on the logits of the networks for texts that they had not seen."""
    columns: dict[str, list[npt.NDArray[np.float64]]] = {
        "logit": [],
        "right": [],
        "weight": [],
        "rules": [],
        "learned": [],
    }
    for example in examples:
        upper = example.upper
        columns["logit"].append(network.logits(example.seen, example.fold)[upper].astype(float))
        columns["right"].append(example.right[upper].astype(float))
        columns["weight"].append(example.weights[upper].astype(float))
        for name, found in (("rules", example.rules), ("learned", example.seen.learned)):
            has = np.zeros((len(example),) * 2, dtype=bool)
            for before, after in found.flow.edges if found is not None else ():
                has[before, after] = True
            columns[name].append(closed(has)[upper].astype(float))
    logit, right, weight, rules, learned = (np.concatenate(columns[name]) for name in columns)
    return {
        name: tuple(_logistic(np.stack([logit, np.ones_like(logit), graph], axis=1), right, weight).tolist())
        for name, graph in (("auto", np.zeros_like(logit)), ("rules", rules), ("learned", learned))
    }


def _logistic(rows: Doubles, right: Doubles, weight: Doubles, prior: float = 1e-3) -> Doubles:
    """Return the coefficients of a logistic regression by Newton's method; ``prior`` draws them to 0."""
    found = np.zeros(rows.shape[1])
    for _ in range(20):
        share = 1 / (1 + np.exp(-rows @ found))
        slope = rows.T @ (weight * (share - right)) + prior * found
        curve = (rows * (weight * share * (1 - share))[:, None]).T @ rows + prior * np.eye(len(found))
        found -= np.linalg.solve(curve, slope)
    return found


def _plain(features: Sequence[Floats], examples: Sequence[_Example]) -> Doubles:
    """Fit the logistic regression, the constant last."""
    rows, right, weight = [], [], []
    for example, of_text in zip(examples, features, strict=True):
        upper = example.upper
        rows.append(np.pad(of_text[upper].astype(float), ((0, 0), (0, 1)), constant_values=1))
        right.append(example.right[upper].astype(float))
        weight.append(example.weights[upper].astype(float))
    return _logistic(np.concatenate(rows), np.concatenate(right), np.concatenate(weight), PRIOR)
