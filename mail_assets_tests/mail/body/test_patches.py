"""Diffs in bodies."""

from mail_assets.mail.body.segments import segment_body
from mail_assets_tests.cases import cases
from mail_assets_tests.mail.kinds import letters

UNIFIED = "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@ fn\n-- \n+b\n c\n"


@cases("body, expected", {
    "a -- inside a diff is code": (f"x\n{UNIFIED}not patch", "tppppppt"),
    "git's signature below one": (f"{UNIFIED}-- \n2.25.1", "ppppppss"),
    "git headers": (f"diff --git a/f b/f\nindex 01ab..23cd 100644\n{UNIFIED}", "pppppppp"),
    "no newline at the end": (
        "--- a/f\n+++ b/f\n@@ -0,0 +1 @@\n+x\n\\ No newline at end of file\nme",
        "pppppt",
    ),
    "a translated note below one": (
        f"@@ -1 +1 @@\n {'long ' * 14}\n\\ Kein Zeilenumbruch am Dateiende.\nme",
        "pppt",
    ),
    "wrapped before a word with diff": (
        f"@@ -1,3 +1,3 @@\n a\n-{'long ' * 14}\ndifferent\n+b\n c\nme",
        "ppppppt",
    ),
    "wrapped": (f"@@ -1,3 +1,3 @@\n a\n-{'long ' * 14}\nwrapped by the mailer\n+b\n c\nme",
                "ppppppt"),
    "broken off": ("@@ -1,9 +1,9 @@\n a\n-b\nMy point is\nthis", "ppptt"),
    "context diff": (
        "*** a/f\tdate\n--- b/f\tdate\n*************** fn(int)\n*** 1,2 ****\n! x\n  y\n"
        "--- 1,2 ----\n! z\n  y\nprose",
        "pppppppppt",
    ),
    "context diff, only deletions": (
        "***************\n*** 1,2 ****\n- x\n  y\n--- 1 ----\n\nprose",
        "ppppptt",
    ),
    "context diff, only additions": (
        "***************\n*** 1 ****\n--- 1,2 ----\n  y\n+ x\nprose",
        "pppppt",
    ),
    "normal diff": ("diff -c -r1.1 f\n3c3,4\n< old\n---\n> new\n> newer\nprose", "ppppppt"),
    "Index: in prose": ("Index: the subject of it\nprose", "tt"),
    "diff in prose": ("diff -u shows nothing\nprose", "tt"),
    "binary": ("diff --git a/x b/x\nGIT binary patch\nliteral 3\nKcmZ\n\nliteral 0\nHcmV\n\nme",
               "ppppppppt"),
    "many files without a diff": (
        "Binary files a and b differ\n" + "diff -r a b\n" * 30 + "@@ -1 +1 @@\n-a\n+b\nme",
        "t" + "p" * 33 + "t",
    ),
    "git without a hunk": ("Index: x\ndiff --git a/x b/x\nold mode 100644\nme", "tppt"),
    "a quoted diff is a quote": ("> @@ -1 +1 @@\n> -a\n> +b\nme", "qqqt"),
    "unmarked too": (f"Top.\n-----Original Message-----\nFrom: A\n{UNIFIED}", "taaqqqqqq"),
    "a normal diff's marks are no quote marks": (
        "Top.\n-----Original Message-----\nFrom: A\n3c3\n< a\n---\n> b\nold",
        "taaqqqqq",
    ),
    "diffstat": ("why\n---\n src/f.c | 4 ++--\n 1 file changed, 2 insertions(+)\n"
                 " create mode 100644 src/f.c\n\n" + UNIFIED, "tppppt" + "p" * 6),
    "a table's numbers": (" a | b\n---+---\n x | 12\n y | 1\n(2 rows)", "ttttt"),
    "context diff whose halves end in a blank line": (
        "***************\n*** 1,5 ****\n  a\n! b\n  c\n  d\n\n--- 1,5 ----\n"
        "  a\n! B\n  c\n  d\n\n"
        "prose",
        "p" * 13 + "t",
    ),
    "a blank line too many": (
        "***************\n*** 1,3 ****\n  a\n! b\n\n\n--- 1,3 ----\n  a\n! B\n\n\nprose",
        "p" * 10 + "tt",
    ),
    "halves left out": ("***************\n*** 7,9 ****\n  a\n- b\n  c\n--- 7,8 ----\n"
                        "***************\n*** 19,20 ****\n--- 18,20 ----\n  y\n+ x\n  z\nprose",
                        "p" * 12 + "t"),
    "context diff broken off": (
        "***************\n*** 1,9 ****\n  a\n! b\n\nThe rest was cut off.\nprose",
        "ppppttt",
    ),
    "a normal diff ends where it says, quotes may follow": (
        "12a13,14\n> one\n> two\n> a quote of somebody\nprose",
        "pppqt",
    ),
    "normal diff, deletion": ("5,6d4\n< one\n< two\nprose", "pppt"),
    "a number and a letter": ("4d\nprose\n> quote", "ttq"),
    "indented": ("see:\n\n    --- a/f\n    +++ b/f\n    @@ -1,3 +1,3 @@\n     a\n"
                 "    -b\n    +c\n\n    my comment", "tt" + "p" * 7 + "t"),
    "indented by a tab": (
        "\tIndex: f\n\t" + "=" * 67 + "\n\t--- f\n\t+++ f\n\t@@ -1 +1 @@\n\t-a\n\t+b\nprose",
        "p" * 7 + "t",
    ),
    "names wrapped by the mailer": (
        f"--- a/{'long/' * 12}\n2026-01-05 10:11\n+++ b/{'long/' * 12}\n2026-01-05 10:12\n"
        "@@ -1 +1 @@\n-a\n+b\nprose",
        "p" * 7 + "t",
    ),
    "header wrapped by the mailer": (
        f"diff -u -r1.1 -r1.2 {'long/' * 9}f.c\nf.c\n--- f.c\n+++ f.c\n"
        "@@ -1 +1 @@\n-a\n+b\nprose",
        "p" * 7 + "t",
    ),
    "Mercurial": ("# HG changeset patch\n# User Jo\n# Date 0 0\n# Node ID 01ab\n"
                  "# Parent  23cd\nmessage\n\n"
                  "diff -r 23cd -r 01ab f\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b",
                  "ppppptt" + "p" * 6),
    "Subversion": (
        "Modified: trunk/f\n"
        + "=" * 67
        + "\n--- trunk/f (revision 1)\n+++ trunk/f (revision 2)\n"
        "@@ -1 +1 @@\n-a\n+b\n",
        "p" * 7,
    ),
    "Modified: in prose": ("Modified: the plan\nprose", "tt"),
    "a count of 5,000 digits": (f"@@ -1,{'9' * 5_000} +1 @@\n-a\n+b", "ttt"),
    "a count of 5,000 digits in a merge": (f"@@@ -1,{'9' * 5_000} -1,2 +1 @@@\n--a", "tt"),
    "a context diff to line 10 ** 5,000": (
        f"***************\n*** 1,{'9' * 5_000} ****\n  a",
        "ttt",
    ),
    "a normal diff to line 10 ** 5,000": (f"1,{'9' * 5_000}c1\n< a", "tt"),
    "quoted-printable, not decoded": ("@@ -1,3 +1,3 @@\n a\n=20\n-b\n+c\nme", "pppppt"),
})  # fmt: skip
def test_diffs_are_found_by_their_arithmetic(body: str, expected: str) -> None:
    assert letters(body.removesuffix("\n")) == expected


def test_patch_of_5_000_lines_is_one_segment() -> None:
    body = "see\n@@ -1,2500 +1,2500 @@\n" + "-old\n" * 2500 + "+new\n" * 2500 + "bye\n"
    assert [part.kind for part in segment_body(body)] == ["text", "patch", "text"]


NAMES = "diff --cc x.c\nindex 1,2..3\n--- a/x.c\n+++ b/x.c\n"


HEAD = "--- a/x.c\n+++ b/x.c\n@@ -1,3 +1,3 @@"


@cases(
    "body, expected",
    {
        "in its function": (
            f"{HEAD} int function_with_a_name(struct\nfoo *bar)\n a\n-b\n+c\n\nThanks!",
            "ppppppppt",
        ),
        "twice": (
            f"{HEAD} static struct device\n*create_it(struct\nfoo *bar)\n a\n-b\n+c\n d\nThanks!",
            "pppppppppt",
        ),
        "in its numbers": (
            "--- a/x.c\n+++ b/x.c\n@@ -1,2\n+1,2 @@ fn\n a\n-b\n+c\nThanks!",
            "pppppppt",
        ),
        "above a stripped line": (f"{HEAD} fn(struct\nfoo)\n\n-b\n+c\n d\nThanks!", "ppppppppt"),
        "a line above a stripped one": (
            f"@@ -1,3 +1,3 @@\n {'long ' * 14}\nwrapped\n\n+c\n-d\nThanks!",
            "pppp" + "ppt",
        ),
        "the last line of a hunk": (
            f"@@ -1 +1 @@\n {'long ' * 14}\nwrapped\n@@ -9 +9 @@\n+c\n-d\nThanks!",
            "ppppppt",
        ),
        "broken off below its head": (f"{HEAD} fn\nMy point is\nthis", "ppptt"),
        "no-break blanks in front": (
            f"@@ -1,4 +1,4 @@\n\xa0{'long ' * 14}\n\xa0\n-b\n+c\n\xa0d\nThanks!",
            "ppppppt",
        ),
        "a line of other blanks": (
            f"@@ -1,3 +1,3 @@\n {'long ' * 14}\n\u2003\n-b\n+c\nThanks!",
            "pppppt",
        ),
        "blanks in a merge": (
            f"@@@ -1,3 -1,3 +1,3 @@@\n  {'long ' * 14}\n\xa0\n- b\n +c\n++d\nThanks!",
            "ppppppt",
        ),
        "cut above another": (
            f"@@ -1,5 +1,5 @@\n {'long ' * 14}\n@@ -9 +9 @@\n+c\n-d\nThanks!",
            "pppppt",
        ),
        "git's": (f"{NAMES}@@@ -1,2 -1,2 +1,3 @@@\n  a\n -b\n +c\n++d\n\nmore", "p" * 9 + "tt"),
        "combined": (
            f"{NAMES.replace('--cc', '--combined')}@@@ -1 -1 +1 @@@ fn\n- a\n -b\n++c\nmore",
            "p" * 8 + "t",
        ),
        "of three parents": (
            "diff --cc x\nmode 100644,100644..100755\nindex 1,2,3..4\n--- a/x\n+++ b/x\n"
            "@@@@ -1,2 -1,1 -1,2 +1,2 @@@@\n   a\n- -b\n+++c\nmore",
            "p" * 9 + "t",
        ),
        "a deleted file": (
            "diff --cc x\nindex 1,2..0\ndeleted file mode 100644,100644\n"
            "--- a/x\n+++ /dev/null\nme",
            "pppppt",
        ),
        "a stripped line": (f"{NAMES}@@@ -1,3 -1,3 +1,3 @@@\n  a\n\n++c\n--b\nmore", "p" * 9 + "t"),
        "broken off": (f"{NAMES}@@@ -1,9 -1,9 +1,9 @@@\n  a\nMy point is\nthis", "p" * 6 + "tt"),
        "a wrapped head": (
            f"{NAMES}@@@ -1,2 -1,2\n+1,2 @@@ fn\n  a\n++b\n--c\nmore",
            "p" * 9 + "t",
        ),
        "a wrapped line": (
            f"@@@ -1 -1 +1 @@@\n  a\n@@@ -9 -9 +9 @@@\n++{'long ' * 14}\nwrapped\n--b\nmore",
            "ppppppt",
        ),
        "indented": ("  @@@ -1 -1 +1 @@@\n  ++a\n  --b\nmore", "pppt"),
        "of one parent": ("@@@ -1 +1 @@@ is no merge\nmore", "tt"),
        "a row of signs": ("@@@ see below @@@\nmore", "tt"),
    },
)
def test_merges_and_wrapped_hunks_are_patches_to_their_end(body: str, expected: str) -> None:
    assert letters(body) == expected
