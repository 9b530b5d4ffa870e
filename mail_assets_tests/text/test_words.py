"""Words of texts: their places, normal forms, parts and accents, in any surroundings."""

import sys
import unicodedata

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from mail_assets.text.letters import WRAPPED
from mail_assets.text.words import clean_text, find_words, list_forms, remove_accents

PIECES = [
    "word", "getUserName", "9.6.1", "pg_class", "Müller", "İx", "数据库", "백업", "ฐานข้อมูล",
    "हिन्दी",
    "می\u200cخواهم", "ﾊﾞｯｸ", "m²", "½", "ﬁle", "jo@example.org", "a@", "\x1b[31m", "\x1b", "\u00ad",
    "\u200b", "e\u0301", " ", "\n", "-", "/", "'", "\u2019", ".", "@", "\ufeff",
]  # fmt: skip
TEXTS = st.lists(st.sampled_from(PIECES), max_size=8).map("".join) | st.text(max_size=12)


def words(text: str) -> list[str]:
    return [word.text for word in find_words(text)]


@pytest.mark.parametrize(("text", "found"), [
    ("planner/optimizer and/or", "planner optimizer and or"),
    ("see https://zulip.example.org:80/a-b?q=c_d#e", "see https zulip example org 80 a b q c d e"),
    ("~/.pgpass .pgpass pgpass", "pgpass pgpass pgpass"),
    ("pg_stat_statements.track = 'all'", "pg stat statements track all"),
    ("9.6.1 v9.6 8.3beta2 -7.5.0", "9 6 1 v9 6 8 3beta2 7 5 0"),
    ("Don't use O’Brien's", "don t use o brien s"),
    ("data\u200bbase exam\u00adple \ufeffx\u2060y", "database example xy"),
    ("\x1b[31mERROR\x1b[0m: \x1b[1mFo\x1b[31mo", "error foo"),
    ("\x1b]0;title\x07text", "text"),
    ("Ｐｏｓｔｇｒｅｓ９ ﬁle ㎏ Ⅷ", "postgres9 file viii"),
    ("cafe\u0301 Mu\u0308ller", "café müller"),
    ("数据库 用pg_class表中", "数据 据库 用 pg class 表中"),
    ("ﾊﾞｯｸ", "バッ ック"),
    ("40P01エラー", "40p01 エラ ラー"),
    ("백업을 했다", "백업 업을 했다"),
    ("ฐานข้อมูล", "ฐา าน นข้ ข้อ อมู มูล"),
    ("葛\U000e0100城市", "葛城 城市"),
    ("हिन्दी फ़ाइल।", "हिन्दी फ़ाइल"),
    ("<tr model='deferred'>", "tr model deferred"),
    (f"{'a' * 201} b", "b"),
])  # fmt: skip
def test_words_are_cut_whatever_surrounds_them(text: str, found: str) -> None:

    assert words(text) == found.split()


@pytest.mark.parametrize(("text", "forms"), [
    ("getUserName", "get user name"),
    ("HTTPServer", "http server"),
    ("xmlParser2", "xml parser2"),
    ("utf8Name", "utf8 name"),
    ("iPhone", "phone"),
    ("ÄpfelKorb", "äpfel korb apfelkorb"),
    ("می\u200cخواهم", "می خواهم"),
    ("Björn", "bjorn"),
    ("Straße", "strasse"),
    ("Fußgänger", "fussgänger fussganger"),
    ("Œuvré", "oeuvré oeuvre"),
    ("Ħamrun", "hamrun"),
    ("ёлка", "елка"),
    ("اللُغَة", "اللغة"),
    *((text, "") for text in ("URLs", "GHz", "PhD", "40P01", "10GB", "WORD", "Word", "мой")),
])  # fmt: skip
def test_further_forms_stand_at_the_same_position(text: str, forms: str) -> None:
    (word,) = find_words(text)
    assert word.forms == tuple(forms.split())
    assert word.text == words(text.lower())[0].replace("\u200c", "")


@settings(max_examples=200, deadline=None)
@given(TEXTS)
def test_places_point_into_the_text(text: str) -> None:
    found = [*find_words(text)]
    assert [(one.start, one.end) for one in found] == sorted((x.start, x.end) for x in found)
    for one in found:
        assert 0 <= one.start < one.end <= len(text)
        assert one.text in words(text[one.start : one.end])


@settings(max_examples=200, deadline=None)
@given(TEXTS, TEXTS)
def test_word_does_not_depend_on_its_surroundings(before: str, after: str) -> None:
    for separator in (" ", "\n", "/", ".", "_", "-", "(", "="):
        joined = words(f"{before}{separator}{after}")
        if "\x1b" not in f"{before}{after}":
            assert joined == words(before) + words(after)


@settings(max_examples=200, deadline=None)
@given(TEXTS)
def test_words_without_places_are_the_same(text: str) -> None:
    assume(not WRAPPED.search(text))
    with_places = [(word.text, word.forms, word.in_address) for word in find_words(text)]
    assert [(*forms, shown) for forms, shown in list_forms(text)] == with_places


@pytest.mark.parametrize(("text", "listed"), [
    ("明日の会議\n室です", "明日 日の の会 会議 議室 室で です"),
    ("รถ\nไฟ", "รถ ถไ ไฟ"),
    ("会議\n\n・一覧", "会議 一覧"),
    ("회의\n실은", "회의 실은"),
])  # fmt: skip
def test_pair_around_a_wrapped_line_end_is_listed(text: str, listed: str) -> None:
    assert [forms[0] for forms, _ in list_forms(text)] == listed.split()


@settings(max_examples=200, deadline=None)
@given(TEXTS)
def test_normal_form_stays_when_it_is_cut_again(text: str) -> None:
    for word in words(text):
        assert words(word) == [word] or any(map(str.isspace, word))


def test_character_alone_has_no_empty_form() -> None:
    for character in map(chr, range(sys.maxunicode + 1)):
        if unicodedata.category(character)[0] in "LMN":
            forms = [form for word in find_words(character) for form in (word.text, *word.forms)]
            assert not [form for form in forms if not form or set(form) & {"'", "\\", " "}]


def test_parts_of_an_address_are_known() -> None:
    marked = [word.text for word in find_words("Ask jo.doe@a.example, or joe") if word.in_address]
    assert marked == ["jo", "doe", "a", "example"]


def test_accents_are_removed_from_words_of_europe_only() -> None:
    assert [*map(remove_accents, ["đà nẵng", "œuvre", "й", "हिन्दी"])] == [
        "da nang", "oeuvre", "й", "हिन्दी",
    ]  # fmt: skip


def test_names_are_found_in_a_clean_text() -> None:
    assert (
        clean_text("pg\u200b_class ｐｇ＿ｃｌａｓｓ read\u2010only")
        == "pg_class pg_class read-only"
    )
