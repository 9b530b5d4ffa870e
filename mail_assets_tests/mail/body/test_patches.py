"""Diffs inside bodies."""

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
        pytest.param(" src/f.c | 4 ++--\n 1 file changed", "tt", id="the diffstat is text"),
    ],
)
def test_diffs_are_found_by_their_arithmetic(body: str, expected: str) -> None:
    assert letters(body.removesuffix("\n")) == expected


def test_a_patch_of_5_000_lines_is_one_segment() -> None:
    body = "see\n@@ -1,2500 +1,2500 @@\n" + "-old\n" * 2500 + "+new\n" * 2500 + "bye\n"
    assert [part.kind for part in segment_body(body)] == ["text", "patch", "text"]
