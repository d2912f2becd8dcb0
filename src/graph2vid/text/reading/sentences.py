"""Where one sentence ends and the next begins, in the language of recipes and manuals."""

from __future__ import annotations

import re

from graph2vid.text.lexicon import words

# A run of stops is looked at from where it begins: linear in its length.
# A stop that needs a space after it, with the closing signs that belong to it; or one that needs none.
_STOP = re.compile(r"""(?P<stop>(?<!\.)\.+|…|(?<![!?])[!?]+)[)\]"'”’»*]*(?=\s|$)|[。！？।॥]+[)\]」』）”"]*|؟""")
_WORD_BEFORE = re.compile(r"""[^\s()\[\]"'“”‘’,;/]*$""")
_BRACKET = re.compile(r"[()\[\]]")
_CAPITAL_START = re.compile(r"[.!?]\s+[A-Z]")
_NUMBER = re.compile(r"[(#]?\d{1,3}")
_LONGEST_ASIDE = 400  # characters; a bracket that closes later than this was not meant
_LONGEST_WORD = 24

# The sentence goes on after these, whatever follows.
_LEADING = words("e.g i.e approx appx ca cf vs viz incl esp dr mr mrs ms prof st mt fig figs vol resp")
# The sentence goes on after these when a number follows.
_NUMBERED = words("no nos p pp art sec step temp gas")
# Units: the sentence ends after these only where a new one plainly begins.
_AMOUNTS = words("tsp tsps tbsp tbsps tbs oz ozs lb lbs pt pts qt qts gal g gr kg mg ml cl dl l c pkg pkt pc pcs")
_OTHER_UNITS = words("min mins sec secs hr hrs h deg degs in ins ft yd cm mm m med lg sm dia diam max")
# Foods whose names begin with a capital letter: "2 tbsp. Dijon mustard" goes on.
_NAMED_FOODS = words(
    "american arborio asian baileys basmati bolognese bramley brie bourbon brussels cajun camembert cheddar chinese "
    "cognac cointreau colby dijon dutch emmental english feta french german gouda granny greek gruyère gruyere "
    "guinness indian irish italian jack japanese kahlua kalamata korean mexican monterey moroccan nutella oreo oreos "
    "parmesan parmigiano philadelphia portuguese roma romano roquefort scotch sichuan spanish sriracha swiss szechuan "
    "tabasco thai turkish velveeta vietnamese worcester worcestershire yukon"
)


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """Split running text into sentences.

    Abbreviations ("350 deg. F", "2 tbsp. sugar", "e.g."), numbers, initials and what stands in brackets do not end a
    sentence. In a text that begins sentences with small letters they may begin so.

    Parameters
    ----------
    text : str
        Tidied, in one line.

    Returns
    -------
    list of (int, int)
        Start and end of each sentence in ``text``, white space left out.
    """
    inside = _asides(text)
    small_starts = _begins_small(text)
    spans = []
    start = aside = 0
    for stop in _STOP.finditer(text):
        while aside < len(inside) and inside[aside][1] < stop.start():
            aside += 1
        if aside < len(inside) and inside[aside][0] < stop.start():
            opening, closing = inside[aside]
            if opening != start or closing >= stop.end():  # (Unlike this, which is a sentence.)
                continue
        if stop["stop"] is None or _ends(text, start, stop, small_starts):
            spans.append((start, stop.end()))
            start = stop.end()
            while start < len(text) and text[start].isspace():
                start += 1
    if start < len(text):
        spans.append((start, len(text)))
    return spans


def _asides(text: str) -> list[tuple[int, int]]:
    """Return where outermost brackets open and close."""
    found: list[tuple[int, int]] = []
    opened: list[int] = []
    for bracket in _BRACKET.finditer(text):
        if bracket[0] in "([":
            opened.append(bracket.start())
        elif opened:
            opening = opened.pop()
            if bracket.start() - opening <= _LONGEST_ASIDE:
                while found and found[-1][0] > opening:
                    found.pop()
                found.append((opening, bracket.start()))
    return found


def _begins_small(text: str) -> bool:
    """Say whether this text begins its sentences with small letters."""
    first = next((character for character in text if character.isalpha()), "")
    return first.islower() and not _CAPITAL_START.search(text)


def _ends(text: str, start: int, stop: re.Match[str], small_starts: bool) -> bool:
    """Say whether the sentence from ``start`` ends with this stop."""
    following = text[stop.end() : stop.end() + 2 * _LONGEST_WORD].split(maxsplit=1)
    if not following:
        return True
    following_word = following[0].strip("\"'“”‘’([*_.,;:!?)]")
    first = following_word[:1]
    if first.islower() and not small_starts:
        return False
    if stop["stop"] != ".":
        return True
    word = _WORD_BEFORE.findall(text[max(start, stop.start() - _LONGEST_WORD) : stop.start()])[0]
    place = stop.start() - len(word)
    before = text[max(start, place - _LONGEST_WORD) : place].rstrip()
    plain = word.casefold()
    of_step = _NUMBER.fullmatch(word) and before.casefold() in ("", "step")  # the number of a step, not its words
    if of_step or plain in _LEADING or (plain in _NUMBERED and first.isdigit()):
        return False
    amount = plain in _AMOUNTS or plain.lstrip("0123456789.,/½¼¾⅓⅔") in _AMOUNTS
    if amount or plain in _OTHER_UNITS:
        scale = following_word in ("F", "C", "K", "°F", "°C")
        food = amount and following_word.casefold() in _NAMED_FOODS
        return not (scale or food or first.islower() or first.isdigit())
    if len(word) == 1 and word.isupper():  # an initial, but "350 F." is none
        return before[-1:].isdigit() or before.endswith(("°", "deg", "deg.", "degrees", "º"))
    # "U.S." goes on, "p.m." may end.
    return not ("." in word and word.replace(".", "").isalpha() and (word.isupper() or first.islower()))
