"""What each sentence of a procedure orders: actions, and the things they act on, with, in and into."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice, pairwise
from typing import Any

from graph2vid.text import lexicon
from graph2vid.text.rules.carrier import Piece, pieces
from graph2vid.text.rules.clauses import CONDITION, RESULT, SIMPLE_OBJECT, Action, Mention, Sentence

_DEEPEST = 40


def analyse(nlp: Any, texts: Sequence[str]) -> list[Sentence]:
    """Find the actions and things of all instructions, with one pass of the dependency parser.

    Parameters
    ----------
    nlp : spacy.language.Language
    texts : sequence of str
        The instructions.

    Returns
    -------
    list of Sentence
        In the order of the text; instructions without words have none.
    """
    parts = [piece for number, text in enumerate(texts) for piece in pieces(number, text)]
    sentences = []
    first, instruction = 0, -1
    for piece, doc in zip(parts, nlp.pipe((part.text for part in parts), batch_size=64), strict=True):
        if piece.instruction != instruction:
            first, instruction = 0, piece.instruction
        sentences.append(_Reader(piece, doc, first, texts[instruction]).sentence())
        first += sum(not piece.is_carrier(token.idx) for token in doc)
    return sentences


class _Reader:
    """Reads one parsed piece."""

    def __init__(self, piece: Piece, doc: Any, first: int, text: str) -> None:
        self.piece, self.doc, self.first, self.text = piece, doc, first, text
        carrier = [token.i for token in doc if piece.is_carrier(token.idx)]
        self.carrier = set(carrier)
        self.shift = carrier[0] if carrier else len(doc)
        self.begins = piece.start + piece.carrier
        self.verbs = self._verbs()

    # -- verbs

    def _verbs(self) -> dict[int, Any]:
        """Return the tokens that are orders: the verb of the sentence and those coordinated with it."""
        should = max(self.carrier, default=-1)
        roots = [token for token in self.doc if token.dep_ == "ROOT" and token.i not in self.carrier]
        carried = [self.doc[should].head] if should >= 0 and self.doc[should].head.i not in self.carrier else []
        found: dict[int, Any] = {}
        queue = [*carried, *roots]
        while queue:
            token = queue.pop(0)
            if token.i in found or token.i in self.carrier or self._colour(token):
                continue
            if (
                token.pos_ not in ("VERB", "AUX")
                and token not in carried
                and token.lemma_.lower() not in lexicon.IMPERATIVES
            ):
                continue
            found[token.i] = token
            for child in token.children:
                order = child.dep_ in ("conj", "parataxis", "dep") or (
                    child.dep_ == "ccomp" and not self._opened(child)
                )
                if (
                    order
                    and child.tag_ not in ("VBG", "VBN")
                    and (child.pos_ == "VERB" or child.lower_ in lexicon.IMPERATIVES)
                ):
                    queue.append(child)
        return dict(sorted(found.items()))

    @staticmethod
    def _colour(token: Any) -> bool:
        """Tell whether "brown" is a colour: "until golden **brown**"."""
        return (
            token.lower_ == "brown"
            and token.i > 0
            and token.nbor(-1).lower_ in ("golden", "until", "lightly", "nicely")
        )

    @staticmethod
    def _opened(verb: Any) -> bool:
        return any(child.dep_ in ("mark", "advmod") and child.lower_ in lexicon.CONDITIONS for child in verb.children)

    # -- things

    def _governor(self, token: Any) -> tuple[Any | None, str, bool]:
        """Climb from a noun to the order it belongs to: the verb, the role, and whether it describes another noun."""
        role, nested, condition = "", False, False
        left = token.nbor(-1) if token.i else None
        if left is not None and left.dep_ == "prep" and left.i not in self.carrier:
            role = left.lower_
        elif (
            left is not None and token.dep_ == "dobj" and token.head is left and left.tag_ in ("VBN", "VBG") and left.i
        ):
            role = left.nbor(-1).lower_ if left.nbor(-1).pos_ == "ADP" else role
        for _ in range(_DEEPEST):
            head = token.head
            relation = token.dep_
            if head is token or head.i in self.carrier:
                return None, CONDITION if condition else role or "subject", nested
            if relation == "pobj" and not role:
                role = SIMPLE_OBJECT if head.dep_ == "prt" else head.lower_  # "Prise off the cover."
            elif relation in ("dobj", "nsubjpass", "attr", "oprd", "dative") and not role:
                role = SIMPLE_OBJECT
            elif relation in ("nsubj", "npadvmod") and not role:
                role = "subject"
            if relation == "prep" and head.pos_ in ("NOUN", "PROPN", "PRON", "NUM"):
                nested = nested or role not in ("of", "with", "and")
            if head.i in self.verbs:
                return head, CONDITION if condition and role != RESULT else role or SIMPLE_OBJECT, nested
            if head.pos_ in ("VERB", "AUX") and relation not in ("amod", "compound"):
                if head.lemma_.lower() in lexicon.MAKING and role == SIMPLE_OBJECT and not nested:
                    role = RESULT
                plain = head.dep_ in ("xcomp", "ccomp", "pcomp", "conj") or (
                    head.dep_ == "advcl" and head.tag_ == "VBG"
                )
                condition = condition or not plain or self._opened(head)
            elif relation in ("prep", "pobj") and role in ("until", "till", "like", "before", "after", "as", "per"):
                condition = True
            token = head
        return None, CONDITION, nested

    def _mention(self, token: Any, role: str, nested: bool) -> Mention | None:
        head = token.lower_ if token.pos_ == "VERB" else token.lemma_.lower()  # "filling" is not "fill"
        describing: list[Any] = []
        for child in token.lefts:
            if child.dep_ == "punct" and child.text == ",":
                describing = [child for child in describing if child.pos_ in ("DET", "ADJ")]
            elif child.dep_ not in ("cc", "punct", "prep", "preconj", "conj"):
                describing.append(child)
        words = {head, token.lower_}
        for child in describing:
            words.update((child.lower_, child.lemma_.lower()))
            words.update(inner.lemma_.lower() for inner in child.lefts if inner.dep_ in ("compound", "amod"))
        if token.dep_ == "conj":
            words.update(child.lower_ for child in token.head.lefts if child.dep_ in ("det", "poss"))
        if token.dep_ == "pobj" and token.head.lower_ == "of" and token.head.head.lemma_.lower() in lexicon.MEASURES:
            words.add(token.head.head.lemma_.lower())
        modifiers = {child.lemma_.lower() for child in describing if child.pos_ in ("NOUN", "PROPN")}
        modifiers.update(
            inner.lemma_.lower() for child in describing for inner in child.lefts if inner.dep_ == "compound"
        )
        modifiers -= lexicon.NOT_THINGS | lexicon.MEASURES
        kind = _kind(token, head, words)
        if kind is None:
            return None
        begin = min([token.i, *(child.left_edge.i for child in describing if child.i not in self.carrier)])
        first, last = self.doc[begin], token
        start, end = self.piece.place(first.idx), self.piece.place(last.idx + len(last.text) - 1) + 1
        return Mention(
            head,
            frozenset(words),
            frozenset(modifiers),
            role,
            kind,
            self.text[start:end],
            start,
            end,
            self._number(token),
            nested,
        )

    def _number(self, token: Any) -> int:
        return self.first + int(token.i) - (len(self.carrier) if token.i > self.shift else 0)

    def _things(self) -> Iterator[tuple[Any | None, Mention]]:
        for token in self.doc:
            if token.i in self.carrier or token.i in self.verbs or token.dep_ in ("compound", "expl", "npadvmod"):
                continue
            if any(above.lower_ == "according" for above in islice(token.ancestors, 2)):
                continue
            misread = token.pos_ == "VERB" and self._noun_after_to(token)
            noun = token.pos_ in ("NOUN", "PROPN", "PRON") or token.lower_ in _SURELY_NOUNS
            if not noun and not misread and (token.pos_, token.dep_) != ("DET", "dobj"):
                continue
            verb, role, nested = self._governor(token)
            if misread:
                role = "to"
            if role == "of" and verb is not None:
                verb, role = self._whole(token, verb)
            mention = self._mention(token, role, nested)
            if mention is not None:
                yield verb, mention

    @staticmethod
    def _noun_after_to(token: Any) -> bool:
        """Tell whether a word read as a verb is a noun: "Add to **batter**."."""
        left = token.nbor(-1) if token.i else None
        nouns = (lexicon.MIXTURES | lexicon.CONTAINERS) - lexicon.IMPERATIVES
        return left is not None and left.lower_ == "to" and token.lower_ in nouns

    @staticmethod
    def _whole(token: Any, verb: Any) -> tuple[Any, str]:
        """Give "half of the onions" the role of "half"."""
        upper = token.head.head
        while upper.dep_ in ("conj", "appos") and upper is not upper.head:
            upper = upper.head
        if upper.dep_ == "pobj":
            return verb, str(upper.head.lower_)
        return verb, SIMPLE_OBJECT

    # -- the sentence

    def sentence(self) -> Sentence:
        """Return the actions of the piece with their mentions."""
        mentions: dict[int, list[Mention]] = {place: [] for place in self.verbs}
        free: list[Mention] = []
        for verb, mention in self._things():
            (free if verb is None else mentions[verb.i]).append(mention)
        if not self.verbs:
            action = Action("", "", "", self.piece.start, self.piece.start, self.first, tuple(free), ordered=False)
            return Sentence(self.piece.instruction, (action,), self.piece.opening, self.begins)
        first = next(iter(self.verbs))
        mentions[first] = [*free, *mentions[first]]
        places = list(self.verbs)
        for place, following in pairwise(places):
            if not mentions[place] and self.verbs[place].lemma_.lower() in lexicon.LETTING:
                mentions[place] = [replace(m, role=SIMPLE_OBJECT) for m in mentions[following] if m.role == "subject"]
            if not mentions[place] and following - place <= 2 and not self.doc[place + 1].is_punct:
                mentions[place] = [m for m in mentions[following] if m.role == SIMPLE_OBJECT]
        actions = tuple(self._action(token, mentions[place]) for place, token in self.verbs.items())
        return Sentence(self.piece.instruction, actions, self.piece.opening, self.begins)

    def _action(self, token: Any, mentions: Iterable[Mention]) -> Action:
        verb = token.lemma_.lower()
        particle, last = "", token
        for child in token.rights:
            if child.dep_ in ("prt", "advmod") and child.i - last.i == 1 and child.lower_ in _PARTICLES:
                if child.lower_ == "in" and verb not in lexicon.STIRRED_IN | lexicon.ADDING:
                    continue
                particle, last = particle or child.lower_, child
            elif (
                child.dep_ == "prep" and child.i == token.i + 1 and child.lower_ == "in" and verb in lexicon.STIRRED_IN
            ):
                particle = "in"
            elif child.lower_ in ("aside", "inside") and not any(child.children):
                particle = child.lower_
        if particle == "in":
            mentions = [
                replace(m, role=SIMPLE_OBJECT) if m.role == "in" and m.kind in ("thing", "part") and not m.nested else m
                for m in mentions
            ]
            if all(m.kind == "container" for m in mentions if m.role == "in") and any(m.role == "in" for m in mentions):
                particle = ""
        start, end = self.piece.place(token.idx), self.piece.place(last.idx + len(last.text) - 1) + 1
        ordered = not any(child.dep_ in ("nsubj", "nsubjpass") and child.i not in self.carrier for child in token.lefts)
        negated = any(child.dep_ == "neg" for child in token.children)
        return Action(
            verb, particle, self.text[start:end], start, end, self._number(token), tuple(mentions), ordered, negated
        )


_SURELY_NOUNS = lexicon.APPLIANCES | lexicon.SURE_MIXTURES - {"mix", "batter"}
_PARTICLES = lexicon.words("in on out off up down over aside together away back through apart")
_PRONOUNS = lexicon.words("it they them this these those one each both")


def _kind(token: Any, head: str, words: set[str]) -> str | None:
    """Tell what kind of thing a noun names; None if it names nothing that can be worked on."""
    if token.pos_ in ("PRON", "DET") or head in ("everything", "all"):
        if token.head.dep_ == "relcl":
            return None
        return "pronoun" if token.lower_ in _PRONOUNS or head in lexicon.EVERYTHING else None
    if head in lexicon.COOKING and not words - {head, token.lower_}:
        return None
    if head in lexicon.NOT_THINGS or not any(letter.isalpha() for letter in head) or len(head) == 1:
        return None
    if head in lexicon.PARTITIVES and any(child.lower_ == "of" for child in token.children):
        return None
    if head in lexicon.APPLIANCES:
        return "appliance"
    if head in lexicon.CONTAINERS and not words & {"filo", "lasagne", "pastry", "cake"} - {head}:
        return "container"
    if head in lexicon.CONTAINERS:
        return "container" if not words & {"filo", "lasagne"} else "thing"
    if head in lexicon.TOOLS:
        return "tool"
    if head in lexicon.PARTS:
        return "part"
    return "thing"
