"""The words of a text, and which language it is in by its letters and its commonest words; no model is needed.

Good enough to tell captions that an English embedder cannot use from those that it can, poor English included; not
meant for a sentence or two.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from itertools import islice

from graph2vid.errors import InputError
from graph2vid.evidence.captions import Cue
from graph2vid.evidence.embed import Embedder

_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")

_FUNCTION_WORDS = """
    a an the and or but if so nor of to in on at for from by with without as into onto up down out off over under about
    after before until while once again than then now here there when where why how what which who whom whose
    i me my mine we us our ours you your yours he him his she her hers it its they them their theirs
    this that these those one two some any each every both either few more most much many such same other another all
    is are was were be been being am do does did done have has had having
    will would can could should shall may might must let lets gonna going go got get gets getting
    i'm i've i'll i'd you're you've you'll we're we've we'll it's that's there's they're let's
    don't doesn't didn't can't won't isn't aren't not no yes
    just very too also only even really like okay ok um uh oh well right little bit kind sort lot thing things back way
    want need make sure know see look think say said because
"""

FUNCTION_WORDS = frozenset(_FUNCTION_WORDS.split())
"""English words that say little about what is done, as far as people use them in narration."""

_MOST_WORDS = 5000
_FEWEST_HITS = 6  # common words of a language that must be met before it is named
_LEAST_SHARE = 0.12  # of all words that are common words of the language
_CLEARLY = 2.0  # how many times as many as English has, for another language to be named

# Words that a language uses all the time. Some are common in several; it is the sum that tells.
_COMMON = {
    "de": "und der das ist nicht ein eine einen einer eines ich wir ihr sie auf mit für von dem den des zu noch "
    "auch jetzt dann wenn aber schon wie oder nur mal hier haben wird werden sind kann etwas dass diese "
    "dieser",
    "fr": "le la les des une est et vous nous je il elle dans pour avec pas que qui sur ce cette ces on va du au "
    "aux mais plus être fait bien là donc alors voilà c'est j'ai d'un d'une très ça",
    "es": "el la los las una que de y es en por con para se lo como pero más muy este esta esto vamos ya le su aquí "
    "hay está cuando bien ahora también nos poco entonces del al un",
    "pt": "o os uma que de e é em por com para se não mais muito como mas você vai aqui isso essa este esta está do "
    "da dos das ao bem agora também gente então um na no",
    "it": "il la le gli uno una che di e è in per con non si ma come più anche questo questa sono della del dei nel "
    "alla poi adesso qui molto abbiamo cosa quindi fare ci un",
    "nl": "de het een en van ik je dat niet zijn voor met op te aan er maar ook dan nog wel naar hebben wordt deze "
    "dit als bij om heb gaan nu ga even we",
    "sv": "och det att en som är på för med jag den inte ett har till vi så här av men nu ska kan lite från eller "
    "om också när du",
    "da": "og det at en som er på for med jeg den ikke et har til vi så her af men nu skal kan lidt fra eller om "
    "også når du de",
    "no": "og det at en som er på for med jeg den ikke et har til vi så her av men nå skal kan litt fra eller om "
    "også når du de",
    "fi": "ja on ei se että kun niin mutta tämä nyt sitten myös ovat oli voi vain mitä joka sen minä hän olen tässä "
    "vielä kanssa pitää",
    "pl": "i w na z się nie to jest że do jak ale co tak po teraz już jeszcze tylko może tego przez dla być mamy "
    "bardzo tu od za lub",
    "cs": "a je se na to že v s ne ale jak tak po pak už jen si do pro aby budeme jsem jsou bude máme tady nebo "
    "ještě také z",
    "hu": "a az és hogy nem egy is meg ez van de ha csak már még el itt most majd kell lesz nagyon ezt azt vagy le fel",
    "ro": "și de la în cu o un nu pe să se este că din ce mai am pentru sunt aici acum foarte care dar ca fi asta",
    "tr": "ve bir bu da de için çok ne var ile daha gibi olarak ama şimdi sonra kadar ben biz siz değil olan "
    "şekilde biraz tane güzel",
    "id": "yang dan di ini itu dengan untuk tidak dari kita ke ada juga akan bisa sudah saya kami jadi atau lalu "
    "sampai kalau sama nya",
    "tl": "ang ng sa na ay mga at ko mo ito natin lang ka po naman yung para kung din siya ako tayo niyo",
    "vi": "và là của có không cho một các được này thì mình với để ra trong cái vào như rồi đã nó mọi người",
}
_WORDS = {"en": FUNCTION_WORDS} | {code: frozenset(common.split()) for code, common in _COMMON.items()}


def _table(pairs: str) -> dict[str, str]:
    return dict(pair.split("=") for pair in pairs.split())


_SCRIPTS = _table(
    "HIRAGANA=ja KATAKANA=ja HANGUL=ko CJK=zh THAI=th GREEK=el HEBREW=he ARMENIAN=hy GEORGIAN=ka TAMIL=ta TELUGU=te "
    "BENGALI=bn"
)
_NAMES = _table(
    "en=English de=German fr=French es=Spanish pt=Portuguese it=Italian nl=Dutch sv=Swedish da=Danish no=Norwegian "
    "fi=Finnish pl=Polish cs=Czech hu=Hungarian ro=Romanian tr=Turkish id=Indonesian tl=Tagalog vi=Vietnamese "
    "ja=Japanese ko=Korean zh=Chinese th=Thai el=Greek he=Hebrew hy=Armenian ka=Georgian ta=Tamil te=Telugu "
    "bn=Bengali"
)


def words(text: str) -> list[str]:
    """Return the words of a text in their order, in small letters; numbers and signs are left out."""
    return [word.replace("’", "'") for word in _WORD.findall(text.lower())]


def content_words(text: str) -> list[str]:
    """Return the words of a text that are not :data:`FUNCTION_WORDS`; all of them where there are no others."""
    found = words(text)
    return [word for word in found if word not in FUNCTION_WORDS] or found


def language_of(texts: Iterable[str]) -> str | None:
    """Say which language texts are in.

    Parameters
    ----------
    texts : iterable of str
        Captions of a video, or anything of some length; the first 5000 words are looked at.

    Returns
    -------
    str or None
        The code of the language (``"en"``, ``"de"``), or in capitals the name of an alphabet that many languages use
        (``"CYRILLIC"``). None where it cannot be told: little text, noise, or a language that is not known here.
    """
    met = list(islice((word for text in texts for word in words(text)), _MOST_WORDS))
    letters = sum(map(len, met))
    scripts = Counter(_script(letter) for letter in "".join(met))
    foreign = {script: count for script, count in scripts.items() if script != "LATIN"}
    if letters and 2 * sum(foreign.values()) > letters:
        # Japanese is written with Chinese characters too, but never with them alone.
        kana = foreign.get("HIRAGANA", 0) + foreign.get("KATAKANA", 0)
        commonest = "HIRAGANA" if 10 * kana > letters else max(foreign, key=lambda script: foreign[script])
        return _SCRIPTS.get(commonest, commonest)
    hits = {code: sum(word in common for word in met) for code, common in _WORDS.items()}
    found = max(hits, key=lambda code: hits[code])
    if hits[found] < max(_FEWEST_HITS, _LEAST_SHARE * len(met)):
        return None
    if found != "en" and hits[found] < _CLEARLY * hits["en"]:
        return None
    return found


def language_name(code: str) -> str:
    """Return the name of what :func:`language_of` returns, for people."""
    return _NAMES.get(code, f"a language in {code.title()} letters" if code.isupper() else repr(code))


def check_language(cues: Iterable[Cue], embed: Embedder, language: str | None = None) -> None:
    """Refuse narration in a language that the embedder does not know.

    Parameters
    ----------
    cues : iterable of Cue
        The transcript.
    embed : Embedder
        What is to compare it with the steps.
    language : str, optional
        The code of the language spoken, if it is known; by default it is found out, as far as that can be told.

    Raises
    ------
    InputError
        The message names the language and what to do.
    """
    if not embed.languages:
        return
    spoken = None if language is None else language.lower().replace("_", "-").partition("-")[0]
    spoken = spoken or language_of(cue.text for cue in cues)
    if spoken is not None and spoken not in embed.languages:
        known = " and ".join(map(language_name, embed.languages))
        told = "" if language is not None else f" (if it is {known} after all, say --language {embed.languages[0]})"
        hint = f"name one for this language, such as --embedder st:paraphrase-multilingual-MiniLM-L12-v2{told}"
        raise InputError(
            f"the narration is in {language_name(spoken)}, but the embedder {embed.name} knows {known}: {hint}"
        )


def _script(letter: str) -> str:
    return unicodedata.name(letter, "LATIN").split(" ", 1)[0].split("-", 1)[0]
