"""Notes on an answer: words without an index or a message, and fields without a match."""

import pytest

from mail_assets.search.language.request import MODES
from mail_assets_tests.sample_corpus import ROOT, Search, ids

NO_WORDS = "The word index has no"


@pytest.mark.parametrize(
    ("query", "kind"),
    [
        ("to be or not to be", "very common words"),
        ("the", "very common words"),
        ("THE of And", "very common words"),
        ("???", "signs"),
        ("🦆 🦆", "signs"),
        ("-", "signs"),
        ("--- ***", "signs"),
        ("“”", "signs"),
    ],
)
def test_query_without_an_indexed_word_has_a_note(search: Search, query: str, kind: str) -> None:
    found = search(query, mode="fulltext")
    [note] = found.notes
    assert found.hits == ()
    assert note.startswith(f"{NO_WORDS} {kind}")
    assert note.endswith(": add a rarer word.")
    near = search(query, mode="hybrid")
    outcome = "hits are found by meaning alone" if near.hits else "add a rarer word"
    assert near.notes[0] == note.replace("add a rarer word", outcome)
    if query != "“”":  # the query is empty
        [listed] = search(query, sort="oldest").notes
        assert listed.endswith(": they were left out.")


@pytest.mark.parametrize("query", ['""', ' "" ', "?!", "''"])
def test_query_of_signs_is_named_as_it_was_typed(search: Search, query: str) -> None:
    assert search(query).notes[0].startswith(f"{NO_WORDS} signs, as in {query.strip()}: ")


def test_query_by_meaning_alone_has_no_note_on_words(search: Search) -> None:
    assert not any(NO_WORDS in note for note in search("the of and", mode="semantic").notes)


@pytest.mark.parametrize("mode", ["fulltext", "hybrid"])
@pytest.mark.parametrize(
    ("query", "unknown"),
    [
        ("zzgarble", "zzgarble"),
        ("lease zzgarble", "zzgarble"),
        ("Zzgarble, lease xyzzies?", "Zzgarble, xyzzies"),
        ("zz_garble lease", "zz_garble"),
        ("lease worker", ""),
        ("lease/worker", ""),
        ("lease/zzgarble worker", "zzgarble"),
        ("harbor_lease_renew 40P01", ""),
        ("why do jobs run twice", ""),
        ("arbeiten zzgarble", "arbeiten, zzgarble"),
    ],
)
def test_words_that_no_message_has_are_named(
    search: Search, query: str, unknown: str, mode: str
) -> None:
    notes = [one for one in search(query, mode=mode).notes if one.startswith("No message has ")]
    assert notes == ([f"No message has {unknown}. Is the spelling right?"] if unknown else [])


def test_pasted_text_is_not_looked_up_word_by_word(search: Search) -> None:
    text = " ".join(f"zz{letter}garble" for letter in "abcdefghijk")
    assert search(text, mode="fulltext").notes == ()


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("id:abc", 'No message has the id abc. For the text write "id:abc".'),
        ("id:<no@where.org>", 'No message has the id no@where.org. For the text write "id:no@w'),
        ("thread:no@where.org", "No message has the id no@where.org."),
        ("from:nobody", "No sender has nobody in the name or address."),
        ("from:??? lease", "No sender has ??? in the name or address."),
        ("subject:???!", 'Every hit must have ???! in the subject. For the text write "subject:'),
        ("to:zzgarble", "Every hit must have zzgarble in a receiver."),
        ("file:zz.garble", "Every hit must have zz.garble in the name of an attached file, or"),
    ],
)
@pytest.mark.parametrize("mode", MODES)
def test_field_that_no_message_meets_is_named(
    search: Search, query: str, said: str, mode: str
) -> None:
    found = search(query, mode=mode)
    assert found.hits == ()
    assert [one for one in found.notes if one.startswith(said)]


@pytest.mark.parametrize(
    "query",
    [f"id:{ROOT}", f"id:<{ROOT}>", f"thread:{ROOT}", "from:ingrid", "subject:lease", "lease"],
)
def test_field_that_is_met_has_no_note(search: Search, query: str) -> None:
    assert search(query).notes == ()


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ('"zzgarble nowhere"', 'Nothing was found with "zzgarble nowhere".'),
        ("<20240304.123456@no.where.org>", "No message has the id 20240304.123456@no.where.org:"),
        ("20240304.123456@no.where.org", "No message has the id 20240304.123456@no.where.org:"),
    ],
)
def test_phrase_or_id_that_no_message_has_is_named(search: Search, query: str, said: str) -> None:
    assert search(query).notes[0].startswith(said)


@pytest.mark.parametrize("query", [f"<{ROOT}>", ROOT, "jo@example.org", '"lease"'])
def test_stored_id_and_an_address_are_not_called_missing(search: Search, query: str) -> None:
    assert not [one for one in search(query).notes if "has the id" in one or "found with" in one]


@pytest.mark.parametrize("query", ["-Wall", "NOT zzgarble", "–zzgarble"])
def test_query_of_exclusions_lists_other_mail_with_a_note(search: Search, query: str) -> None:
    found = search(query, limit=3, group="message")
    assert len(found.hits) == 3
    assert found.notes[0].startswith("Only exclusions were asked for")
    assert ids(search(found.permalink)) == ids(found)


@pytest.mark.parametrize(
    ("query", "same"),
    [
        ("lease NOT worker", "lease -worker"),
        ("lease AND worker", '"lease" "worker"'),
        ("lease AND NOT worker", '"lease" -worker'),
        ("lease –worker", "lease -worker"),
        ("“hot table” jobs", '"hot table" jobs'),
        ("subject:(lease)", "subject:lease"),
        ("ｆｒｏｍ：ingrid", "from:ingrid"),
        ("from:(ingrid OR tom) lease", "(from:ingrid OR from:tom) lease"),
    ],
)
def test_signs_find_the_same_in_either_form(search: Search, query: str, same: str) -> None:
    found = ids(search(query, mode="fulltext", limit=50))
    assert found == ids(search(same, mode="fulltext", limit=50)) != []
