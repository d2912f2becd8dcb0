"""What web pages put around a procedure: buttons, advertisements, ratings, calls to follow and to comment."""

from __future__ import annotations

import re

_LONGEST = 200  # characters; nothing longer is boilerplate
_SITES = r"(?:facebook|instagram|pinterest|twitter|x|tiktok|youtube|whatsapp|reddit|e-?mail|copy link|text message)"
_COUNT = r"\d[\d.,]{,8}k?"
_VOTES = r"(?:votes?|reviews?|ratings?)"
_LABEL = (
    r"(?:(?:prep(?:aration)?|cook(?:ing)?|bak(?:e|ing)|total|active|additional|rest(?:ing)?|chill(?:ing)?) time"
    r"|servings?|serves|yields?|course|cuisine|keywords?|author|difficulty|calories|category|diet|level|cost)"
)
_UNIT = r"(?:s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|days?)"
_FORMS = (
    # advertisements
    r"(?:(?:article continues|continue reading) below )?(?:this |the )?ad(?:vert(?:isement)?s?)?",
    r"(?:article continues|continue reading) below|sponsored(?: content| by .{1,60})?|scroll to continue",
    r"this (?:post|page|article|recipe|site) (?:may )?contains? affiliate links?\b.*",
    # buttons
    r"(?:print|save|pin|share|rate|e-?mail|bookmark|review) (?:this |the )?(?:recipe|page|post|article)",
    r"(?:save|share|print|pin|rate)(?:\W+(?:save|share|print|pin|rate|review|comment|e-?mail))+",
    r"(?:skip|jump|go|back) to (?:the )?(?:recipe|video|content|top|main content|instructions|ingredients)",
    r"(?:skip|jump|go) to (?:the )?recipe"
    r"(?:\W{1,3}(?:print|save|pin|rate|share|watch|jump to) (?:the )?(?:recipe|video)){1,4}",
    r"deselect all|add to (?:my )?(?:shopping list|cart|meal plan|collection|favou?rites)",
    r"cook mode\b.*|(?:keep|prevent) (?:the |your )?screen\b.*",
    r"watch (?:(?:the|this|our) )?video(?: below)?|play video",
    r"us customary(?:\W+metric)?|metric(?:\W+us customary)?",
    r"(?:us|imperial|cups)\W+metric|metric\W+(?:us|imperial|cups)",
    r"(?:scale\W*|servings?\W*)?(?:(?:½|1/2|\d)\s?x[\s|/·,-]*){1,6}",
    # calls
    rf"(?:share|find us|follow (?:us|me))(?: (?:on|via|to))? {_SITES}(?:\W+{_SITES})*|{_SITES}(?:\W+{_SITES})+",
    r"(?:tag|mention|follow|find) (?:me |us )?(?:on \w{1,20} )?@.*|tag (?:us|me)\b.*|follow (?:us|me|along)\b.*",
    r"(?:share|snap|post|show (?:us|me)) (?:a |your )?(?:photo|picture|pic|creation)s?\b.*",
    r"(?:please )?(?:leave|write|add|post) (?:a|your) (?:(?:star )?rating|review|comment|reply)"
    r"(?: (?:and|below|down)\b.*)?",
    r"(?:please )?(?:let|tell) (?:us|me)\b.*\b(?:comments?|below|turned out|turns out|liked?)\b.*",
    r"(?:subscribe|sign up|join)\b.*\b(?:newsletter|channel|e-?mails?|free|updates|for more)\b.*",
    # ratings
    r"(?:[★☆⭐✩✭✯⭑]\s*){1,10}.{,40}",
    rf"(?:rated |rating:? ?)?{_COUNT}(?: (?:out )?of |\s?/\s?)5(?: stars?)?(?:\W+{_COUNT}(?: {_VOTES})?)?\W*",
    rf"{_COUNT} (?:stars?|from {_COUNT} {_VOTES})",
    rf"(?:read |see |view |all ){{,2}}{_COUNT} (?:{_VOTES}|comments?|photos?|saves?|shares?|likes?|views?)",
    r"(?:read|see|view)(?: all| more)? (?:reviews?|comments?|more)|read more: .*|see also: .*",
    # credits
    r"(?:photo|image|picture)s?(?: credits?)?(?: by|:) .*",
    r"(?:recipe|written|medically reviewed|reviewed|co-authored) by:? .*",
    r"(?:last )?(?:updated|published|posted|modified)(?: on)?:? .*\d.*",
    r"©.*|\(c\) ?\d{4}.*|copyright\b.*|.{,60}\ball rights reserved\W*",
    r"(?:home|recipes)(?:\s*[>›»/]\s*[^>›»/]{1,40})+|privacy policy|terms of (?:use|service)|cookie policy",
    # times and servings
    rf"(?:about )?\d[\d.,/–-]{{,6}}\s?(?:{_UNIT}|servings?|people|portions|kcal|cal(?:ories)?)"
    rf"(?:,? (?:and )?\d{{1,3}}\s?{_UNIT})?",
)
_DROPPED = re.compile("|".join(_FORMS), re.IGNORECASE)
_BUTTONS = re.compile(
    rf"(?i)print|save|pin(?: it)?|share|rate|review|e-?mail|bookmark|video|watch|subscribe|menu|search|log ?in|sign ?in"
    rf"|{_SITES}|{_LABEL}\s*:?|(?:see|show|read) (?:more|less|all)|get ingredients|select all"
)
_BYLINE = re.compile(r"[Bb]y(?: (?:[A-Z][\w.'’-]*|de|van|von|and|&)){1,5}")
_FOOTER = re.compile(
    r"(?i)(?:did|have) you (?:make|made|try|tried|cook|cooked|bake|baked)\b.{,60}\?.*"
    r"|(?:if you|i hope you|we hope you|i['’]d love to|we['’]d love to)\b.{,120}"
    r"\b(?:comments?|photos?|rating|review|instagram|see what you made|enjoy this recipe)\b.*"
    r"|(?:leave|write) a (?:reply|comment|review)|comments? ?\(\d{1,5}\)|reader interactions|filed under:?.*"
    r"|(?:you (?:may|might) also (?:like|enjoy)|more (?:\w+ ){,3}recipes|related (?:articles|recipes|posts|wikihows)"
    r"|other recipes you.*|community q&a|expert q&a|about th(?:is|e) (?:article|author)|people also viewed):?"
)


def is_boilerplate(text: str) -> bool:
    """Say whether a tidied line is one of those that pages put around, and into, a procedure."""
    return len(text) <= _LONGEST and bool(_DROPPED.fullmatch(text.rstrip(" .!")))


def is_button(text: str) -> bool:
    """Say whether a tidied line is a button, a label or a name on a page; elsewhere it may be an instruction."""
    return len(text) <= _LONGEST and bool(_BUTTONS.fullmatch(text) or _BYLINE.fullmatch(text))


def ends_page(text: str) -> bool:
    """Say whether a tidied line begins what follows a procedure on a page: "Did you make this recipe?"."""
    return len(text) <= _LONGEST and bool(_FOOTER.fullmatch(text))
