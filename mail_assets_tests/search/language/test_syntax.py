"""The query language: the meaning of each construct, plain text, and pasted Message-IDs."""

import contextlib
import datetime as dt

import pytest

from mail_assets.search.language.expression import Condition, Field, Period, Text
from mail_assets.search.language.request import Request, RequestError
from mail_assets.search.language.syntax import (
    MAX_IDS,
    ParsedRequest,
    find_pasted_ids,
    parse_request,
)
from mail_assets_tests.sample_corpus import ROOT, Search, ids

#: Ids of mail programs and of RFC 5322, section 3.6.4.
IDS = [
    "20240304090533.GE9223@solheim.example.org",
    "CAH2-Wz=x+y_z%5B1%5D@mail.example.com",
    "a/b/c@x.org",
    "a@b@c.org",
    "Pine.LNX.4.44.0203041234560.1-100000@host",
    "1234.5678@[192.0.2.1]",
    "x@[IPv6:2001:db8::1]",
    "-dash@x.org",
    "$abc!def#ghi&jkl'mno@x.org",
    "=?x{y}~z|^`@x.org",
    "<a@b>"[1:-1],
    "ü@bücher.example",
    "a..b@x",
]


@pytest.mark.parametrize("wanted", IDS)
@pytest.mark.parametrize("form", ["{}", "<{}>", " <{}> ", "mid:{}", "id:<{}>", "Message-ID: <{}>"])
def test_id_is_found_bare_in_brackets_or_after_its_name(wanted: str, form: str) -> None:
    assert find_pasted_ids(form.format(wanted))[0] == wanted


LINKS = [
    "https://lists.example.org/harbor-users/{}/", "https://lists.example.org/harbor-users/{}",
    "https://lists.example.org/r/{}/T/#u", "https://lists.example.org/r/{}/t.mbox.gz",
    "https://lists.example.org/r/{}/raw", "https://www.example.org/message-id/flat/{}",
    "http://mid.example.org/%3C{}%3E", "https://marc.example.org/?i={}",
    "https://lists.example.org/list@lists.example.org/message/{}/",
]  # fmt: skip


@pytest.mark.parametrize("link", LINKS)
def test_id_is_found_in_a_link(link: str) -> None:
    assert find_pasted_ids(link.format("2024.GE9223@x.org"))[0] == "2024.GE9223@x.org"
    assert find_pasted_ids(link.format("2024%2FGE%2b9@x.org"))[0] == "2024/GE+9@x.org"
    assert find_pasted_ids(link.format("2024.GE9223%40x.org"))[0] == "2024.GE9223@x.org"
    assert "a/b@x.org" in find_pasted_ids(link.format("a/b@x.org"))


@pytest.mark.parametrize(
    "text", ["", "@", "@@", "who is tom@x.org", "harbor", "a@", "https://x.org/a/b", "<>", "mid:"]
)
def test_text_without_an_id_gives_none(text: str) -> None:
    assert not [one for one in find_pasted_ids(text) if one != "a@"]


def test_link_has_few_ids() -> None:
    assert len(find_pasted_ids("https://x.org/" + "a@b/" * 500)) <= MAX_IDS


TODAY = dt.date(2024, 3, 31)


def read(query: str) -> ParsedRequest:
    return parse_request(Request(query), TODAY)


def yes(name: str, value: str | Period) -> Condition:
    return Condition(Field(name, value))


def no(name: str, value: str) -> Condition:
    return Condition(Field(name, value), negated=True)


def phrase(text: str) -> Condition:
    return Condition(Text("phrase", text))


def word(text: str) -> Condition:
    return Condition(Text("word", text))


def without(text: str) -> Condition:
    return Condition(Text("phrase", text), negated=True)


def since(year: int, month: int, day: int) -> Period:
    return Period(dt.date(year, month, day), None)


@pytest.mark.parametrize(
    ("query", "text", "clauses"),
    [
        # words rank, but are no conditions
        ("why does it fail", "why does it fail", []),
        ("date:x- after:a-1 before:x.c", "date:x- after:a-1 before:x.c", []),
        ("vacuum or analyze", "vacuum or analyze", []),
        ("(vacuum or analyze) now", "vacuum or analyze now", []),
        # phrases, prefixes, exclusions
        ('a "hot table" b', "a hot table b", [[phrase("hot table")]]),
        ("renew leas*", "renew", [[Condition(Text("prefix", "leas"))]]),
        ("vacuum -full", "vacuum", [[without("full")]]),
        ('vacuum -"lock  table"', "vacuum", [[without("lock table")]]),
        ("x -read-only", "x", [[without("read-only")]]),
        ("x -ann-b@list-c.org", "x", [[without("ann-b@list-c.org")]]),
        ("x -pg-core/heap-am.c", "x", [[without("pg-core/heap-am.c")]]),
        ("x -re-use.", "x", [[without("re-use.")]]),
        ("-leas*", "", [[Condition(Text("prefix", "leas"), negated=True)]]),
        # fields
        ("lease from:ingrid", "lease", [[yes("from", "ingrid")]]),
        ('from:"Ingrid S" lease', "lease", [[yes("from", "Ingrid S")]]),
        ("from:Ana\u0301", "", [[yes("from", "Aná")]]),  # decomposed
        ("from:<a@b.org> x", "x", [[yes("from", "a@b.org")]]),
        ("to:dev@x.org a", "a", [[yes("to", "dev@x.org")]]),
        ("subject:vacuum subject:full", "", [[yes("subject", "vacuum")], [yes("subject", "full")]]),
        ("thread:<a@b> x", "x", [[yes("thread", "a@b")]]),
        ("has:patch is:reply kind:first", "", [
            [yes("kind", "patch")], [yes("kind", "reply")], [yes("kind", "first")]]),
        ("has:attachments", "", [[yes("kind", "attachment")]]),
        ("file:fix.patch x", "x", [[yes("file", "fix.patch")]]),
        ('pre\u0301sident -"re\u0301union"', "président", [[without("réunion")]]),
        ("e\u0301te\u0301*", "", [[Condition(Text("prefix", "été"))]]),
        # days
        ("after:2024-03 x", "x", [[yes("after", since(2024, 3, 1))]]),
        ("after:2y", "", [[yes("after", since(2022, 3, 31))]]),
        ("after:1m", "", [[yes("after", since(2024, 2, 29))]]),
        ("after:10d", "", [[yes("after", since(2024, 3, 21))]]),
        ("before:2w", "", [[yes("before", Period(None, dt.date(2024, 3, 17)))]]),
        ("date:2024-02", "", [[yes("date", Period(dt.date(2024, 2, 1), dt.date(2024, 3, 1)))]]),
        ("date:2023..2024-02", "", [
            [yes("date", Period(dt.date(2023, 1, 1), dt.date(2024, 3, 1)))]]),
        ("date:..2023", "", [[yes("date", Period(None, dt.date(2024, 1, 1)))]]),
        # a message has one list, month or thread: several values are alternatives
        ("list:a list:b c", "c", [[yes("list", "a"), yes("list", "b")]]),
        ("month:2024-03 month:2024-04", "", [[yes("month", "2024-03"), yes("month", "2024-04")]]),
        ("(list:a) (list:b)", "", [[yes("list", "a")], [yes("list", "b")]]),
        # not
        ("-from:tom lease", "lease", [[no("from", "tom")]]),
        ("-has:patch -list:x", "", [[no("kind", "patch")], [no("list", "x")]]),
        ('-subject:"two words"', "", [[no("subject", "two words")]]),
        ("-(from:tom from:ann)", "", [[no("from", "tom")], [no("from", "ann")]]),
        ("-(from:tom has:patch)", "", [[no("from", "tom"), no("kind", "patch")]]),
        ("-(-has:patch)", "", [[yes("kind", "patch")]]),
        ("x -(aa -bb)", "x", [[Condition(Text("word", "aa"), True), phrase("bb")]]),
        # or: between its two neighbours
        ("from:a OR from:b", "", [[yes("from", "a"), yes("from", "b")]]),
        ("from:a or from:b lease", "lease", [[yes("from", "a"), yes("from", "b")]]),
        ("list:x or list:y OR to:z", "", [[yes("list", "x"), yes("list", "y"), yes("to", "z")]]),
        ('"a b" or "c d"', "a b c d", [[phrase("a b"), phrase("c d")]]),
        ('"a b" or from:tom', "a b", [[phrase("a b"), yes("from", "tom")]]),
        ("lease or from:tom", "lease", [[word("lease"), yes("from", "tom")]]),
        ("has:patch or -from:tom", "", [[yes("kind", "patch"), no("from", "tom")]]),
        ("(from:a has:patch) or from:b", "", [
            [yes("from", "a"), yes("from", "b")], [yes("kind", "patch"), yes("from", "b")]]),
        # signs without their other half, doubled or empty, are ignored
        ("or lease", "or lease", []),
        ("lease or", "lease or", []),
        ("a or or b", "a or b", []),
        ("((lease", "lease", []),
        ("lease)) now", "lease now", []),
        ('5" disk', "5 disk", []),
        ('() -() "" x', "x", []),
        ('a -"" lease', "a - lease", []),
        ('(x -"") y', "x - y", []),
        ('x -" " -bad', "x -", [[without("bad")]]),
        # text: quoted, pasted, escaped, without a value, or not of the field's form
        ('"see list:x for it"', "see list:x for it", [[phrase("see list:x for it")]]),
        ("mode:0644", "mode:0644", []),
        ("Error:foo From:tom", "Error:foo From:tom", []),
        ("std::sort http://x.org/a b:c from: x", "std::sort http://x.org/a b:c from: x", []),
        ("file:main.c:12 file:///etc/passwd", "file:main.c:12 file:///etc/passwd", []),
        ("to:127.0.0.1:5432 limit:64MB after:30ms", "to:127.0.0.1:5432 limit:64MB after:30ms", []),
        ("thread:0x7f x.list:y", "thread:0x7f x.list:y", []),
        (r"from\:ingrid \from:tom \-x \or", "from:ingrid from:tom \\-x or", []),
        ("pg_dump -t --schema-only a - b", "pg_dump -t --schema-only a - b", []),
        ("foo(bar) f(a, b)", "foo(bar) f(a, b", []),
        (":-) x*y a* *", ":- x*y a* *", []),
        ("?!", "?!", []),
        ('""', "?", []),
        ("( -", "-", []),
    ],
)  # fmt: skip
def test_query_is_words_that_rank_and_conditions_that_hold(
    query: str, text: str, clauses: list[list[Condition]]
) -> None:
    parsed = read(query)
    assert (parsed.text, [[*clause] for clause in parsed.clauses]) == (text, clauses)


def test_query_sets_mode_order_and_limits() -> None:
    asked = read("x mode:semantic group:message limit:3 offset:6 score:0.5").request
    assert (asked.mode, asked.group, asked.limit, asked.offset, asked.min_score) == (
        *("semantic", "message", 3, 6, 0.5),
    )


def test_option_after_an_empty_exclusion_is_read() -> None:
    assert read('x -"" limit:5').request.limit == 5


@pytest.mark.parametrize("query", ['<"a-b"@x.org>', "<a(b@x.org>", "<-or@x.org> has:patch", "a@b"])
def test_pasted_id_may_hold_any_sign(query: str) -> None:
    assert read(query).message_ids == (query.split()[0].strip("<>"),)


def test_every_word_is_required_when_sorted_by_date() -> None:
    parsed = read('lease "hot table" or renew sort:date')
    assert parsed.clauses == ((word("lease"),), (phrase("hot table"), word("renew")))
    assert not parsed.ranks
    assert read("lease").ranks
    assert not read("from:tom").ranks


def test_request_fields_are_added_to_query_fields() -> None:
    parsed = parse_request(Request("x from:a", sender="b", lists=("d", "e")))
    assert parsed.clauses == (
        (yes("list", "d"), yes("list", "e")),
        (yes("from", "b"),),
        (yes("from", "a"),),
    )


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("x before:tomorrow", "'tomorrow' is no day"),
        ("x date:last-week", "'last-week' is no day"),
        ("-after:two_days_ago x", "'two_days_ago' is no day"),
        ("x month:last-month", "month 'last-month'"),
        ("x has:fun", "kind 'fun': allowed are patch, reply, first, attachment"),
        ('x mode:"0644"', "mode '0644'"),
        ("x mode:fuzzy", "mode 'fuzzy'"),
        ("x sort:size", "sort 'size': allowed are relevance, date, oldest, newest"),
        ("x limit:many", "limit 'many': must be a number"),
        ("x limit:1.5", "limit '1.5': must be a number"),
        ("x limit:0", "limit 0"),
        ("x score:nan", "minimum score nan"),
        ("x month:2024", "month '2024'"),
        ("x after:2024-5", "'2024-5' is no day"),
        ("x after:3000y", "'3000y' is no day"),
        ("x date:..", r"'\.\.' is no"),
        ("x date:2024..2023", "nothing is after 2024-01-01 and before 2024-01-01"),
        ("x after:2024 before:2023", "nothing is after"),
        ("-mode:semantic x", "mode: cannot be excluded"),
        ("x or mode:semantic", "mode: cannot be an alternative"),
        ("x (limit:5)", "limit: cannot be an alternative or stand in parentheses"),
        (" ".join(f"-a{n}" for n in range(65)), "too many conditions: at most 64"),
        (" or ".join(f"({c}a:b {c}1 -x{c}{c})" for c in "abcdefghij"), "too many conditions"),
        ("mode:semantic limit:3", "'mode:semantic limit:3' orders or limits what is found, and"),
        ("sort:oldest", "'sort:oldest' orders .* add a word, or a field such as date:2024"),
        ("x" * 2_001, "the query has 2001 characters, at most 2000"),
        (f'from:"{"x" * 2_001}"', "the from has 2001 characters"),
    ],
)
def test_impossible_query_is_refused(query: str, said: str) -> None:
    with pytest.raises(RequestError, match=said):
        read(query)


@pytest.mark.parametrize("sign", ["(", ")", '"', "-", "or ", "-(", '-"', ":", "\\", "from:", "*"])
def test_signs_alone_are_no_error_however_many(sign: str) -> None:
    for count in (1, 2, 300, 50_000):
        with contextlib.suppress(RequestError):  # too long
            read(sign * count)
            read(f"{sign * count} x")


def test_parentheses_are_read_twenty_deep() -> None:
    def nested(depth: int) -> str:
        return "(" * depth + "from:a" + ")" * depth + " OR from:b"

    assert read(nested(20)).clauses == read(nested(1000)).clauses == read(nested(1)).clauses


def test_filters_in_a_query_reach_the_search(search: Search) -> None:
    one = search("lease from:ingrid list:harbor-users is:reply after:2024-03")
    same = search(
        "lease is:reply", sender="ingrid", lists=("harbor-users",), after=dt.date(2024, 3, 1)
    )
    assert ids(one) == ids(same) != []
    assert ids(search(one.permalink)) == ids(one)


@pytest.mark.parametrize(
    "query", [ROOT, f"<{ROOT}>", f" mid:{ROOT} ", f"https://lists.example.org/harbor-users/{ROOT}/"]
)
def test_pasted_message_id_finds_that_message(search: Search, query: str) -> None:
    response = search(query)
    assert ids(response) == [ROOT]
    assert response.hits[0].chunks


def test_filters_alone_find_the_newest(search: Search) -> None:
    hits = search("list:harbor-dev group:message", limit=5).hits
    times = [hit.sent_at for hit in hits]
    assert len(hits) == 5
    assert times == sorted(times, reverse=True)
    assert all("harbor-dev" in hit.lists for hit in hits)
    later = search("list:harbor-dev group:message", limit=2, offset=3).hits
    assert [hit.message_id for hit in later] == [hit.message_id for hit in hits[3:]]
