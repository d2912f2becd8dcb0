"""Short titles of instructions, for chapters and names of files: verb and object, in the words of the text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from graph2vid.errors import MissingDependencyError
from graph2vid.text import lexicon

if TYPE_CHECKING:
    from graph2vid.text.rules.clauses import Action, Sentence

LONGEST = 40
"""Characters of a short title."""

_BRACKETS = re.compile(r" ?[(\[][^()\[\]]*[)\]]")
_OPENING = re.compile(r"([^\W\d_]+)\b[^,.;:]{0,80},\s+(?=\w)")
_CLAUSE_ENDS = re.compile(r"(?<=\w)[,;:]\s|(?<=[\w)])\.(?=\s|$)|[。、，；]|\s[-–—]+\s")
_CONNECTING = lexicon.words(
    "to into onto in on at for from with without by until till and or then while when so that as if over under through "
    "before after using about along per plus around between where inside beside behind across against than but which "
    "once per out off up down back together aside away"
)
"""What a thing may be followed by; another word after it belongs to it, whatever the parser says."""
_NOT_LAST = _CONNECTING - {"out", "off", "up", "down", "back", "together", "aside", "away", "inside"} | lexicon.words(
    "a an the your their its this these those each all both some any of it is are be very least most not such"
)
_DROPPED = lexicon.words("then and or also so now")
_NOT = re.compile(r"\b(?:do not|don['’]t|never|not)\b[\w\s]*$", re.IGNORECASE)
_SEPARATOR = re.compile(r"(?:,\s*(?:and|or)?|\s(?:and|or))\s*")
_ELLIPSIS = " …"


def short_titles(texts: Sequence[str], longest: int = LONGEST) -> list[str]:
    """Return a title per instruction that is no longer than ``longest`` and ends with a whole word.

    What fits stays as it is, without its full stop. Of the rest, the words from the first order on are taken, up to the
    last thing that fits ("In a large bowl, whisk the eggs and milk until frothy." → "Whisk the eggs and milk"); a list
    that is cut, or a cut where no thing ends, is marked "…". Without an English dependency parser, clauses are cut.

    Parameters
    ----------
    texts : sequence of str
    longest : int
        Characters, at least 10.

    Returns
    -------
    list of str
        One for each text; "Step 3" where not even a word fits.
    """
    plain = [_tidy(text) for text in texts]
    long = [at for at, text in enumerate(plain) if len(text) > longest]
    cut = {at: _without_opening(_tidy(_BRACKETS.sub("", plain[at]))) for at in long}
    firsts: dict[int, Sentence] = {}
    for sentence in _sentences([cut[at] for at in long]):
        firsts.setdefault(long[sentence.instruction], sentence)
    found = [_shortened(cut[at], firsts.get(at), longest) if at in cut else text for at, text in enumerate(plain)]
    return [text[:1].upper() + text[1:] or f"Step {at}" for at, text in enumerate(found, start=1)]


def _sentences(texts: Sequence[str]) -> list[Sentence]:
    """Return what the dependency parser finds; nothing where none is installed."""
    from graph2vid.text.rules.analysis import analyse
    from graph2vid.text.rules.dependency_parser import language_model

    try:
        return analyse(language_model(), texts) if texts else []
    except MissingDependencyError:
        return []


def _tidy(text: str) -> str:
    return " ".join(text.split()).strip(" .,;:")


def _without_opening(text: str) -> str:
    """Return the text without the adverbials that it begins with: "Using a fork, …", "In a large bowl, …"."""
    while (opening := _OPENING.match(text)) and (
        opening[1].lower() in lexicon.OPENERS | _DROPPED or opening[1].lower().endswith(("ing", "ly"))
    ):
        text = text[opening.end() :]
    first, _, rest = text.partition(" ")
    return rest if first.lower() in _DROPPED else text


def _shortened(text: str, sentence: Sentence | None, longest: int) -> str:
    if len(text) <= longest:
        return text
    actions = [one for one in sentence.actions if one.verb] if sentence else []
    action = next((one for one in actions if _things_after(one)), None)
    begin = _begin(text, action) if action else 0
    ends = {*_clause_ends(text, actions), *(end for one in actions for end in _things_after(one))}
    for end in sorted((end for end in ends if begin < end <= begin + longest), reverse=True):
        if _is_whole(text, begin, end):
            title = text[begin:end].strip(" .,;:") + (_ELLIPSIS if _is_in_list(text, end, actions) else "")
            if len(title) <= longest:
                return title
    if action is not None and (title := _verb_and_object(action, longest)):
        return title
    return _first_words(text[begin:], longest)


def _begin(text: str, action: Action) -> int:
    """Return where the order begins, in characters: at the word that holds the verb, or at what negates it."""
    negation = _NOT.search(text, 0, action.start) if action.negated else None
    return negation.start() if negation else text.rfind(" ", 0, action.start + 1) + 1


def _things_after(action: Action) -> list[int]:
    """Return where the things end that are named after the verb of an action, in order."""
    return sorted(one.end for one in action.mentions if one.start >= action.end and one.role != "condition")


def _clause_ends(text: str, actions: Sequence[Action]) -> Iterator[int]:
    """Yield where clauses end: at the end of a sentence, at commas outside of things, and before the next order."""
    inside = [(one.start, one.end) for action in actions for one in action.mentions]
    for match in _CLAUSE_ENDS.finditer(text):
        if not match[0].isascii() or not any(start < match.start() < end for start, end in inside):
            yield match.start()
    for action in actions[1:]:
        before = text[: action.start].rstrip(" ,;")
        while (last := before.rpartition(" ")[2]) in ("and", "then", "or", "but"):
            before = before.removesuffix(last).rstrip(" ,;")
        yield len(before)


def _is_whole(text: str, begin: int, end: int) -> bool:
    """Say whether words end here, and what they say does: two at least, the last no article or preposition."""
    words, follows = text[begin:end].split(), text[end:].split(maxsplit=1)
    ends_word = not text[end : end + 1].isalnum() and text[end : end + 1] not in ("-", "'", "’", "/")
    next_word = follows[0].strip(",;:").lower() if follows and text[end] == " " else "and"
    goes_on = next_word not in _CONNECTING and not next_word.endswith(("ing", "ly"))
    enough = len(words) > 1 or not text.isascii()  # not all scripts part words
    return enough and ends_word and not goes_on and words[-1].lower() not in _NOT_LAST


def _is_in_list(text: str, end: int, actions: Sequence[Action]) -> bool:
    """Say whether a list goes on here: a comma or "and" follows, and then a thing, or neither an order nor a remark."""
    separator = _SEPARATOR.match(text, end)
    if separator is None or separator.end() in {action.start for action in actions}:
        return False
    if any(thing.start == separator.end() for action in actions for thing in action.mentions):
        return True
    word = text[separator.end() :].split(" ", 1)[0].strip(",;:.").lower()
    return word not in lexicon.IMPERATIVES | _CONNECTING and not word.endswith(("ing", "ly"))


def _verb_and_object(action: Action, longest: int) -> str:
    """Return the verb and the noun it acts on, with as many of the words before the noun as fit."""
    things = [one for one in action.objects if one.start >= action.end]
    if not things:
        return ""
    verb = action.text if action.particle in ("", *action.text.split()) else f"{action.text} {action.particle}"
    words = things[0].text.split()
    for first in range(len(words)):
        if len(title := " ".join([verb, *words[first:]])) <= longest:
            return title
    return ""


def _first_words(text: str, longest: int) -> str:
    """Return as many words as fit, none left hanging, and the mark of a cut."""
    words = text.split()
    while words and (len(" ".join(words)) > longest - len(_ELLIPSIS) or words[-1].strip(",;:").lower() in _NOT_LAST):
        words.pop()
    return f"{' '.join(words).strip(' .,;:')}{_ELLIPSIS}" if words else ""
