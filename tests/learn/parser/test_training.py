"""A tiny training run on made-up recipes: it learns, and the same seed gives the same weights."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from graph2vid.cli import main
from graph2vid.errors import FormatError, InputError
from graph2vid.text.learned.learned_parser import RecipeModel
from graph2vid.text.learned.tensors import read_safetensors
from tiny_parser import SHAPE, write_encoder

torch = pytest.importorskip("torch")

from graph2vid.learn.parser import cross_validate_parser, training  # noqa: E402
from graph2vid.learn.parser.examples import Augmenter, Example  # noqa: E402

RECIPE = [
    ("Mix", "B-Ac", 11, "f-eq"), ("flour", "B-F", 1, "t"), (".", "O", 0, "root"),
    ("Wash", "B-Ac", 7, "f-eq"), ("beans", "B-F", 4, "t"), (".", "O", 0, "root"),
    ("beans", "B-F", 8, "t"), ("fry", "B-Ac", 12, "t"), (".", "O", 0, "root"),
    ("the", "O", 0, "root"), ("dough", "B-F", 12, "t"), ("join", "B-Ac", 0, "root"), (".", "O", 0, "root"),
]  # fmt: skip
OPTIONS = training.ParserTrainingOptions(epochs=2, batch=2, shape=replace(SHAPE, branches=1))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    lines = []
    for _ in range(2):
        for number, (word, tag, head, label) in enumerate(RECIPE, start=1):
            lines.append("\t".join([str(number), word, "_", "X", tag, "_", str(head), label, "_", "_"]))
        lines.append("")
    folder = tmp_path / "corpus" / "Parser"
    folder.mkdir(parents=True)
    for split in ("train", "dev"):
        (folder / f"{split}.conllu").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder.parent


@pytest.fixture
def encoder(tmp_path: Path) -> Path:
    return write_encoder(tmp_path / "encoder")


def recipes(count: int = 2) -> list[Example]:
    words, tags = tuple(row[0] for row in RECIPE), tuple(row[1] for row in RECIPE)
    edges = tuple((at, row[2] - 1, row[3]) for at, row in enumerate(RECIPE) if row[2])
    return [Annotated(words, tags, edges) for _ in range(count)]  # type: ignore[misc]


class Annotated:
    def __init__(self, tokens: tuple[str, ...], tags: tuple[str, ...], edges: tuple[tuple[int, int, str], ...]) -> None:
        self.tokens, self.tags, self.edges = tokens, tags, edges


def test_the_same_seed_gives_the_same_weights_another_does_not(tmp_path: Path, encoder: Path) -> None:
    files = [tmp_path / f"{name}.safetensors" for name in "abc"]
    for file, seed in zip(files, (1, 1, 2), strict=True):
        training.train_parser(recipes(), file, replace(OPTIONS, seed=seed), encoder=encoder, device="cpu")
    (first, _), (again, _), (other, _) = (read_safetensors(file) for file in files)
    assert all(np.array_equal(first[name], again[name]) for name in first)
    assert any(not np.array_equal(first[name], other[name]) for name in first)
    assert files[0].read_bytes() == files[1].read_bytes()


def test_it_learns_a_recipe_by_heart(tmp_path: Path, encoder: Path) -> None:
    losses = []
    options = replace(OPTIONS, epochs=40, encoder_rate=3e-3, head_rate=1e-2, averaging=0.8, swap=0.0, mistakes=0.0)
    options = replace(options, hidden_words=0.0)
    model = training.train_parser(
        recipes(),
        tmp_path / "w.safetensors",
        options,
        encoder=encoder,
        device="cpu",
        report=lambda _, x: losses.append(x),
    )
    assert len(losses) == 40
    assert losses[-1] < losses[0] / 3
    words, tags = [row[0] for row in RECIPE], [row[1] for row in RECIPE]
    assert model.tag([words]) == [tags]
    found = set(model.edges(words, tags))
    assert len(found & set(recipes()[0].edges)) >= 6


def test_the_command_writes_weights_that_can_be_used(
    data: Path, encoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        training.ParserTrainingOptions, "__init__", _with_shape(training.ParserTrainingOptions.__init__)
    )
    output = tmp_path / "w.safetensors"
    arguments = ["train", "parser", "--data", str(data), "-o", str(output), "--epochs", "1", "--device", "cpu"]
    assert main([*arguments, "--encoder", str(encoder)]) == 0
    assert "trained on 2 recipes" in capsys.readouterr().out
    assert len(RecipeModel.load(output).tag([["Mix", "flour", "."]])[0]) == 3


def _with_shape(init: object) -> object:
    def with_shape(self: object, **given: object) -> None:
        init(self, **({"shape": SHAPE} | given))  # type: ignore[operator]

    return with_shape


@pytest.mark.parametrize(
    ("extra", "complaint"),
    [
        (["-o", "w.bin"], "must end in .safetensors"),
        (["-o", "w.safetensors", "--split", "summer"], "splits in that folder: dev, train"),
        (["-o", "w.safetensors", "--device", "abacus"], "cannot compute on 'abacus'"),
        (["-o", "w.safetensors", "--encoder", "nowhere"], "nowhere"),
    ],
)
def test_bad_requests_are_one_line(
    data: Path, extra: list[str], complaint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    assert main(["train", "parser", "--data", str(data), *extra]) == 2
    error = capsys.readouterr().err
    assert complaint in error
    assert error.count("\n") == 1
    assert not list(tmp_path.glob("w*"))


def test_an_encoder_that_does_not_fit_is_refused(tmp_path: Path, encoder: Path) -> None:
    with pytest.raises(FormatError, match="not an encoder that fits"):
        training.train_parser(recipes(), tmp_path / "w.safetensors", training.ParserTrainingOptions(), encoder=encoder)
    (encoder / "vocab.txt").write_text("a\nb\n", encoding="utf-8")
    with pytest.raises(FormatError, match="no BERT vocabulary"):
        training.train_parser(recipes(), tmp_path / "w.safetensors", OPTIONS, encoder=encoder)


def test_weights_that_are_no_numbers_are_not_kept(tmp_path: Path, encoder: Path) -> None:
    options = replace(OPTIONS, head_rate=float("nan"))
    with pytest.raises(InputError, match="went astray"):
        training.train_parser(recipes(), tmp_path / "w.safetensors", options, encoder=encoder, device="cpu")
    assert not (tmp_path / "w.safetensors").exists()


def test_cross_validation_trains_on_some_recipes_and_evaluates_on_the_others(data: Path, encoder: Path) -> None:
    said: list[tuple[str, int, int]] = []
    options = replace(OPTIONS, epochs=1)
    reports = cross_validate_parser(
        data, 2, options, encoder=encoder, device="cpu", progress=lambda *now: said.append(now)
    )
    seen = [(report.is_complete, len(report.document["folds"]), report.tables[0].is_growing) for report in reports]
    assert seen == [(False, 1, True), (True, 2, False)]
    assert said == [("fold 1", 1, 1), ("fold 2", 1, 1)]
    report = list(cross_validate_parser(data, 2, options, encoder=encoder, device="cpu"))[-1]
    assert [fold["recipes"] for fold in report.document["folds"]] == [2, 2]  # both splits, each recipe held out once
    assert set(report.document["mean"]) == {"tagger", "edges_true_tags", "edges_predicted_tags"}
    assert [row[0] for row in report.tables[0].rows] == ["1", "2", "mean", "standard deviation"]


@pytest.mark.parametrize("folds", [1, 5])
def test_folds_that_cannot_be_made_are_refused(folds: int, data: Path) -> None:
    with pytest.raises(InputError, match=f"4 recipes cannot be cut into {folds} folds"):
        next(cross_validate_parser(data, folds))


def test_variants_change_raw_ingredients_alone() -> None:
    others = Annotated(("Chop", "onion", "."), ("B-Ac", "B-F", "O"), ((1, 0, "t"),))
    augmenter = Augmenter([recipes(1)[0], others], np.random.default_rng(0), swap=1.0, mistakes=0.3)  # type: ignore[list-item]
    seen, shown = set(), set()
    for _ in range(50):
        variant = augmenter.variant(0)
        seen |= {(at, word) for at, word in enumerate(variant.words) if word != RECIPE[at][0]}
        assert (variant.words[4], variant.words[6], variant.words[10]) == ("beans", "beans", "dough")  # made of others
        assert variant.tags == tuple(row[1] for row in RECIPE)
        shown.add(variant.shown)
    assert {word for _, word in seen} == {"onion"}
    assert {at for at, _ in seen} == {1}
    assert len(shown) > 10
