import re
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mail_assets.mail.segments import Segment, new_spans, segments

LETTERS = {
    "text": "t",
    "quote": "q",
    "attribution": "a",
    "signature": "s",
    "footer": "f",
    "patch": "p",
}
BROADCAST = "---------------------------(end of broadcast)---------------------------"


def letters(body: str) -> str:
    """One letter for each line of the body."""
    body += "\n"
    return "".join(
        LETTERS[part.kind] * body.count("\n", part.start, part.end) for part in segments(body)
    )


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param(
            "On Mon, 5 Jan 2026, A <a@x> wrote:\n> q1\n\nanswer 1\n> q2\nanswer 2\n-- \nMe\ntel 1",
            "aqttqtsss",
            id="interleaved answers survive",
        ),
        pytest.param(
            "Thanks!\n\nOn Mon, 5 Jan 2026 at 10:11,\nSome Body <a@x>\nwrote:\n\n> all\n> more",
            "ttaaatqq",
            id="attribution over three lines",
        ),
        pytest.param("Am 05.01.2026 um 10:11 schrieb X:\n> alt\nneu", "aqt", id="German"),
        pytest.param(
            "Le lun. 5 janv. 2026 à 10:11, X <x@y> a écrit :\n> vieux\nneuf", "aqt", id="French"
        ),
        pytest.param(
            "Le lun. 5 janv. 2026 à 10:11, X <x@y> a\nécrit\xa0:\n> vieux",
            "aaq",
            id="French, wrapped",
        ),
        pytest.param(
            "X <x@y> 于2026年1月5日周一 10:11写道：\n> 旧\n新", "aqt", id="Chinese, Gmail"
        ),
        pytest.param("在 2026年1月5日，10:11，X <x@y> 写道：\n\n> 旧", "atq", id="Chinese, Apple"),
        pytest.param("Some Body <a@x> writes:\n> old\nnew", "aqt", id="name first"),
        pytest.param('"Some Body" <a@x.example>\nwrote:\n> old', "aaq", id="name first, wrapped"),
        pytest.param("On Mon I wrote: nothing is quoted here\nreally", "tt", id="nothing quoted"),
        pytest.param(
            "Hi\nOn 3 May Tom wrote a patch for this\nand it works", "ttt", id="prose like it"
        ),
        pytest.param(
            "Top.\n\nAm 05.01.2026 um 10:11 schrieb X:\nunmarked\nmore",
            "ttqqq",
            id="unmarked quote",
        ),
        pytest.param(
            "Am 05.01.2026 um 10:11 schrieb X:\nunmarked\n> marked\nmine",
            "ttqt",
            id="but marks below",
        ),
        pytest.param(
            "On 5 Jan 2026 X wrote:\nnot a top post\nso all stays", "ttt", id="but no text above"
        ),
        pytest.param(">> a\n> > b\nJD> c\n  > d\nme", "qqqqt", id="quote marks"),
        pytest.param("psql> select 1;\nSQL> select 2\n", "ttt", id="prompts quote nobody"),
        pytest.param("a->b > c\nif a>b\nx => y", "ttt", id="a > inside a line"),
        pytest.param(
            "see\n>>> import os\n>>> os.sep\n'/'", "tttt", id="a Python session is no quote"
        ),
        pytest.param("> x\n>>> import os\nme", "qqt", id="deep quotes among others"),
        pytest.param("me\n>From my side\nno", "ttt", id=">From escapes new text"),
        pytest.param("> he\n>From his side\nme", "qqt", id=">From among quotes"),
        pytest.param("| one\n| two\n| three\nme", "qqqt", id="bars quote in threes"),
        pytest.param("| one\n| two\nme", "ttt", id="two bars do not"),
        pytest.param(
            "Xavier wrote:\n| one\n\nme\n| two\nme", "aqttqt", id="bars under an attribution do"
        ),
        pytest.param(" a | b\n---+---\n 1 | 2\n 3 | 4\n(2 rows)", "ttttt", id="psql table"),
        pytest.param(
            " a | b\n---+---\n   | x\n   | y\n   | z", "ttttt", id="psql table, empty first column"
        ),
        pytest.param("+---+\n| a |\n+---+\n| 1 |\n+---+", "ttttt", id="psql table with border"),
        pytest.param(
            "        QUERY PLAN\n-----------------\n Sort  (cost=1.1..2.2 rows=3 width=4)\n"
            "   ->  Seq Scan on t  (cost=0.0..1.0 rows=3 width=4)\n         Filter: (a > 1)",
            "ttttt",
            id="EXPLAIN plan",
        ),
        pytest.param(
            "Top.\n-----Original Message-----\nFrom: A\nSent: x\nTo: y\nSubject: z\n\nold",
            "tqqqqqqq",
            id="Outlook",
        ),
        pytest.param(
            "Top.\n\nFrom: A <a@x>\nSent: Monday\nTo: B\nSubject: z\n\nold\nold",
            "ttqqqqqqq",
            id="Outlook without a rule",
        ),
        pytest.param(
            "From: A\nSent: x\nTo: y\n> old\nmine", "aaaqt", id="Outlook over marked quotes"
        ),
        pytest.param(
            "-----Original Message-----\nFrom: A\nTo: B\n\nforwarded", "aaatt", id="forwarded"
        ),
        pytest.param(
            "here\n\nFrom 0123456789abcdef Mon Sep 17 00:00:00 2001\nFrom: A\nDate: x\n"
            "Subject: [PATCH] y\n\nreason",
            "tttttttt",
            id="git format-patch is text",
        ),
        pytest.param("hi\n-- \nMe\n\n-- \nlist sig", "tsssss", id="two signatures"),
        pytest.param("hi\n-- \nMe\n> quoted below\nanswer", "tssqt", id="signature up to a quote"),
        pytest.param("hi\n--\nMe", "tss", id="signature without the space"),
        pytest.param("hi\n--\n" + "text\n" * 20, "t" * 23, id="-- far from the end is none"),
        pytest.param("hi\n-- \n" + "text\n" * 60, "t" * 63, id="a long signature is none"),
        pytest.param(
            "create table a();\n--\n-- Name: b\n--\ncreate table b();",
            "ttttt",
            id="SQL comment block",
        ),
        pytest.param("select 1; -- one\n-- foo\nselect 2;", "ttt", id="SQL comment"),
        pytest.param(
            "hi\n-- \n-- \n" + BROADCAST + "\nTIP 4: x", "tssff", id="empty signature over a footer"
        ),
        pytest.param(
            f"hi\n{BROADCAST}\nTIP 5: Have you checked our FAQ?\n\n  https://example.org/faq\n",
            "tfffft",
            id="pgsql TIP with a link",
        ),
        pytest.param(
            f"hi\n{BROADCAST}\nTIP 4: x\n\nanswer below", "tfftt", id="text below a footer stays"
        ),
        pytest.param(
            "hi\n-- \nSent via pgsql-x mailing list (pgsql-x@example.org)\nTo make changes:\nhttp://x",
            "tsfff",
            id="majordomo",
        ),
        pytest.param(
            "hi\n" + "_" * 47 + "\nfoo mailing list\nfoo@lists.example.org\nhttps://x",
            "tffff",
            id="Mailman 2",
        ),
        pytest.param(
            "hi\n" + "_" * 47 + "\nfoo mailing list -- foo@lists.example.org\nTo unsubscribe",
            "tfff",
            id="Mailman 3",
        ),
        pytest.param(
            "please send it to\nthe mailing list\nand wait",
            "ttt",
            id="prose that ends like a footer",
        ),
        pytest.param("a\n" + "_" * 40 + "\nb", "ttt", id="a rule is no footer"),
        pytest.param(
            "hi\n-- \nMe\n-------------- next part --------------\nscript",
            "tssft",
            id="pipermail part",
        ),
        pytest.param(
            "hi\n--------- next part ---------\nAn HTML attachment was scrubbed...\nURL: x",
            "tfff",
            id="pipermail scrubbed part",
        ),
        pytest.param("ok\n\nSent from my phone\n", "ttst", id="mobile"),
        pytest.param("it was\nsent from my server to\nthe client", "ttt", id="prose like mobile"),
        pytest.param(
            "-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA1\n\nreal\n"
            "-----BEGIN PGP SIGNATURE-----\nabc\n-----END PGP SIGNATURE-----",
            "ssstsss",
            id="clear-signed",
        ),
        pytest.param(
            "-----BEGIN PGP SIGNATURE-----\n" + "text\n" * 5, "s" + "t" * 6, id="armour without end"
        ),
        pytest.param("> only\n> quote", "qq", id="all quote"),
        pytest.param("a\r\n> b\r\nc\r", "tqt", id="carriage returns"),
    ],
)
def test_lines_are_of_these_kinds(body: str, expected: str) -> None:
    assert letters(body) == expected


UNIFIED = "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@ fn\n-- \n+b\n c\n"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param(f"x\n{UNIFIED}not patch", "tppppppt", id="a -- inside a diff is code"),
        pytest.param(f"{UNIFIED}-- \n2.25.1", "ppppppss", id="git's signature below one"),
        pytest.param(
            f"diff --git a/f b/f\nindex 01ab..23cd 100644\n{UNIFIED}", "pppppppp", id="git headers"
        ),
        pytest.param(
            "--- a/f\n+++ b/f\n@@ -0,0 +1 @@\n+x\n\\ No newline at end of file\nme",
            "pppppt",
            id="no newline at the end",
        ),
        pytest.param(
            f"@@ -1,3 +1,3 @@\n a\n-{'long ' * 14}\nwrapped by the mailer\n+b\n c\nme",
            "ppppppt",
            id="wrapped",
        ),
        pytest.param("@@ -1,9 +1,9 @@\n a\n-b\nMy point is\nthis", "ppptt", id="broken off"),
        pytest.param(
            "*** a/f\tdate\n--- b/f\tdate\n*************** fn(int)\n*** 1,2 ****\n! x\n  y\n"
            "--- 1,2 ----\n! z\n  y\nprose",
            "pppppppppt",
            id="context diff",
        ),
        pytest.param(
            "***************\n*** 1,2 ****\n- x\n  y\n--- 1 ----\n\nprose",
            "ppppptt",
            id="context diff, only deletions",
        ),
        pytest.param(
            "***************\n*** 1 ****\n--- 1,2 ----\n  y\n+ x\nprose",
            "pppppt",
            id="context diff, only additions",
        ),
        pytest.param(
            "diff -c -r1.1 f\n3c3,4\n< old\n---\n> new\n> newer\nprose", "ppppppt", id="normal diff"
        ),
        pytest.param("Index: the subject of it\nprose", "tt", id="Index: in prose"),
        pytest.param("diff -u shows nothing\nprose", "tt", id="diff in prose"),
        pytest.param(
            "diff --git a/x b/x\nGIT binary patch\nliteral 3\nKcmZ\n\nliteral 0\nHcmV\n\nme",
            "ppppppppt",
            id="binary",
        ),
        pytest.param("> @@ -1 +1 @@\n> -a\n> +b\nme", "qqqt", id="a quoted diff is a quote"),
        pytest.param(
            f"Top.\n-----Original Message-----\nFrom: A\n{UNIFIED}", "tqqqqqqqq", id="unmarked too"
        ),
        pytest.param(" src/f.c | 4 ++--\n 1 file changed", "tt", id="the diffstat is text"),
    ],
)
def test_diffs_are_found_by_their_arithmetic(body: str, expected: str) -> None:
    assert letters(body.removesuffix("\n")) == expected


def test_a_patch_of_5_000_lines_is_one_segment() -> None:
    body = "see\n@@ -1,2500 +1,2500 @@\n" + "-old\n" * 2500 + "+new\n" * 2500 + "bye\n"
    assert [part.kind for part in segments(body)] == ["text", "patch", "text"]


def test_an_empty_body_has_no_segments_and_a_quote_no_new_text() -> None:
    assert segments("") == []
    body = "> a\n\n> b\n"
    assert new_spans(body, segments(body)) == []


def test_new_text_is_cited_by_character() -> None:
    body = "> \U0001f44d\nx\u2028漢e\u0301y\n> b\n\x0cz"
    parts = segments(body)
    assert parts == [
        Segment(0, 4, "quote"),
        Segment(4, 11, "text"),
        Segment(11, 15, "quote"),
        Segment(15, 17, "text"),
    ]
    assert [body[start:end] for start, end in new_spans(body, parts)] == [
        "x\u2028漢e\u0301y\n",
        "\x0cz",
    ]


LINES = st.sampled_from(
    [
        "", " ", "text", "> quote", ">From x", ">>> x", "JD> x", "| bar", " a | b", "-- ", "--",
        "On Mon, 5 Jan 2026, A wrote:", "A <a@x>", "wrote:", "From: A", "Sent: B", "To: C",
        "-----Original Message-----", "_" * 40, "foo mailing list", BROADCAST, "https://x.example",
        "@@ -1,3 +1,2 @@", "--- a", "+++ b", "-x", "+y", "*** 1,3 ****", "--- 1,2 ----", "*" * 15,
        "diff --git a/b a/b", "3c3", "< a", "Sent from my phone", "GIT binary patch", "literal 3",
        "-----BEGIN PGP SIGNATURE-----", "-----END PGP SIGNATURE-----", "a\r", "\u2028",
        "\U0001f44d\x85",
    ]
)  # fmt: skip
BODIES = st.one_of(st.text(max_size=200), st.lists(LINES, max_size=40).map("\n".join))


@given(BODIES)
@settings(deadline=None, max_examples=200)
def test_segments_cover_the_body_and_end_at_line_ends(body: str) -> None:
    parts = segments(body)
    assert [part.start for part in parts] == [0, *(part.end for part in parts)][: len(parts)]
    assert "".join(body[part.start : part.end] for part in parts) == body
    assert all(body[part.end - 1] == "\n" for part in parts[:-1])
    assert all(left.kind != right.kind for left, right in pairwise(parts))
    assert {part.kind for part in parts} <= set(LETTERS)


@given(BODIES)
@settings(deadline=None, max_examples=100)
def test_lines_that_could_be_nothing_else_are_always_new(body: str) -> None:
    marker = "A sentence of mine, untouched by any rule"
    whole = f"{marker}\n\n{body}"
    spans = new_spans(whole, segments(whole))
    assert re.match(marker, "".join(whole[start:end] for start, end in spans))


@pytest.mark.parametrize(
    "line",
    [
        "On Mon, 5 Jan 2026, A wrote:", "-- ", "_" * 40, "-----BEGIN PGP SIGNATURE-----", "| x",
        "From: A", "> q", ">From ", "@@ -1,9 +1,9 @@", "***************\n*** 1,9 ****", "3c3\n< x",
        "Index: x", "diff -x", "GIT binary patch\nliteral 1", "On", "a" * 500, "", " ",
    ],
)  # fmt: skip
def test_a_monotonous_body_takes_linear_time(line: str) -> None:
    # a rule that looked ahead to the end from each of 20,000 lines would not end here
    body = f"{line}\n" * 20_000
    assert segments(body)[-1].end == len(body)


def test_one_line_of_a_million_characters_takes_linear_time() -> None:
    for unit in ("on ", "-", "_", " ", "wrote ", "<@", "|", ">", "a:", "sent "):
        body = unit * (1_000_000 // len(unit))
        assert segments(body)[-1].end == len(body)
