"""The learned parser as a whole, on weights of toy size and on those that ship."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graph2vid.errors import FormatError, Graph2VidError, InputError
from graph2vid.text.learned import parse_by_model
from graph2vid.text.learned.learned_parser import FILE_NAME, SHIPPED, RecipeModel, stretches
from graph2vid.text.learned.tensors import quantise, read_safetensors, rows, write_safetensors
from graph2vid.text.learned.words import TAGS
from graph2vid.text.parsed_text import Instruction, Procedure
from tiny_parser import random_model, random_tensors

needs_weights = pytest.mark.skipif(not SHIPPED.is_file(), reason="the weights are not in this checkout")


def procedure(*texts: str) -> Procedure:
    return Procedure(tuple(Instruction(text) for text in texts))


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    path = tmp_path / FILE_NAME
    random_model().save(path, quantise(random_tensors()), {})
    return path


def test_weights_are_read_as_they_were_written(weights: Path) -> None:
    words = ["Mix", "the", "flour", ".", "Add", "water", "!"]
    model, written = RecipeModel.load(weights), random_model()
    np.testing.assert_allclose(
        model.network.score_tags(model.read(words)[0].words),
        written.network.score_tags(written.read(words)[0].words),
        atol=0.1,
    )
    assert RecipeModel.load(weights) is model  # loaded once
    assert RecipeModel.load(weights.parent) is model  # by folder


def test_eight_bits_are_close(tmp_path: Path) -> None:
    matrix = np.random.default_rng(0).normal(size=(64, 80)).astype(np.float32)
    write_safetensors(tmp_path / "w", quantise({"m": matrix, "v": matrix[0]}), {"a": "b"})
    tensors, metadata = read_safetensors(tmp_path / "w")
    assert metadata == {"a": "b"}
    assert tensors["m"].dtype == np.int8
    np.testing.assert_array_equal(tensors["v"], matrix[0])
    assert np.abs(rows(tensors, "m") - matrix).max() <= np.abs(matrix).max() / 250
    np.testing.assert_array_equal(rows(tensors, "m", [3, 1]), rows(tensors, "m")[[3, 1]])


def test_files_are_safetensors_to_others_too(weights: Path) -> None:
    safetensors = pytest.importorskip("safetensors.numpy")
    ours, _ = read_safetensors(weights)
    theirs = safetensors.load_file(weights)
    assert ours.keys() == theirs.keys()
    assert all(np.array_equal(ours[name], theirs[name]) for name in ours)


@pytest.mark.parametrize("kept", [0, 5, 100, 0.3, 0.99])
def test_a_cut_off_file_is_one_clear_line(weights: Path, kept: float) -> None:
    data = weights.read_bytes()
    weights.write_bytes(data[: int(kept * len(data)) if isinstance(kept, float) else kept])
    with pytest.raises(FormatError, match=r"not a whole safetensors file"):
        RecipeModel.load(weights)


def test_foreign_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "w.safetensors"
    path.write_text("these are no weights at all, but quite some words", encoding="utf-8")
    with pytest.raises(FormatError, match="not a whole safetensors file"):
        RecipeModel.load(path)
    write_safetensors(path, {"embed.words": np.zeros((3, 4), dtype=np.float32)}, {})
    with pytest.raises(FormatError, match="graph2vid-recipe-parser"):
        RecipeModel.load(path)
    with pytest.raises(InputError, match="no weights of the learned parser at"):
        RecipeModel.load(tmp_path / "nowhere.safetensors")
    with pytest.raises(InputError, match="no weights"):
        RecipeModel.load(tmp_path)  # a folder without them


@pytest.mark.parametrize("change", ["drop", "reshape", "vocabulary", "newer", "shape"])
def test_weights_that_do_not_fit_are_refused(weights: Path, change: str) -> None:
    tensors, metadata = read_safetensors(weights)
    config = json.loads(metadata["config"])
    if change == "drop":
        del tensors["branches.0.transitions"]
    elif change == "reshape":
        tensors["branches.1.tags.bias"] = np.zeros(3, dtype=np.float32)
    elif change == "vocabulary":
        metadata["vocabulary"] += "\nmore"
    elif change == "newer":
        config["version"] = 99
    else:
        config["shape"]["depth"] = 3
    write_safetensors(weights, tensors, metadata | {"config": json.dumps(config)})
    with pytest.raises(FormatError, match="newer" if change == "newer" else "does not fit"):
        RecipeModel.load(weights)


def test_bad_tags_are_refused() -> None:
    model = random_model()
    with pytest.raises(InputError, match="one tag per word"):
        model.edges(["mix"], [])
    with pytest.raises(InputError, match="'B-Food' is no tag"):
        model.edges(["mix"], ["B-Food"])
    assert model.edges([], []) == []
    assert model.tag([[], ["mix"]])[0] == []


def test_long_texts_are_read_in_stretches_that_cover_each_word_once() -> None:
    generator = np.random.default_rng(0)
    for count in (0, 1, 5, 40, 300):
        sizes = generator.integers(1, 9, size=count).tolist()
        found = stretches(sizes, 30)
        assert [word for _, _, central in found for word in central] == list(range(count))
        assert all(start <= central.start and central.stop <= stop for start, stop, central in found)
        assert all(sum(sizes[start:stop]) <= 30 for start, stop, _ in found)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.text(min_size=1, max_size=60).filter(str.strip), min_size=1, max_size=6))
def test_any_text_gives_a_graph(texts: list[str]) -> None:
    model = random_model()
    words = [word for text in texts for word in text.split()]
    tags = model.tag([words])[0]
    assert len(tags) == len(words)
    assert set(tags) <= set(TAGS)
    assert all(tags[a] != "O" and tags[b] != "O" for a, b, _ in model.edges(words, tags))


STRANGE = {
    "one": ["Mix."],
    "no verbs": ["flour, water, salt", "a bowl"],
    "other languages": ["Die Kartoffeln schälen und kochen.", "把土豆切成块。", "Нарежьте лук."],
    "signs": ["!!!", "...", "—", "\U0001f370 \U0001f370"],
    "enormous line": ["mix the flour " * 600],
    "a line that is no instruction": ["mix the flour and the water and " * 20_000],
    "one enormous word": ["a" * 100_000, "/" * 1_000],
    "500 sentences": ["Mix the flour with water and pour it into the bowl."] * 500,
}


@pytest.mark.parametrize("texts", STRANGE.values(), ids=STRANGE)
def test_strange_texts_give_a_graph(texts: list[str], weights: Path) -> None:
    found = parse_by_model(procedure(*texts), weights=weights)
    assert len(found.flow) == len(texts)
    assert found.parser == "learned"
    assert found.entities is not None
    for entity in found.entities.entities:
        text = texts[entity.instruction]
        assert text[entity.start : entity.end] == entity.text
        assert entity.text


def test_links_are_told_with_label_and_words(weights: Path) -> None:
    found = parse_by_model(procedure("Mix the flour with water", "Add the bowl", "Mix."), weights=weights)
    assert found.entities is not None
    edges = found.entities.edges
    for reason in (*found.reasons, *found.backward):
        assert any(edge.label == reason.rule for edge in edges)
        assert " → " in reason.words
    supported = {(reason.before, reason.after) for reason in found.reasons}
    assert set(found.flow.edges) <= supported


def test_running_needs_no_torch(weights: Path) -> None:
    code = (
        "import sys; from graph2vid.text.learned.learned_parser import RecipeModel; "
        f"RecipeModel.load({str(weights)!r}).tag([['mix', 'flour']]); "
        "print({'torch', 'spacy', 'onnxruntime', 'tokenizers', 'safetensors'} & set(sys.modules))"
    )
    result = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert result.stdout.strip() == "set()"


@needs_weights
def test_shipped_weights_find_what_a_sentence_says() -> None:
    model = RecipeModel.load()
    text = "Chop the onions finely . Heat the oil in a large pan . Add the onions and fry for 5 minutes ."
    words = text.split()
    tags = model.tag([words])[0]
    tagged = {word: tag for word, tag in zip(words, tags, strict=True) if tag != "O"}
    assert tagged["Chop"] == tagged["Heat"] == tagged["Add"] == tagged["fry"] == "B-Ac"
    assert tagged["onions"] == tagged["oil"] == "B-F"
    assert tagged["pan"] == "B-T"
    assert (tagged["5"], tagged["minutes"]) == ("B-D", "I-D")
    edges = {(words[a], words[b], label) for a, b, label in model.edges(words, tags)}
    assert {("onions", "Chop", "t"), ("oil", "Heat", "t"), ("onions", "Add", "t")} <= edges


@needs_weights
def test_shipped_weights_tell_threads_apart() -> None:
    found = parse_by_model(
        procedure(
            "Mix flour, yeast and water to a dough.",
            "Knead the dough and let it rise for an hour.",
            "Meanwhile, chop the tomatoes.",
            "Simmer the tomatoes with garlic to make a sauce.",
            "Roll out the dough.",
            "Spread the sauce over the dough and bake for 10 minutes.",
        )
    )
    after = {
        (before, later) for before in range(6) for later in range(6) if found.flow.descendants[before] >> later & 1
    }
    assert {(0, 1), (1, 4), (2, 3), (3, 5), (4, 5)} <= after
    assert not {(0, 2), (1, 2), (0, 3), (1, 3)} & after  # two threads, until they meet


@needs_weights
def test_shipped_weights_are_small_and_have_their_papers() -> None:
    assert sum(path.stat().st_size for path in SHIPPED.parent.iterdir()) <= 30_000_000
    assert (SHIPPED.parent / "MODEL_CARD.md").is_file()
    assert "Apache" in (SHIPPED.parent / "NOTICE").read_text(encoding="utf-8")


@needs_weights
def test_a_copy_of_the_shipped_weights_is_the_same_parser(tmp_path: Path) -> None:
    copy = tmp_path / "mine.safetensors"
    shutil.copy(SHIPPED, copy)
    texts = ("Boil the rice.", "Fry the egg.", "Serve the rice with the egg.")
    assert parse_by_model(procedure(*texts), weights=copy) == parse_by_model(procedure(*texts))


def test_missing_folder_is_a_graph2vid_error() -> None:
    with pytest.raises(Graph2VidError):
        parse_by_model(procedure("Mix."), weights="no such folder")
