"""Instructions that say of themselves that they may be left out."""

from __future__ import annotations

import re

_WISH = r"if (?:desired|liked|wanted|wished|preferred|you (?:like|want|wish|prefer|desire)|you(?:'|’)d like)"
_BEFORE = re.compile(
    rf"\W*(?:optionally\b|optional(?: step)?\s*[):,–—-]|{_WISH}\s*[,:)]|if (?:desired|liked|wanted|preferred) \w)",
    re.IGNORECASE,
)
# White space is looked at from where it begins, and not twice: linear in its length.
_AFTER = re.compile(
    rf"(?:\(\s*(?:optional|{_WISH})\s*\)|,?(?<!\s)\s+{_WISH}|,\s+optional(?:ly)?)\s*+[.!]*+\s*$", re.IGNORECASE
)
_SENTENCE_END = re.compile(r"(?<=[.!?;])\s+")
_SEVERAL = re.compile(r",|;|:|\b(?:and|then|plus)\b|\bserve\b", re.IGNORECASE)


def is_optional(text: str) -> bool:
    """Tell whether an instruction says that it may be left out, as a whole.

    A wish at the end counts only where there is but one thing to do with one thing: of "Mix the flour, sugar and nuts
    (optional)" and of "Serve with cream, if you like" only a part may be left out.

    Examples
    --------
    >>> [is_optional(text) for text in ("Optionally, add nuts.", "(Optional) Add nuts.", "Add nuts, if you like.")]
    [True, True, True]
    >>> [is_optional(text) for text in ("Bake it, with nuts if desired.", "If you like it hot, add chilli.")]
    [False, False]
    """
    sentences = [sentence for sentence in _SENTENCE_END.split(text) if any(map(str.isalpha, sentence))]
    return bool(sentences) and all(map(_may_be_left_out, sentences))


def _may_be_left_out(sentence: str) -> bool:
    if _BEFORE.match(sentence):
        return True
    wish = _AFTER.search(sentence)
    if wish is None:
        return False
    order = sentence[: wish.start()].strip()
    return bool(order) and not _SEVERAL.search(order)
