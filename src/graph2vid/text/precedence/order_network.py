"""The network that gives each pair of steps the probability that the first must come before the second (NumPy).

Each pair has a vector of what is known of it; means over the pairs of its first step, of its second step and of the
text, and the best third step between the two (precedence is transitive), join it before the second layer. A plain
logistic regression on the same features is averaged in: it holds better on texts of other kinds. Several networks were
trained, each without a part of the texts: their logits are averaged, and a text that one of them never saw can be
asked of that one alone.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from graph2vid._files import check_format, parse_json
from graph2vid.errors import FormatError, InputError
from graph2vid.text.learned import Tensors, read_safetensors
from graph2vid.text.learned.tensors import write_safetensors
from graph2vid.text.precedence.step_pairs import PAIR_FEATURES, STEP_FEATURES, TEXT_FEATURES, Floats, StepPairs

FORMAT = "graph2vid-step-order"
VERSION = 1
SHIPPED = Path(__file__).parent / "weights" / "step_order.safetensors"
FOLDS = 5
FEATURES = 2 * STEP_FEATURES + PAIR_FEATURES + TEXT_FEATURES
FARTHEST = 4.0
"""Standard deviations beyond which a feature says no more."""
LAYERS = ("meaning", "first", "left", "right", "second", "last")
PLAIN = "plain"
NETWORK_SHARE = 0.7
"""How much the network counts; the rest is the logistic regression."""


def fold_of(texts: Sequence[str]) -> int:
    """Return which network was trained without a procedure, from 0: by its words, whatever their order."""
    return zlib.crc32("\n".join(sorted(texts)).encode("utf-8")) % FOLDS


def inputs(seen: StepPairs) -> Floats:
    """Return the features of each pair beside those of its steps and of the text, [n, n, FEATURES]."""
    n = len(seen.steps)
    shape = (n, n, -1)
    parts = [
        np.broadcast_to(seen.steps[:, None], (n, n, STEP_FEATURES)),
        np.broadcast_to(seen.steps[None], (n, n, STEP_FEATURES)),
        seen.pairs,
        np.broadcast_to(seen.text, (n, n, TEXT_FEATURES)),
    ]
    return np.concatenate([part.reshape(shape) for part in parts], axis=-1)


class OrderNetwork:
    """Networks that weigh pairs of steps.

    Parameters
    ----------
    tensors : dict of str to array
        ``mean`` and ``deviation`` of the features; ``FOLD.LAYER.weight`` [in, out] and ``.bias`` of each network,
        and of the logistic regression beside it (``plain``).
    calibration : mapping of str to three floats
        By parser: what a logit is multiplied by, what is added, and what is added where the parser's own graph has the
        precedence too; fitted on texts that the networks had not seen.
    """

    def __init__(self, tensors: Tensors, calibration: Mapping[str, Sequence[float]]) -> None:
        self.tensors = tensors
        self.calibration = {name: tuple(map(float, numbers)) for name, numbers in calibration.items()}
        self._together: dict[tuple[str, tuple[int, ...]], tuple[Floats, Floats]] = {}

    @classmethod
    def load(cls, path: str | os.PathLike[str] | None = None) -> OrderNetwork:
        """Load weights, once per process and file; by default those that come with graph2vid."""
        file = SHIPPED if path is None else Path(path)
        if not file.is_file():
            raise InputError(
                f"there are no weights of the order of steps at {file}; `graph2vid train order` makes some"
            )
        status = file.stat()
        return _load(file.absolute(), status.st_mtime_ns, status.st_size)

    def save(self, path: str | os.PathLike[str], about: Mapping[str, object]) -> None:
        """Write the weights, and words about the training."""
        header = {"format": FORMAT, "version": VERSION, "calibration": self.calibration, "about": dict(about)}
        write_safetensors(path, self.tensors, {"config": json.dumps(header)})

    def logits(self, seen: StepPairs, fold: int | None = None) -> Floats:
        """Return the log-odds that a step must come before a later one, [n, n]; elsewhere they mean nothing.

        Parameters
        ----------
        seen : StepPairs
        fold : int, optional
            The one network to ask; by default the mean of all.
        """
        scaled = (inputs(seen) - self.tensors["mean"]) / self.tensors["deviation"]
        features: Floats = np.clip(scaled, -FARTHEST, FARTHEST).astype(np.float32)
        weighed = self._weigh(features, seen.meaning, tuple(range(FOLDS)) if fold is None else (fold,))
        found: Floats = np.mean(weighed, axis=0)
        return found

    def _stacked(self, name: str, folds: tuple[int, ...]) -> tuple[Floats, Floats]:
        """Return weights [folds, in, out] and biases [folds, 1, out] of a layer."""
        found = self._together.get((name, folds))
        if found is None:
            weights, biases = ([self.tensors[f"{fold}.{name}.{part}"] for fold in folds] for part in ("weight", "bias"))
            found = self._together[name, folds] = np.stack(weights), np.stack(biases)[:, None]
        return found

    def _weigh(self, features: Floats, meaning: Floats, folds: tuple[int, ...]) -> Floats:
        """Return what each network says, [folds, n, n]."""
        n = len(features)
        later = np.triu(np.ones((n, n), dtype=np.float32), 1)[..., None]

        def layer(name: str, values: Floats) -> Floats:
            """Return what a layer makes of rows [folds, …, in], or of the same for all."""
            weight, bias = self._stacked(name, folds)
            rows = values.reshape(len(values), -1, values.shape[-1])
            found: Floats = rows @ weight
            found += bias
            return found.reshape(len(folds), *values.shape[1:-1], -1)

        means = np.tanh(layer("meaning", meaning[None]))
        size = (len(folds), n, n)
        one, other = (np.broadcast_to(side, (*size, means.shape[-1])) for side in (means[:, :, None], means[:, None]))
        known = np.broadcast_to(features, (*size, features.shape[-1]))
        first = layer("first", np.concatenate([known, one, other, one * other], axis=-1))
        np.maximum(first, 0, out=first)
        first *= later
        of_one = first.sum(axis=2, keepdims=True) / np.maximum(later.sum(axis=1, keepdims=True), 1)
        of_other = first.sum(axis=1, keepdims=True) / np.maximum(later.sum(axis=0, keepdims=True), 1)
        of_all = first.sum(axis=(1, 2), keepdims=True) / max(later.sum(), 1)
        left, right = (_sigmoid(layer(name, first)) * later for name in ("left", "right"))
        best, mean = np.zeros_like(left), np.zeros_like(left)
        for step in range(n - 1):  # [folds, third, other, …] at a time; a third step lies after the first
            between = left[:, step, step + 1 :, None] * right[:, step + 1 :]
            between.max(axis=1, out=best[:, step])
            between.sum(axis=1, out=mean[:, step])
        mean /= n
        around = [np.broadcast_to(part, first.shape) for part in (of_one, of_other, of_all)]
        second = layer("second", np.concatenate([first, *around, best, mean], axis=-1))
        np.maximum(second, 0, out=second)
        plain = layer(PLAIN, features[None])
        return (NETWORK_SHARE * layer("last", second) + (1 - NETWORK_SHARE) * plain)[..., 0]

    def probabilities(self, logits: Floats, parser: str, has: npt.NDArray[np.bool_]) -> Floats:
        """Return calibrated probabilities, [n, n]: 0 where a step is not written before the other.

        Parameters
        ----------
        logits : array, shape (n, n)
        parser : str
            One without a calibration of its own has that of ``auto``.
        has : array of bool, shape (n, n)
            The precedences in the parser's graph.
        """
        slope, base, bonus = self.calibration.get(parser) or self.calibration["auto"]
        return np.triu(_sigmoid(slope * logits + base + bonus * has), 1)


def _sigmoid(values: Any) -> Floats:
    found: Floats = (1 / (1 + np.exp(-np.clip(values, -60, 60)))).astype(np.float32)
    return found


@lru_cache(maxsize=4)
def _load(path: Path, changed: int, size: int) -> OrderNetwork:
    tensors, metadata = read_safetensors(path)
    config = parse_json(metadata.get("config", "{}"), f"the header of {path}")
    header = check_format(config, kind=FORMAT, version=VERSION, source=str(path))
    layers = (*LAYERS, PLAIN)
    needed = {f"{fold}.{layer}.{part}" for fold in range(FOLDS) for layer in layers for part in ("weight", "bias")}
    if needed - tensors.keys() or tensors.get("mean", np.zeros(0)).shape != (FEATURES,):
        raise FormatError(
            f"{path} does not fit this version of the order of steps: `graph2vid train order` makes it anew"
        )
    return OrderNetwork(tensors, header["calibration"])
