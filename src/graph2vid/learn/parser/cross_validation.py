"""The learned parser in cross-validation: trained on some of the annotated recipes, evaluated on the others."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from graph2vid.datasets import read_recipes
from graph2vid.errors import InputError
from graph2vid.evaluate import Progress, Report, Table, score_entities
from graph2vid.learn.parser.training import ParserTrainingOptions, train_parser

COLUMNS = ("fold", "recipes", "tagger", "edges, true tags", "edges, predicted tags")


def cross_validate_parser(
    data: str | os.PathLike[str],
    folds: int,
    options: ParserTrainingOptions = ParserTrainingOptions(),  # noqa: B008
    *,
    encoder: str | os.PathLike[str] | None = None,
    device: str | None = None,
    progress: Progress | None = None,
) -> Iterator[Report]:
    """Train and evaluate the parser over all annotated recipes of a corpus; yield the report after each fold.

    The recipes are shuffled once, the same way each time. Nothing is chosen on the recipes of a fold: the offsets of
    labels, which ``train parser`` chooses on a second split, stay 0.

    Parameters
    ----------
    data : path
        The recipe flow graph corpus; all its splits are used.
    folds : int
    options, encoder, device
        As for :func:`train_parser`.
    progress : callable, optional
        Called as (what is done, done, total).
    """
    data = Path(data)
    splits = sorted(file.stem for file in (data / "Parser").glob("*.conllu"))
    recipes = [recipe for split in splits for recipe in read_recipes(data, split)]
    if not 2 <= folds <= len(recipes):
        raise InputError(f"{len(recipes)} recipes cannot be cut into {folds} folds: from 2 to as many as there are")
    order = np.random.default_rng(0).permutation(len(recipes))
    report = Report(
        "parser-training",
        f"The parser trained and tested in {folds} folds over {len(recipes)} recipes ({', '.join(splits)})",
        "graph2vid-parser-cross-validation",
        document={"unit": "share", "recipes": len(recipes), "folds": []},
    )
    found: list[tuple[float, ...]] = []
    with TemporaryDirectory() as folder:
        for fold in range(folds):

            def told(epoch: int, _: float, name: str = f"fold {fold + 1}") -> None:
                if progress is not None:
                    progress(name, epoch, options.epochs)

            held = set(order[fold::folds].tolist())
            rest = [recipe for number, recipe in enumerate(recipes) if number not in held]
            file = Path(folder) / "parser.safetensors"
            model = train_parser(rest, file, options, encoder=encoder, device=device, report=told)
            scores = score_entities(model, [recipes[number] for number in sorted(held)])
            parts = {
                "tagger": scores.tagger.to_json(),
                "edges_true_tags": scores.gold_tags.to_json(),
                "edges_predicted_tags": scores.predicted_tags.to_json(),
            }
            report.document["folds"].append({"recipes": len(held)} | parts)
            found.append(tuple(part["f1"] for part in parts.values()))
            report.is_complete = len(found) == folds
            report.document["mean"] = dict(zip(parts, np.mean(found, axis=0).tolist(), strict=True))
            report.document["spread"] = dict(zip(parts, np.std(found, axis=0).tolist(), strict=True))
            report.tables = [_table(report.document["folds"], found, growing=not report.is_complete)]
            yield report


def _table(folds: list[dict[str, int]], found: list[tuple[float, ...]], growing: bool) -> Table:
    rows = [[n, fold["recipes"], *_percent(one)] for n, (fold, one) in enumerate(zip(folds, found, strict=True), 1)]
    rows.append(["mean", sum(fold["recipes"] for fold in folds), *_percent(np.mean(found, axis=0))])
    rows.append(["standard deviation", "", *_percent(np.std(found, axis=0))])
    return Table("Entities and edges", "F1 in percent on recipes that were not trained on.", COLUMNS, rows, 1, growing)


def _percent(values: np.ndarray | tuple[float, ...]) -> list[str]:
    return [f"{100 * value:.1f}" for value in values]
