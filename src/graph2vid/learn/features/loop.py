"""The training loop, and its logs: a table that anything reads and, where tensorboard is installed, its events."""

from __future__ import annotations

import csv
import io
import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, TypeAlias

import torch

from graph2vid._files import write_text
from graph2vid._training_options import TrainingOptions
from graph2vid.errors import InputError
from graph2vid.learn.features import checkpoint
from graph2vid.learn.features.checkpoint import State
from graph2vid.learn.features.data import Example, fingerprint
from graph2vid.learn.features.objective import Learner
from graph2vid.learn.features.processes import Processes
from graph2vid.learn.features.residual_mlp import ResidualMLP
from graph2vid.learn.losses import read_drop

Validation: TypeAlias = Callable[[ResidualMLP], Mapping[str, Sequence[float]]]
"""From features to metrics of grounding videos with them, shares, a number for each video: ``acc`` and ``iou``."""

Report: TypeAlias = Callable[[int, int, float], None]
"""Called after every batch as (epochs begun, videos seen in this one, mean loss in it)."""

TABLE = "log.csv"
EVENTS = "tensorboard"

_MAY_DIFFER = ("epochs", "patience")
"""Options that a resumed training may have otherwise."""


@dataclass(frozen=True)
class Trainer:
    """Trains features; the same data, options and machine give the same ones, whether or not it was interrupted.

    Attributes
    ----------
    examples : sequence of Example
    options : TrainingOptions
    comparison : {"cosine", "dot"}
        How clips and steps are compared.
    about : mapping
        What the checkpoint says to who uses the features.
    validation : callable, optional
        Reads labels: called before the first epoch and after each. What is kept for use is the last epoch that was
        better than the one kept before it, in the mean of acc and iou, by more than the standard error of the
        difference: validation videos are few, and what one of them gains may be chance. Without, the last epoch.
    """

    examples: Sequence[Example]
    options: TrainingOptions
    comparison: str
    about: Mapping[str, Any] = field(default_factory=dict)
    validation: Validation | None = None

    def train(
        self,
        folder: str | os.PathLike[str] | None = None,
        *,
        resume: bool = False,
        group: Processes | None = None,
        report: Report | None = None,
    ) -> State:
        """Train, and return where the training stands at its end.

        Parameters
        ----------
        folder : path, optional
            Where checkpoints and logs go, after every epoch.
        resume : bool
            Go on from the checkpoint in the folder, if there is one.
        group : Processes, optional
            Those that train together; by default this one alone, on the CPU.
        report : callable, optional
        """
        examples, options = self.examples, self.options
        group = group or Processes(0, 1, torch.device("cpu"))
        dimension = examples[0].clips.shape[1]
        for example in examples:
            if (own := example.clips.shape[1]) != dimension:
                raise InputError(f"video {example.video}: {own} dimensions, the others have {dimension}")
        # Only the first process need see the folder: machines may have disks of their own.
        state: State = group.from_first(self._begin(folder, resume) if group.first else None)
        if state.data != fingerprint(examples):
            raise InputError("the processes that train together have different videos, features or graphs")
        mlp = state.module(state.weights)
        learner = Learner(mlp.to(group.device), options, self.comparison)
        optimiser = torch.optim.Adam(mlp.parameters(), lr=options.rate, weight_decay=options.weight_decay)
        if state.optimiser:
            checkpoint.restore_optimiser(optimiser, state.optimiser)
        generator = torch.Generator()
        generator.set_state(state.random)
        module = group.wrap(learner)

        def finish(state: State, loss: float | None) -> State:
            """Validate what an epoch made, and keep it."""
            mlp.eval()
            found = dict(self.validation(mlp)) if self.validation is not None and group.first else {}
            metrics: Mapping[str, Sequence[float]] = group.from_first(found)
            mlp.train()
            row = {"epoch": state.epoch, "loss": loss, **{name: fmean(values) for name, values in metrics.items()}}
            scores = [fmean(pair) for pair in zip(metrics["acc"], metrics["iou"], strict=True)] if metrics else []
            weights, numbers = checkpoint.copy_of(mlp), checkpoint.optimiser_numbers(optimiser)
            state = replace(state, history=[*state.history, row], weights=weights, optimiser=numbers)
            state.random = generator.get_state()
            if not scores or is_better(scores, state.best_scores):
                state = replace(state, best=state.epoch, best_scores=scores, best_weights=weights)
            if folder is not None and group.first:
                checkpoint.save(folder, state)
                logs.write(state.history)
            return state

        with closing(Logs(folder if group.first else None, len(state.history))) as logs:
            if state.history:
                logs.write(state.history)  # the last time may have been cut off between a checkpoint and its row
            else:
                state = finish(state, None)
            while state.epoch < options.epochs and not _is_over(state):
                tell = partial(report or (lambda *_: None), state.epoch + 1)
                loss = self._epoch(module, optimiser, generator, group, tell)
                state = finish(replace(state, epoch=state.epoch + 1), loss)
        return state

    def _epoch(
        self,
        module: torch.nn.Module,
        optimiser: torch.optim.Optimizer,
        generator: torch.Generator,
        group: Processes,
        tell: Callable[[int, float], None],
    ) -> float:
        """See every video once; return the mean loss."""
        examples, options = self.examples, self.options
        # Every process draws the same numbers, so that the batches are the same however many share them.
        order = torch.randperm(len(examples), generator=generator).tolist()
        phases = torch.randint(options.every, (len(examples),), generator=generator).tolist()
        total = 0.0
        for first in range(0, len(order), options.batch):
            batch = order[first : first + options.batch]
            own = batch[group.rank :: group.count]
            clips = [_thinned(examples[at], options.every, phases[at]) for at in own]
            loss = module([examples[at] for at in own], clips)
            optimiser.zero_grad(set_to_none=True)
            # The processes' gradients are averaged, so each share is scaled for the mean to be that of the batch.
            (loss * (group.count / len(batch))).backward()
            optimiser.step()
            total += group.sum(float(loss.detach()))
            tell(first + len(batch), total / (first + len(batch)))
        return total / len(order)

    def _begin(self, folder: str | os.PathLike[str] | None, resume: bool) -> State:
        """Return the state to begin with: that of the checkpoint in the folder, or a fresh one."""
        data, options = fingerprint(self.examples), self.options
        if folder is not None and (Path(folder) / checkpoint.NAME).exists():
            if not resume:
                raise InputError(f"{folder} holds a training: --resume goes on with it, or name another folder")
            state = checkpoint.load(folder)
            if state.data != data:
                raise InputError(
                    f"{folder}: that training was on other videos, features or graphs; it cannot go on with these"
                )
            before = vars(state.options) | state.about
            for name, value in (vars(options) | json.loads(json.dumps(dict(self.about)))).items():
                if name not in _MAY_DIFFER and (old := before.get(name)) != value:
                    why = f"that training has {name} {old}, not {value}; it cannot go on with another"
                    raise InputError(f"{folder}: {why}")
            return replace(state, options=options)
        generator = torch.Generator().manual_seed(options.seed)
        background = read_drop(options.drop)[0] == "prototype"
        mlp = ResidualMLP(self.examples[0].clips.shape[1], options.hidden, generator, background=background)
        if mlp.prototype is not None:  # most clips are background: it begins as their mean
            of_videos = torch.stack([example.clips.mean(0) for example in self.examples])
            mlp.prototype.data.copy_(of_videos.mean(0))
        weights = checkpoint.copy_of(mlp)
        numbers: dict[str, Any] = {"random": generator.get_state(), "weights": weights, "best_weights": weights}
        return State(options, data, dict(self.about), mlp.dimension, mlp.hidden, **numbers)


def _thinned(example: Example, every: int, phase: int) -> torch.Tensor:
    """Return every N-th clip, or all of them where that would leave too few for the steps."""
    some = example.clips[phase::every]
    return some if len(some) >= 2 * len(example.rows) else example.clips


def is_better(scores: Sequence[float], before: Sequence[float]) -> bool:
    """Say whether the scores of videos are higher than those before by more than the standard error of the mean."""
    if len(before) != len(scores):  # there are none before
        return True
    gains = [now - then for now, then in zip(scores, before, strict=True)]
    error = stdev(gains) / math.sqrt(len(gains)) if len(gains) > 1 else 0.0
    return fmean(gains) > error


def _is_over(state: State) -> bool:
    """Say whether for long neither the training loss fell nor the validation was better."""
    losses = [math.inf if row["loss"] is None else row["loss"] for row in state.history]
    lowest = losses.index(min(losses))
    best = state.best if "acc" in state.history[0] else 0
    return 0 < state.options.patience <= state.epoch - max(lowest, best)


class Logs:
    """The logs in the folder of a training.

    Parameters
    ----------
    folder : path, optional
        None: nothing is written.
    written : int
        The rows that were already written, before a training was interrupted.
    """

    def __init__(self, folder: str | os.PathLike[str] | None, written: int = 0) -> None:
        self._folder, self._written = None if folder is None else Path(folder), written
        self._events: Any = None
        if self._folder is not None:
            with suppress(ImportError):
                from torch.utils.tensorboard import SummaryWriter

                self._events = SummaryWriter(str(self._folder / EVENTS))

    def write(self, history: Sequence[Mapping[str, Any]]) -> None:
        """Write all rows so far: the table whole, the events of those that are new."""
        if self._folder is None:
            return
        text = io.StringIO()
        columns = list(dict.fromkeys(name for row in history for name in row))
        table = csv.DictWriter(text, columns, lineterminator="\n")
        table.writeheader()
        table.writerows(history)
        write_text(self._folder / TABLE, text.getvalue())
        if self._events is not None:
            for row in history[self._written :]:
                for name, value in row.items():
                    if name != "epoch" and value is not None:
                        self._events.add_scalar(name, value, row["epoch"])
            self._events.flush()
        self._written = len(history)

    def close(self) -> None:
        """Close the file of events."""
        if self._events is not None:
            self._events.close()
