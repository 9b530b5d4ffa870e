"""Phrases without a hit count as words if the query has words too."""

import pytest

from mail_assets.search.language.request import MODES, Request
from mail_assets.search.language.syntax import loosen, parse_request
from mail_assets_tests.sample_corpus import Search, ids

PASTED = 'ERROR: lease "my/queue" ran out at worker "zzgarble nowhere"'
WORDS = "ERROR: lease my/queue ran out at worker zzgarble nowhere"
FIELDS = "list:harbor-dev -toast after:2024-03"


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("fields", ["", FIELDS])
def test_phrase_without_hits_is_searched_as_words(search: Search, mode: str, fields: str) -> None:
    found = search(f"{PASTED} {fields}", mode=mode, facets=True, explain=True)
    words = search(f"{WORDS} {fields}", mode=mode, facets=True, explain=True)
    assert ids(found) == ids(words) != []
    assert found.facets == words.facets
    assert found.explain is not None
    assert words.explain is not None
    assert found.explain["query"] == words.explain["query"]
    assert (found.without_quotes, words.without_quotes) == (("my/queue", "zzgarble nowhere"), ())
    assert PASTED in found.permalink


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("group", ["conversation", "message"])
def test_pages_without_quotes_follow_one_another(search: Search, mode: str, group: str) -> None:
    whole = search(PASTED, mode=mode, limit=100, group=group)
    pages = [search(PASTED, mode=mode, limit=4, offset=at, group=group) for at in (0, 4, 8)]
    rows = [len(one.best) for one in whole.conversations[:12]] or [1] * 12
    assert [one for page in pages for one in ids(page)] == ids(whole)[: sum(rows)]
    assert {page.without_quotes for page in (whole, *pages)} == {("my/queue", "zzgarble nowhere")}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("query", "options"),
    [
        ('"zzgarble nowhere"', {}),
        ('"zzgarble nowhere", "my/queue"', {}),
        ('"zzgarble nowhere" from:ingrid list:harbor-dev leas*', {}),
        ('lease "zzgarble nowhere" sort:date', {}),
        ("lease zzgarbl*", {}),
        ('lease "zzgarble nowhere" from:nobody', {}),
        # there are hits, but not on this page, or not with this score
        ('lease "ran out"', {"offset": 400}),
        ('lease "ran out"', {"min_score": 1.5}),
    ],
)
def test_phrase_alone_without_hits_stays_empty(
    search: Search, mode: str, query: str, options: dict[str, float]
) -> None:
    found = search(query, mode=mode, **options)
    assert (found.hits, found.without_quotes) == ((), ())


@pytest.mark.parametrize("mode", MODES)
def test_phrase_with_hits_is_required(search: Search, mode: str) -> None:
    strict = search('lease "ran out"', mode=mode, limit=100)
    assert strict.hits
    assert {*ids(search("lease ran out", mode=mode, limit=100))} - {*ids(strict)}
    assert strict.without_quotes == ()
    excluded = search('lease "zzgarble nowhere" -"ran out"', mode=mode, limit=100)
    assert excluded.without_quotes == ("zzgarble nowhere",)
    assert excluded.hits
    assert not {*ids(excluded)} & {*ids(strict)}


@pytest.mark.parametrize(
    ("query", "same"),
    [
        ('a "b c" d', "a b c d"),
        ('a "b" -"c d" e*', 'a b -"c d" e*'),
        ('a ("b c" OR from:x)', "a ((b c) OR from:x)"),
        ('a -(b "c d")', 'a -(b "c d")'),
        ('a "list:b OR -cd"', r"a \list:b \OR \-cd"),
    ],
)
def test_words_replace_their_phrase(query: str, same: str) -> None:
    loose, words = loosen(parse_request(Request(query))), parse_request(Request(same))
    assert (loose.node, loose.clauses) == (words.node, words.clauses)
