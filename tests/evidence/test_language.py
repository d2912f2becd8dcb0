"""Languages told apart, English above all, however poor it is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from graph2vid.errors import InputError
from graph2vid.evidence import Cue, read_captions
from graph2vid.evidence.embed import Embedder
from graph2vid.evidence.language import check_language, language_name, language_of

DATA = Path(os.environ.get("GRAPH2VID_DATA", Path(__file__).parents[3] / "shared" / "data"))

SAID = {
    "en": "Hello everybody and welcome back. Today we are going to make a quick soup, so first you want to peel the "
    "carrots and then chop them. Now put the pot on the stove and let it simmer for about ten minutes.",
    "de": "Hallo und willkommen. Heute machen wir eine schnelle Suppe, also schälen wir zuerst die Möhren und dann "
    "schneiden wir sie klein. Jetzt stellen wir den Topf auf den Herd und das wird dann nur noch gekocht.",
    "fr": "Bonjour à tous. Aujourd'hui nous allons faire une soupe, alors on épluche les carottes et on les coupe "
    "dans une assiette. Voilà, c'est prêt, il est temps de mettre la casserole sur le feu avec un peu de sel.",
    "es": "Hola a todos. Hoy vamos a hacer una sopa muy rápida, entonces primero pelamos las zanahorias y las "
    "cortamos en trozos. Ahora ponemos la olla en el fuego y la dejamos por diez minutos, que es lo que "
    "necesita.",
    "pt": "Olá gente. Hoje a gente vai fazer uma sopa muito rápida, então você descasca as cenouras e corta em "
    "pedaços. Agora coloca a panela no fogo e deixa por dez minutos, que não precisa de mais. Isso é bem "
    "fácil.",
    "it": "Ciao a tutti. Oggi facciamo una zuppa che è molto veloce, quindi peliamo le carote e poi le tagliamo. "
    "Adesso mettiamo la pentola sul fuoco con il sale e non abbiamo più niente da fare, ma questo è anche il "
    "bello della cucina.",
    "nl": "Hallo allemaal. Vandaag gaan we een snelle soep maken, dus ik ga eerst de wortels schillen en dan snijd "
    "ik ze in stukjes. Nu zet ik de pan op het vuur en dat moet dan nog even koken, maar niet te lang voor "
    "deze soep.",
    "sv": "Hej och välkomna. I dag ska vi laga en snabb soppa, så jag börjar med att skala morötterna och sen skär "
    "jag dem. Nu ställer vi grytan på spisen och det är allt, men det ska koka lite till här innan den är "
    "klar.",
    "pl": "Cześć wszystkim. Dzisiaj zrobimy szybką zupę, tak że na początku obieramy marchewki, a potem kroimy je "
    "na kawałki. Teraz stawiamy garnek na ogniu i to już jest wszystko, ale nie za długo, bo się rozgotuje.",
    "tr": "Herkese merhaba. Bugün çok güzel bir çorba yapıyoruz, bu yüzden havuçları soyuyoruz ve sonra doğruyoruz. "
    "Şimdi tencereyi ocağa koyuyoruz ve biraz tuz ile pişiriyoruz, daha sonra bu kadar, ama çok değil.",
    "id": "Halo semua. Hari ini kita akan membuat sup yang cepat, jadi wortel ini dikupas lalu dipotong. Sekarang "
    "panci ditaruh di atas kompor dan tunggu sampai matang, tidak lama, dan juga bisa ditambah garam untuk "
    "rasa.",
    "vi": "Xin chào mọi người. Hôm nay mình nấu một món canh, cà rốt thì gọt vỏ và cắt ra như này. Rồi mình cho vào "
    "nồi với một ít muối, để trong mười phút là được, không có gì khó của món này.",
    "ja": "みなさんこんにちは。今日は簡単なスープを作ります。まずにんじんの皮をむいて、小さく切ります。",
    "zh": "大家好，今天我们来做一个很快的汤。首先把胡萝卜去皮，然后切成小块，放进锅里煮十分钟。",
    "ko": "안녕하세요 여러분. 오늘은 간단한 수프를 만들어 보겠습니다. 먼저 당근 껍질을 벗기고 작게 썰어 주세요.",
    "el": "Γεια σας. Σήμερα θα φτιάξουμε μια γρήγορη σούπα. Πρώτα καθαρίζουμε τα καρότα και μετά τα κόβουμε.",
    "th": "สวัสดีทุกคน วันนี้เราจะทำซุปง่ายๆ ก่อนอื่นปอกแครอทแล้วหั่นเป็นชิ้นเล็กๆ",
    "CYRILLIC": "Всем привет. Сегодня мы готовим быстрый суп. Сначала чистим морковь, а потом режем её на кусочки.",
    "ARABIC": "مرحبا بكم جميعا. اليوم سنحضر حساء سريعا. أولا نقشر الجزر ثم نقطعه إلى قطع صغيرة.",
    "DEVANAGARI": "नमस्ते दोस्तों। आज हम एक आसान सूप बनाएंगे। पहले गाजर को छीलकर छोटे टुकड़ों में काट लें।",
}
ENGLISH = Embedder("english", "1", 2, text_function=lambda texts: NotImplemented, languages=("en",))


@pytest.mark.parametrize("code", SAID)
def test_languages_are_told(code: str) -> None:
    assert language_of(SAID[code].split(". ")) == code


@pytest.mark.parametrize(
    "text",
    ["", "♪ ♪ 123", "Hmm. Mmm.", "qx zvv brrt " * 30, "guten Appetit", "whiskey espresso crème de menthe " * 5],
)
def test_what_cannot_be_told_is_not_guessed(text: str) -> None:
    assert language_of([text]) is None


def test_foreign_words_in_english_are_english() -> None:
    assert (
        language_of([SAID["en"], "we add the crème fraîche and a bit of jalapeño, gochujang (고추장) and dashi"])
        == "en"
    )


def cues(text: str) -> tuple[Cue, ...]:
    return tuple(Cue(float(at), at + 1.0, sentence) for at, sentence in enumerate(text.split(". ")))


def test_what_an_embedder_does_not_know_is_refused() -> None:
    check_language(cues(SAID["en"]), ENGLISH)
    check_language(cues("Hmm"), ENGLISH)
    with pytest.raises(
        InputError, match=r"is in German, but the embedder english knows English.*--language en"
    ) as said:
        check_language(cues(SAID["de"]), ENGLISH)
    assert "st:paraphrase-multilingual" in str(said.value) and "\n" not in str(said.value)
    with pytest.raises(InputError, match="in a language in Cyrillic letters"):
        check_language(cues(SAID["CYRILLIC"]), ENGLISH)


def test_whoever_knows_better_says_so() -> None:
    check_language(cues(SAID["de"]), ENGLISH, "en")
    check_language(cues(SAID["de"]), ENGLISH, "en-GB")
    with pytest.raises(InputError, match="is in German, but the embedder english knows English: name") as said:
        check_language(cues(SAID["en"]), ENGLISH, "de")
    assert "after all" not in str(said.value)
    with pytest.raises(InputError, match="'xx'"):
        check_language(cues(SAID["en"]), ENGLISH, "xx")


def test_an_embedder_that_does_not_tell_is_believed() -> None:
    check_language(cues(SAID["ja"]), Embedder("st:any", "1", 2, text_function=lambda texts: NotImplemented))


def test_embedders_that_come_with_the_product_know_english() -> None:
    from graph2vid.evidence import text_embedder

    pytest.importorskip("wordllama", reason="needs graph2vid[text]")
    assert text_embedder("wordllama").languages == ("en",)


def test_every_language_has_a_name() -> None:
    assert all(language_name(code).isascii() and language_name(code) != code for code in SAID)


@pytest.mark.slow
@pytest.mark.parametrize("folder", ["crosstask_narrated", "youcook2_narrated"])
def test_real_english_captions_are_not_refused(folder: str) -> None:
    files = sorted((DATA / folder).rglob("*.vtt"))
    if not files:
        pytest.skip(f"{DATA / folder} is not there (GRAPH2VID_DATA)")
    for file in files:
        check_language(read_captions(file), ENGLISH)
