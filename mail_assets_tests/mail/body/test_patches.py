"""Diffs in bodies."""

import pytest

from mail_assets.mail.body.segments import segment_body
from mail_assets_tests.mail.kinds import letters

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
        pytest.param(
            "Binary files a and b differ\n" + "diff -r a b\n" * 30 + "@@ -1 +1 @@\n-a\n+b\nme",
            "t" + "p" * 33 + "t",
            id="many files without a diff",
        ),
        pytest.param(
            "Index: x\ndiff --git a/x b/x\nold mode 100644\nme", "tppt", id="git without a hunk"
        ),
        pytest.param("> @@ -1 +1 @@\n> -a\n> +b\nme", "qqqt", id="a quoted diff is a quote"),
        pytest.param(
            f"Top.\n-----Original Message-----\nFrom: A\n{UNIFIED}", "taaqqqqqq", id="unmarked too"
        ),
        pytest.param(
            "Top.\n-----Original Message-----\nFrom: A\n3c3\n< a\n---\n> b\nold",
            "taaqqqqq",
            id="a normal diff's marks are no quote marks",
        ),
        pytest.param(
            "why\n---\n src/f.c | 4 ++--\n 1 file changed, 2 insertions(+)\n"
            " create mode 100644 src/f.c\n\n" + UNIFIED,
            "tppppt" + "p" * 6,
            id="diffstat",
        ),
        pytest.param(" a | b\n---+---\n x | 12\n y | 1\n(2 rows)", "ttttt", id="a table's numbers"),
        pytest.param(
            "***************\n*** 1,5 ****\n  a\n! b\n  c\n  d\n\n--- 1,5 ----\n"
            "  a\n! B\n  c\n  d\n\n"
            "prose",
            "p" * 13 + "t",
            id="context diff whose halves end in a blank line",
        ),
        pytest.param(
            "***************\n*** 1,3 ****\n  a\n! b\n\n\n--- 1,3 ----\n  a\n! B\n\n\nprose",
            "p" * 10 + "tt",
            id="a blank line too many",
        ),
        pytest.param(
            "***************\n*** 7,9 ****\n  a\n- b\n  c\n--- 7,8 ----\n"
            "***************\n*** 19,20 ****\n"
            "--- 18,20 ----\n  y\n+ x\n  z\nprose",
            "p" * 12 + "t",
            id="halves left out",
        ),
        pytest.param(
            "***************\n*** 1,9 ****\n  a\n! b\n\nThe rest was cut off.\nprose",
            "ppppttt",
            id="context diff broken off",
        ),
        pytest.param(
            "12a13,14\n> one\n> two\n> a quote of somebody\nprose",
            "pppqt",
            id="a normal diff ends where it says, quotes may follow",
        ),
        pytest.param("5,6d4\n< one\n< two\nprose", "pppt", id="normal diff, deletion"),
        pytest.param("4d\nprose\n> quote", "ttq", id="a number and a letter"),
        pytest.param(
            "see:\n\n    --- a/f\n    +++ b/f\n    @@ -1,3 +1,3 @@\n     a\n"
            "    -b\n    +c\n\n    my comment",
            "tt" + "p" * 7 + "t",
            id="indented",
        ),
        pytest.param(
            "\tIndex: f\n\t" + "=" * 67 + "\n\t--- f\n\t+++ f\n\t@@ -1 +1 @@\n\t-a\n\t+b\nprose",
            "p" * 7 + "t",
            id="indented by a tab",
        ),
        pytest.param(
            f"--- a/{'long/' * 12}\n2026-01-05 10:11\n+++ b/{'long/' * 12}\n2026-01-05 10:12\n"
            "@@ -1 +1 @@\n-a\n+b\nprose",
            "p" * 7 + "t",
            id="names wrapped by the mailer",
        ),
        pytest.param(
            f"diff -u -r1.1 -r1.2 {'long/' * 9}f.c\nf.c\n--- f.c\n+++ f.c\n"
            "@@ -1 +1 @@\n-a\n+b\nprose",
            "p" * 7 + "t",
            id="header wrapped by the mailer",
        ),
        pytest.param(
            "# HG changeset patch\n# User Jo\n# Date 0 0\n# Node ID 01ab\n"
            "# Parent  23cd\nmessage\n\n"
            "diff -r 23cd -r 01ab f\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b",
            "ppppptt" + "p" * 6,
            id="Mercurial",
        ),
        pytest.param(
            "Modified: trunk/f\n"
            + "=" * 67
            + "\n--- trunk/f (revision 1)\n+++ trunk/f (revision 2)\n"
            "@@ -1 +1 @@\n-a\n+b\n",
            "p" * 7,
            id="Subversion",
        ),
        pytest.param("Modified: the plan\nprose", "tt", id="Modified: in prose"),
        pytest.param(
            "@@ -1,3 +1,3 @@\n a\n=20\n-b\n+c\nme",
            "pppppt",
            id="quoted-printable, not decoded",
        ),
    ],
)
def test_diffs_are_found_by_their_arithmetic(body: str, expected: str) -> None:
    assert letters(body.removesuffix("\n")) == expected


def test_patch_of_5_000_lines_is_one_segment() -> None:
    body = "see\n@@ -1,2500 +1,2500 @@\n" + "-old\n" * 2500 + "+new\n" * 2500 + "bye\n"
    assert [part.kind for part in segment_body(body)] == ["text", "patch", "text"]


NAMES = "diff --cc x.c\nindex 1,2..3\n--- a/x.c\n+++ b/x.c\n"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param(
            f"{NAMES}@@@ -1,2 -1,2 +1,3 @@@\n  a\n -b\n +c\n++d\n\nmore", "p" * 9 + "tt", id="git's"
        ),
        pytest.param(
            f"{NAMES.replace('--cc', '--combined')}@@@ -1 -1 +1 @@@ fn\n- a\n -b\n++c\nmore",
            "p" * 8 + "t",
            id="combined",
        ),
        pytest.param(
            "diff --cc x\nmode 100644,100644..100755\nindex 1,2,3..4\n--- a/x\n+++ b/x\n"
            "@@@@ -1,2 -1,1 -1,2 +1,2 @@@@\n   a\n- -b\n+++c\nmore",
            "p" * 9 + "t",
            id="of three parents",
        ),
        pytest.param(
            "diff --cc x\nindex 1,2..0\ndeleted file mode 100644,100644\n"
            "--- a/x\n+++ /dev/null\nme",
            "pppppt",
            id="a deleted file",
        ),
        pytest.param(
            f"{NAMES}@@@ -1,3 -1,3 +1,3 @@@\n  a\n\n++c\n--b\nmore",
            "p" * 9 + "t",
            id="a stripped line",
        ),
        pytest.param(
            f"{NAMES}@@@ -1,9 -1,9 +1,9 @@@\n  a\nMy point is\nthis",
            "p" * 6 + "tt",
            id="broken off",
        ),
        pytest.param(
            f"{NAMES}@@@ -1,2 -1,2\n+1,2 @@@ fn\n  a\n++b\n--c\nmore",
            "p" * 9 + "t",
            id="a wrapped head",
        ),
        pytest.param(
            f"@@@ -1 -1 +1 @@@\n  a\n@@@ -9 -9 +9 @@@\n++{'long ' * 14}\nwrapped\n--b\nmore",
            "ppppppt",
            id="a wrapped line",
        ),
        pytest.param("  @@@ -1 -1 +1 @@@\n  ++a\n  --b\nmore", "pppt", id="indented"),
        pytest.param("@@@ -1 +1 @@@ is no merge\nmore", "tt", id="of one parent"),
        pytest.param("@@@ see below @@@\nmore", "tt", id="a row of signs"),
    ],
)
def test_merges_are_patches_to_their_end(body: str, expected: str) -> None:
    assert letters(body) == expected


HEAD = "--- a/x.c\n+++ b/x.c\n@@ -1,3 +1,3 @@"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param(
            f"{HEAD} int function_with_a_name(struct\nfoo *bar)\n a\n-b\n+c\n\nThanks!",
            "ppppppppt",
            id="in its function",
        ),
        pytest.param(
            f"{HEAD} static struct device\n*create_it(struct\nfoo *bar)\n a\n-b\n+c\n d\nThanks!",
            "pppppppppt",
            id="twice",
        ),
        pytest.param(
            "--- a/x.c\n+++ b/x.c\n@@ -1,2\n+1,2 @@ fn\n a\n-b\n+c\nThanks!",
            "pppppppt",
            id="in its numbers",
        ),
        pytest.param(
            f"{HEAD} fn(struct\nfoo)\n\n-b\n+c\n d\nThanks!",
            "ppppppppt",
            id="above a stripped line",
        ),
        pytest.param(
            f"@@ -1,3 +1,3 @@\n {'long ' * 14}\nwrapped\n\n+c\n-d\nThanks!",
            "pppp" + "ppt",
            id="a line above a stripped one",
        ),
        pytest.param(
            f"@@ -1 +1 @@\n {'long ' * 14}\nwrapped\n@@ -9 +9 @@\n+c\n-d\nThanks!",
            "ppppppt",
            id="the last line of a hunk",
        ),
        pytest.param(f"{HEAD} fn\nMy point is\nthis", "ppptt", id="broken off below its head"),
        pytest.param(
            f"@@ -1,4 +1,4 @@\n\xa0{'long ' * 14}\n\xa0\n-b\n+c\n\xa0d\nThanks!",
            "ppppppt",
            id="no-break blanks in front",
        ),
        pytest.param(
            f"@@ -1,3 +1,3 @@\n {'long ' * 14}\n\u2003\n-b\n+c\nThanks!",
            "pppppt",
            id="a line of other blanks",
        ),
        pytest.param(
            f"@@@ -1,3 -1,3 +1,3 @@@\n  {'long ' * 14}\n\xa0\n- b\n +c\n++d\nThanks!",
            "ppppppt",
            id="blanks in a merge",
        ),
        pytest.param(
            f"@@ -1,5 +1,5 @@\n {'long ' * 14}\n@@ -9 +9 @@\n+c\n-d\nThanks!",
            "pppppt",
            id="cut above another",
        ),
    ],
)
def test_wrapped_hunks_are_patches_to_their_end(body: str, expected: str) -> None:
    assert letters(body) == expected
