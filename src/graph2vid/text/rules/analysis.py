"""What each sentence of a procedure orders: actions, and the things they act on, with, in and into."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice, pairwise
from typing import Any

from graph2vid.text import lexicon
from graph2vid.text.rules.carrier import Piece, pieces
from graph2vid.text.rules.clauses import Action, Mention, Sentence

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
    seen = Counter[int]()  # tokens of each instruction
    for piece, doc in zip(parts, nlp.pipe((part.text for part in parts), batch_size=64), strict=True):
        sentences.append(_Reader(piece, doc, seen[piece.instruction], texts[piece.instruction]).sentence())
        seen[piece.instruction] += sum(not piece.is_carrier(token.idx) for token in doc)
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
            a_verb = token in carried or token.pos_ in ("VERB", "AUX") or token.lemma_.lower() in lexicon.IMPERATIVES
            if token.i in found or token.i in self.carrier or not a_verb or _is_colour(token):
                continue
            found[token.i] = token
            for child in token.children:
                order = child.dep_ in ("conj", "parataxis", "dep") or (child.dep_ == "ccomp" and not _is_opened(child))
                a_verb = child.pos_ == "VERB" or child.lower_ in lexicon.IMPERATIVES
                if order and a_verb and child.tag_ not in ("VBG", "VBN"):
                    queue.append(child)
        return dict(sorted(found.items()))

    # -- things

    def _governor(self, token: Any) -> tuple[Any | None, str, bool]:
        """Climb from a noun to the order it belongs to: the verb, the role, and whether it describes another noun."""
        role, nested, condition = "", False, False
        before, left = self.doc[max(token.i - 2, 0)], self.doc[max(token.i - 1, 0)]
        if left is not token and left.dep_ == "prep" and left.i not in self.carrier:
            role = left.lower_
        elif token.dep_ == "dobj" and token.head is left and left.tag_ in ("VBN", "VBG") and before is not left:
            role = before.lower_ if before.pos_ == "ADP" else ""
        for _ in range(_DEEPEST):
            head = token.head
            relation = token.dep_
            if head is token or head.i in self.carrier:
                return None, "condition" if condition else role or "subject", nested
            if relation == "pobj" and not role:
                role = "object" if head.dep_ == "prt" else head.lower_  # "Prise off the cover."
            elif relation in ("dobj", "nsubjpass", "attr", "oprd", "dative") and not role:
                role = "object"
            elif relation in ("nsubj", "npadvmod") and not role:
                role = "subject"
            if relation == "prep" and head.pos_ in ("NOUN", "PROPN", "PRON", "NUM"):
                nested = nested or role not in ("of", "with", "and")
            if head.i in self.verbs:
                return head, "condition" if condition and role != "result" else role or "object", nested
            if head.pos_ in ("VERB", "AUX") and relation not in ("amod", "compound"):
                if head.lemma_.lower() in lexicon.MAKING and role == "object" and not nested:
                    role = "result"
                plain = head.dep_ in ("xcomp", "ccomp", "pcomp", "conj") or (head.dep_, head.tag_) == ("advcl", "VBG")
                condition = condition or not plain or _is_opened(head)
            elif relation in ("prep", "pobj") and role in ("until", "till", "like", "before", "after", "as", "per"):
                condition = True
            token = head
        return None, "condition", nested

    def _mention(self, token: Any, role: str, nested: bool) -> Mention | None:
        head = token.lower_ if token.pos_ == "VERB" else token.lemma_.lower()  # "filling" is not "fill"
        describing: list[Any] = []
        for child in token.lefts:
            if child.dep_ == "punct" and child.text == ",":
                describing = [child for child in describing if child.pos_ in ("DET", "ADJ")]
            elif child.dep_ not in ("cc", "punct", "prep", "preconj", "conj"):
                describing.append(child)
        words = {head, token.lower_}
        modifiers = {child.lemma_.lower() for child in describing if child.pos_ in ("NOUN", "PROPN")}
        for child in describing:
            words.update((child.lower_, child.lemma_.lower()))
            words.update(inner.lemma_.lower() for inner in child.lefts if inner.dep_ in ("compound", "amod"))
            modifiers.update(inner.lemma_.lower() for inner in child.lefts if inner.dep_ == "compound")
        if token.dep_ == "conj":
            words.update(child.lower_ for child in token.head.lefts if child.dep_ in ("det", "poss"))
        if token.dep_ == "pobj" and token.head.lower_ == "of" and token.head.head.lemma_.lower() in lexicon.MEASURES:
            words.add(token.head.head.lemma_.lower())
        described_by = frozenset(modifiers - lexicon.NOT_THINGS - lexicon.MEASURES)
        kind = _kind(token, head, words)
        if kind is None:
            return None
        begin = min([token.i, *(child.left_edge.i for child in describing if child.i not in self.carrier)])
        return Mention(
            *self._where(self.doc[begin], token, token), head, frozenset(words), described_by, role, kind, nested
        )

    def _where(self, first: Any, last: Any, token: Any) -> tuple[str, int, int, int]:
        """Return the words between two tokens, where they begin and end, and the number of a token."""
        start, end = self.piece.place(first.idx), self.piece.place(last.idx + len(last.text) - 1) + 1
        number = self.first + token.i - (len(self.carrier) if token.i > self.shift else 0)
        return self.text[start:end], start, end, number

    def _things(self) -> Iterator[tuple[Any | None, Mention]]:
        for token in self.doc:
            if token.i in self.carrier or token.i in self.verbs or token.dep_ in ("compound", "expl", "npadvmod"):
                continue
            if any(above.lower_ == "according" for above in islice(token.ancestors, 2)):
                continue
            misread = token.pos_ == "VERB" and _is_noun_after_to(token)
            noun = token.pos_ in ("NOUN", "PROPN", "PRON") or token.lower_ in _SURELY_NOUNS
            if not noun and not misread and (token.pos_, token.dep_) != ("DET", "dobj"):
                continue
            verb, role, nested = self._governor(token)
            if misread:
                role = "to"
            if role == "of" and verb is not None:  # "half of the onions" has the role of "half"
                upper = token.head.head
                while upper.dep_ in ("conj", "appos") and upper is not upper.head:
                    upper = upper.head
                role = upper.head.lower_ if upper.dep_ == "pobj" else "object"
            mention = self._mention(token, role, nested)
            if mention is not None:
                yield verb, mention

    # -- the sentence

    def sentence(self) -> Sentence:
        """Return the actions of the piece with their mentions."""
        mentions: dict[int, list[Mention]] = {place: [] for place in self.verbs}
        free: list[Mention] = []
        for verb, mention in self._things():
            (free if verb is None else mentions[verb.i]).append(mention)
        if not self.verbs:
            action = Action("", self.piece.start, self.piece.start, self.first, "", "", tuple(free), ordered=False)
            return Sentence(self.piece.instruction, (action,), self.piece.opening, self.begins)
        mentions[min(mentions)][:0] = free
        for place, following in pairwise(self.verbs):
            if not mentions[place] and self.verbs[place].lemma_.lower() in lexicon.LETTING:
                mentions[place] = [m._replace(role="object") for m in mentions[following] if m.role == "subject"]
            if not mentions[place] and following - place <= 2 and not self.doc[place + 1].is_punct:
                mentions[place] = [m for m in mentions[following] if m.role == "object"]
        actions = tuple(self._action(token, mentions[place]) for place, token in self.verbs.items())
        return Sentence(self.piece.instruction, actions, self.piece.opening, self.begins)

    def _action(self, token: Any, mentions: list[Mention]) -> Action:
        verb = token.lemma_.lower()
        particle, last = "", token
        for child in token.rights:
            word, in_place = child.lower_, child.i - last.i == 1
            if child.dep_ in ("prt", "advmod") and in_place and word in _PARTICLES:
                if word != "in" or verb in lexicon.STIRRED_IN | lexicon.ADDING:
                    particle, last = particle or word, child
            elif (child.dep_, child.i, word) == ("prep", token.i + 1, "in") and verb in lexicon.STIRRED_IN:
                particle = "in"
            elif child.lower_ in ("aside", "inside") and not any(child.children):
                particle = child.lower_
        if particle == "in":
            stirred_in = [m.role == "in" and m.kind in ("thing", "part") and not m.nested for m in mentions]
            mentions = [m._replace(role="object") if put else m for m, put in zip(mentions, stirred_in, strict=True)]
            if {m.kind for m in mentions if m.role == "in"} == {"container"}:
                particle = ""
        ordered = not any(child.dep_ in ("nsubj", "nsubjpass") and child.i not in self.carrier for child in token.lefts)
        negated = any(child.dep_ == "neg" for child in token.children)
        return Action(*self._where(token, last, token), verb, particle, tuple(mentions), ordered, negated)


def _is_colour(token: Any) -> bool:
    """Tell whether "brown" is a colour: "until golden **brown**"."""
    before = token.nbor(-1).lower_ if token.i else ""
    return token.lower_ == "brown" and before in ("golden", "until", "lightly", "nicely")


def _is_opened(verb: Any) -> bool:
    return any(child.dep_ in ("mark", "advmod") and child.lower_ in lexicon.CONDITIONS for child in verb.children)


def _is_noun_after_to(token: Any) -> bool:
    """Tell whether a word read as a verb is a noun: "Add to **batter**."."""
    before = token.nbor(-1).lower_ if token.i else ""
    return before == "to" and token.lower_ in (lexicon.MIXTURES | lexicon.CONTAINERS) - lexicon.IMPERATIVES


_SURELY_NOUNS = lexicon.APPLIANCES | lexicon.SURE_MIXTURES - {"mix", "batter"}
_PARTICLES = lexicon.words("in on out off up down over aside together away back through apart")
_KINDS = {"appliance": lexicon.APPLIANCES, "container": lexicon.CONTAINERS}
_KINDS |= {"tool": lexicon.TOOLS, "part": lexicon.PARTS}
_PRONOUNS = lexicon.words("it they them this these those one each both")


def _kind(token: Any, head: str, words: set[str]) -> str | None:
    """Tell what kind of thing a noun names; None if it names nothing that can be worked on."""
    if token.pos_ in ("PRON", "DET") or head in ("everything", "all"):
        if token.head.dep_ == "relcl":
            return None
        return "pronoun" if token.lower_ in _PRONOUNS or head in lexicon.EVERYTHING else None
    a_share = head in lexicon.PARTITIVES and any(child.lower_ == "of" for child in token.children)
    manner = head in lexicon.NOT_THINGS or (head in lexicon.COOKING and not words - {head, token.lower_})
    if a_share or manner or len(head) == 1 or not any(map(str.isalpha, head)):
        return None
    if head in lexicon.CONTAINERS - lexicon.APPLIANCES and words & {"filo", "lasagne"}:
        return "thing"
    return next((kind for kind, heads in _KINDS.items() if head in heads), "thing")
