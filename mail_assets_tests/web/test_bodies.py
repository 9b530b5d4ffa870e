"""Bodies as HTML keep all text, separate quotes, and have honest links."""

import re
from html import unescape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mail_assets.mail.body.lines import Segment
from mail_assets.mail.body.segments import segment_body
from mail_assets.mail.message.text_addresses import mask_addresses
from mail_assets.web.bodies import OPEN, find_links, link_text, split_parts

BODY = "Ann wrote:\n> why?\n\nBecause.\n-- \nBob\n"
SEGMENTS = [
    Segment(0, 11, "attribution"),
    Segment(11, 18, "quote"),
    Segment(18, 28, "text"),
    Segment(28, 36, "signature"),
]
HEAD = (
    "-----Original Message-----\nFrom: Bob <bob@example.org>\n"
    "Sent: Monday, July 24, 2000 3:18 PM\nTo: Ann\nSubject: Re: whale\n\n"
)


def text_of(html: str) -> str:
    return unescape(re.sub(r"<[^>]*>", "", html))


def test_attribution_is_part_of_its_quote() -> None:
    parts = [*split_parts(BODY, SEGMENTS, ())]
    assert [(part.kind, part.is_folded, part.lines) for part in parts] == [
        ("quote", False, 2),
        ("text", False, 1),
        ("signature", False, 2),
    ]
    assert text_of(parts[0].html) == "Ann wrote:\n> why?"


@pytest.mark.parametrize(("kind", "mark"), [("quote", "> "), ("signature", "")])
def test_only_a_long_part_is_folded(kind: str, mark: str) -> None:
    for lines, is_folded in ((1, False), (OPEN[kind], False), (OPEN[kind] + 1, True)):
        body = f"{mark}why?\n" * lines
        [part] = split_parts(body, [Segment(0, len(body), kind)], ())
        assert (part.is_folded, part.opening) == (is_folded, "why?")


def test_footer_is_part_of_the_signature() -> None:
    body = "-- \nBob\n____\nThe list\n"
    segments = [Segment(0, 8, "signature"), Segment(8, len(body), "footer")]
    [part] = split_parts(body, segments, ())
    assert (part.kind, part.lines, part.opening) == ("signature", 4, "Bob")


def test_body_without_segments_is_text() -> None:
    parts = [*split_parts("Because.\n\nOf it.\n", [], ())]
    assert [part.kind for part in parts] == ["text"]
    assert text_of(parts[0].html).split() == ["Because.", "Of", "it."]


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("A paragraph of prose that a program wrapped at some column\ngoes on here.", "prose"),
        ("One line.", "prose"),
        ("Thanks,\nBob", "verse"),
        ("- one\n- two", "verse"),
        (f"Reviewed-by: {'Bo ' * 20}\nCo-developed-by: Eve\nCc: Ann", "verse"),
        (f"Link: https://example.org/{'a' * 40}\nFixes: 0123456789ab", "verse"),
        ("1. one\n2. two", "verse"),
        ("name     size\none         1", "columns"),
        ("| a | b |\n| 1 | 2 |", "columns"),
        ("a\tb", "columns"),
        ("def f():\n    return 1", "columns"),
        ("int x = 1;", "columns"),
        ("$ make test", "columns"),
        ("    $ make test", "columns"),
        (">>> 1 + 1\n2", "columns"),
        ("\u250c\u2500\u2510", "columns"),
        ("It ends.  Two blanks follow a sentence of a typist who learnt it so.", "prose"),
        ("Nobody.  Yes", "prose"),
    ],
)
def test_paragraph_has_a_shape(text: str, shape: str) -> None:
    [part] = split_parts(text, [], ())
    assert f'class="text {shape}"' in part.html


def test_columns_are_one_block_with_their_blank_lines() -> None:
    table = "name     size\none         1\n\ntwo         2"
    [part] = split_parts(f"See:\n\n{table}\n\nIt is so.", [], ())
    assert f'<pre class="text columns" dir="auto">{table}</pre>' in part.html


@pytest.mark.parametrize(("columns", "is_reached"), [(76, False), (77, True), (2000, True)])
def test_wide_columns_are_reached_by_keyboard(columns: int, is_reached: bool) -> None:
    for kind, line in (("text", "|" + "x" * (columns - 1)), ("patch", "+" + "x" * (columns - 1))):
        [part] = split_parts(line, [Segment(0, columns, kind)], ())
        assert ('tabindex="0"' in part.html) == is_reached


def test_marks_of_a_quote_can_be_hidden_where_it_flows() -> None:
    body = "> A quoted paragraph that was wrapped by a mail program at\n> a column.\n>> deeper\n"
    [part] = split_parts(body, [Segment(0, len(body), "quote")], ())
    assert part.html.count('<span class="mark">&gt; </span>') == 2
    assert "prose depth-1" in part.html
    assert "prose depth-2" in part.html
    assert text_of(part.html) == body.strip("\n")


def test_quote_marks_stay_if_nothing_else_shows_the_quote() -> None:
    [part] = split_parts("> A paragraph under a mark, in mail that answers none.\n", [], ())
    assert '<span class="mark">' not in part.html
    assert text_of(part.html).startswith("> A paragraph")


@pytest.mark.parametrize(("body", "kinds"), [
    (f"It works.\n\n{HEAD}Thus spake Ann\n> whale\nYou say so.\n", ["text", "quote"]),
    (f"It works.\n\n{HEAD}> whale\n\nI disagree.\n", ["text", "quote", "text"]),
    (f"{HEAD}The mail of Bob.\n> whale\nYou say so.\n", ["quote", "text", "quote", "text"]),
    ("Danke.\n\n-----Urspr\u00fcngliche Nachricht-----\nVon: Bob\n"
     "Gesendet: Montag, 24. Juli 2000 15:18\nAn: Ann\nBetreff: AW: Wal\n\n"
     "Hallo,\n> der Wal\nist gross\n", ["text", "quote"]),
    ("Merci.\n\nDe : Bob\nEnvoy\u00e9 : lundi 24 juillet 2000 15:18\n\u00c0 : Ann\n"
     "Objet : RE: baleine\n\nBonjour\n> la baleine\nest grande\n", ["text", "quote"]),
    (f"ok\n{'_' * 32}\nFrom: Bob\nSent: Monday, July 24, 2000\nTo: Ann\nSubject: x\n\n"
     "Hello\n> a\nb\n", ["text", "quote"]),
    (
        "See.\n\n---------- Forwarded message ----------\nFrom: Bob <b@example.org>\n"
        "Date: Mon, 24 Jul 2000\nSubject: x\nTo: Ann\n\nThe whale.\n> q\nmore\n",
        ["text", "quote", "text", "quote", "text"],
    ),
    ("Thanks.\n\nFrom 0f37d5295324721ee19a3ad40fe58e3002cd9934 Mon Sep 17 00:00:00 2001\n"
     "From: Eric\nDate: Mon, 16 Nov 2020\nSubject: [PATCH] x\n\nThe text.\n", ["text"]),
    ("A header:\nFrom: me\nSubject: it\nDate: the day\n\nwords\n", ["text"]),
])  # fmt: skip
def test_mail_below_a_head_of_outlook_is_a_quote(body: str, kinds: list[str]) -> None:
    parts = [*split_parts(body, segment_body(body), ())]
    assert [part.kind for part in parts] == kinds


def test_urls_and_known_ids_are_links() -> None:
    line = "See (https://example.org/a?b=1). It was <id1@example.org>, not ann@example.org."
    assert [
        (line[start:end], url) for start, end, url in find_links(line, {"id1@example.org"})
    ] == [
        ("https://example.org/a?b=1", "https://example.org/a?b=1"),
        ("id1@example.org", "/message/id1@example.org"),
    ]


def test_url_is_linked_whole_or_not_at_all() -> None:
    url = "https://example.org/list/id1@example.org/"
    html = link_text(f"See <{url}>", {"id1@example.org"})
    assert re.findall(r'<a href="([^"]*)"[^>]*>([^<]*)</a>', html) == [(url, url)]
    hidden = mask_addresses(f"See <{url}>")
    assert "<a" not in link_text(hidden, ())


def test_deceptive_url_is_not_linked() -> None:
    for line in (
        "javascript:alert(1)",
        "data:text/html,x",
        "//evil.example",
        "ftp://example.org",
        "https://good.example@evil.example/",
    ):
        links = [url for _, _, url in find_links(line, ())]
        assert links in ([], ["https://good.example"])


@given(st.text(st.sampled_from("ab:/.@ <>()\u202e&?\"'ht ps\n\t|"), max_size=80))
def test_html_has_the_text_and_no_markup_of_it(text: str) -> None:
    for kind in ("text", "quote", "signature", "patch"):
        parts = [*split_parts(text, [Segment(0, len(text), kind)], {"a@b"})]
        shown = "".join(text_of(part.html) for part in parts).replace("[U+202E]", "\u202e")
        # lines of marks alone are the space between paragraphs
        assert re.sub(r"[\s>]", "", shown) == re.sub(r"[\s>]", "", text)
        tags = {tag for part in parts for tag in re.findall(r"<(\w+)", part.html)}
        assert tags <= {"p", "pre", "a", "span"}
        links = re.findall(r'href="([^"]*)"', "".join(part.html for part in parts))
        assert all(url.startswith(("https://", "http://", "/message/")) for url in links)


def test_lines_with_file_names_are_not_marked_as_changes() -> None:
    patch = (
        "---\n a.c | 2 +-\ndiff --git a/a.c b/a.c\n--- a/a.c\n+++ b/a.c\n@@ -1 +1 @@\n--- x\n+++y\n"
    )
    [part] = split_parts(patch, [Segment(0, len(patch), "patch")], ())
    lines = str(part.html).partition(">")[2].split("\n")
    found = [re.match(r'<span class="(\w+)">', line) for line in lines]
    assert [one[1] if one else "" for one in found] == [
        "", "", "file", "file", "file", "place", "removed", "added",
    ]  # fmt: skip
