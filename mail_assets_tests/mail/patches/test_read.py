"""Patches of a mail: their places and their fields."""

import datetime as dt

import pytest

from mail_assets.mail.body.segments import segment_body
from mail_assets.mail.message.body import PatchFile
from mail_assets.mail.patches.patch import FLAGS, MAX_PATCHES, EarlierVersion, MailedPatch
from mail_assets.mail.patches.read import PatchMail, read_patches
from mail_assets_tests.cases import cases

ANN, BOB = "ann@example.org", "Bob <Bob@example.org>"
SHA = "1b" * 20
AT = dt.datetime(2024, 3, 4, 9, tzinfo=dt.UTC)
DIFF = """diff --git a/crane.c b/crane.c
index 01ab23c..23cd45e 100644
--- a/crane.c
+++ b/crane.c
@@ -1,3 +1,4 @@ int lift(void)
 int load;
-int weight;
+int weight_of_load;
+int limit_of_crane;
 int height;
"""
PLAIN = DIFF.partition("index 01ab23c..23cd45e 100644\n")[2]
CONTEXT = """*** crane.c\t2024-03-01 10:00:00
--- crane.c\t2024-03-02 10:00:00
***************
*** 1,3 ****
  int load;
! int weight;
  int height;
--- 1,4 ----
  int load;
! int weight_of_load;
! int limit_of_crane;
  int height;
"""
FAULT = "gzip data is cut off"


def read(
    body: str = "", subject: str = "[PATCH] Limit", *files: tuple[str, ...]
) -> list[MailedPatch]:
    attached = [PatchFile(*file) for file in files]
    answers = subject.startswith("Re:")
    parts = segment_body(body, "Ann", "ann@example.org", answers=answers)
    mail = PatchMail(
        *("a@example.org", subject, "Ann", "ann@example.org", AT, ()), body, parts, attached
    )
    found = read_patches(mail)
    assert [one.place for one in found] == [*range(len(found))]
    assert all({*one.flags} <= FLAGS.keys() for one in found)
    return found


SIGNED = """-----BEGIN PGP SIGNED MESSAGE-----
Hash: SHA256

Why.
- ---
{}
-----BEGIN PGP SIGNATURE-----

iQEzBAEBCAAdFiEE
-----END PGP SIGNATURE-----
"""


def rename(diff: str, old: str, new: str) -> str:
    """Return the diff with other names of its file."""
    return diff.replace("a/crane.c", old).replace("b/crane.c", new)


def message(number: int, title: str, author: str = "Bob <bob@example.org>") -> str:
    """Return a patch as format-patch writes it."""
    return (
        f"From {'a' * 40} Mon Sep 17 00:00:00 2001\nFrom: {author}\n"
        f"Date: Mon, 4 Mar 2024 09:00:00 +0000\nSubject: [PATCH v4 {number}/2] {title}\n\n"
        f"Why.\n---\n crane.c | 2 +-\n 1 file changed, 1 insertion(+), 1 deletion(-)\n\n"
        f"{DIFF}-- \n2.40.1\n\n"
    )


WHOLE = read(f"Why.\n---\n{DIFF}-- \n2.40.1\n")[0].patch_id


@cases("body", {
    "without a line of dashes": f"Why.\n\n{DIFF}",
    "footer": f"Why.\n---\n{DIFF}-- \n2.40.1\n_____\na mailing list\n",
    "with CRLF": f"Why.\n---\n{DIFF}".replace("\n", "\r\n"),
    "other blanks": f"Why.\n{DIFF}".replace("\n int height", "\n int\theight"),
    "diff -u": f"Why.\n{PLAIN}",
    "-p1": rename(PLAIN, "crane.orig/crane.c", "crane/crane.c"),
    "orig": rename(PLAIN, "crane.c.orig", "crane.c"),
    "p0": f"Index: crane.c\n{'=' * 67}\n{rename(PLAIN, 'crane.c', 'crane.c')}",
    "context diff": CONTEXT,
    "prose below": f"Why.\n{DIFF}\nThat was the diff.\n",
    "mnemonic": rename(DIFF, "i/crane.c", "w/crane.c"),
    "clear-signed": SIGNED.format(DIFF.replace("\n-", "\n- -")),
})  # fmt: skip
def test_patch_id_is_that_of_what_is_applied(body: str) -> None:
    [one] = read(body)
    assert one.patch_id == WHOLE
    assert [(file.path, file.added, file.removed) for file in one.files] == [("crane.c", 2, 1)]
    assert len(one.line_digests) == 3


@pytest.mark.parametrize("below", ["", "++int more;\n", "- -int less;\n", "\n++ Ann\n"])
def test_hunk_of_a_combined_diff_ends_by_its_counts(below: str) -> None:
    names = "diff --cc crane.c\nindex 01ab23c,23cd45e..34de56f\n--- a/crane.c\n+++ b/crane.c\n"
    hunk = "@@@ -1,2 -1,2 +1,2 @@@\n  int load;\n- int a;\n -int b;\n++int c;\n"
    [one] = read(f"Why.\n---\n{names}{hunk}{below}")
    assert [(file.added, file.removed) for file in one.files] == [(1, 2)]


@pytest.mark.parametrize("after", [
    "\t2004-02-17 10:00:00", "   2004-02-17 10:00:00", "  Tue Feb 17 10:00:00 2004",
    "     17 Feb 2004 10:00:00 -0000      1.5", "   (revision 12)", "  (working copy)",
])  # fmt: skip
def test_time_or_revision_is_no_part_of_a_file_name(after: str) -> None:
    [one] = read(f"--- a/crane.c{after}\n+++ b/crane.c{after}\n@@ -1 +1 @@\n-int a;\n+int b;\n")
    assert [file.path for file in one.files] == ["crane.c"]


@cases("body, reason", {
    "cut off": (DIFF.replace(" int height;\n", ""), "ends"),
    "blank lost": (DIFF.replace(" int load", "\tint load"), "blank of a line"),
    "head": (DIFF.replace("int lift(void)", "int lift(int a,\nint b)"), "head"),
    "no name": (DIFF.partition("+++ b/crane.c\n")[2], "without the name"),
    "no diff": ("Nothing.", "no diff"),
    "context": (CONTEXT, "context"),
    "wrong count": (DIFF.replace("-1,3 +1,4", "-1,5 +1,9"), "ends"),
})  # fmt: skip
def test_malformed_patch_is_a_row_with_the_reason(body: str, reason: str) -> None:
    [one] = read(body, "[PATCH 1/2] Limit")
    assert reason in one.malformed


FAR = f"{'dock/' * 12}crane.c"
LONG = f"int load; /* {'of the crane ' * 5}~*/"


@cases("body", {
    "a line": DIFF.replace("int load;", LONG),
    "a line of a context diff": CONTEXT.replace("int load;", LONG),
    "the head of a hunk": DIFF.replace("int lift(void)", "int lift(~int load,~int height)"),
    "the names by git": DIFF.replace("crane.c", FAR).replace(".c b/", ".c~b/"),
    "a name and its time": PLAIN.replace("crane.c", f"{FAR}~2024-03-01 10:00:00"),
})  # fmt: skip
def test_patch_is_whole_where_it_was_wrapped(body: str) -> None:
    [one], [known] = read(body.replace("~", "\n")), read(body.replace("~", " "))
    assert (one.line_digests, one.added) == (known.line_digests, known.added)
    assert one.patch_id == known.patch_id
    assert "mended" in one.flags


@pytest.mark.parametrize(
    "body",
    [
        "".join(f"> {line}\n" for line in DIFF.splitlines()),
        "On Monday Bob wrote:\n" + "".join(f"> {line}\n" for line in DIFF.splitlines()) + "Good.",
        "Fine.\n\n-----Original Message-----\nFrom: Bob\nSent: Monday\nTo: Ann\nSubject: Crane\n\n"
        + DIFF,
    ],
)
def test_quoted_patch_is_none(body: str) -> None:
    assert read(body, "Re: [PATCH] Limit") == []


ANSWER = "On Monday, Bob wrote:\n> It may break.\n\nNobody uses it.\n"
QUOTING = f"Hello,\n\n{ANSWER}"
OVERVIEW = "\nAnn (2):\n      Limit\n      Cut\n\n a.c | 2 +-\n 1 file changed, 1 insertion(+)\n"


@cases("body, subject", {
    "by its subject": (f"Better:\n\n{DIFF}", "Re: [PATCH v2] Limit"),
    "by its quote": (f"{ANSWER}\nBetter:\n\n{DIFF}", "[PATCH v2] Limit"),
})  # fmt: skip
def test_patch_in_an_answer_is_one(body: str, subject: str) -> None:
    [one] = read(body, subject)
    assert (one.flags, one.title, one.version) == (("answer",), "Limit", 2)


def test_patch_of_an_answer_may_have_its_own_subject() -> None:
    [one] = read(f"{ANSWER}\n-- >8 --\nSubject: [PATCH] Cut\n\nWhy.\n---\n{DIFF}", "Re: Limit")
    assert (one.flags, one.title) == ((), "Cut")


@cases("subject, body, answers_to, rows", {
    "begins with a quote": ("[PATCH v2] Limit", ANSWER, (), 0),
    "of a part": ("[PATCH 2/3] Limit", ANSWER, (), 0),
    "of a cover letter": ("[PATCH 0/3] Limit", ANSWER, (), 0),
    "quotes below": ("[PATCH 2/3] Limit", QUOTING, ("b@example.org",), 0),
    "cover letter": ("[PATCH v2 0/2] Limit", QUOTING + OVERVIEW, ("b@example.org",), 1),
    "posting with a quote": ("[PATCH] Limit", QUOTING, (), 1),
})  # fmt: skip
def test_answer_without_re_posts_no_patch(
    subject: str, body: str, answers_to: tuple[str, ...], rows: int
) -> None:
    about = ("a@example.org", subject, "Ann", "ann@example.org", AT, answers_to)
    assert len(read_patches(PatchMail(*about, body, segment_body(body)))) == rows


def test_patch_without_a_label_is_one() -> None:
    [one] = read(f"I have a fix:\n\n{DIFF}", "Crane falls over")
    assert (one.flags, one.title) == (("no_label",), "Crane falls over")


@cases("body, title, author", {
    "From": (f"From: {BOB}\n\nWhy.\n---\n", "Limit", "bob@example.org"),
    "Subject": ("\nSubject: [PATCH] Other\nDate: x\n\n", "Other", ANN),
    "scissors": (f"Hello, how about\nthis?\n\n-- >8 --\nFrom: {BOB}\nSubject: Cut\n\nWhy.\n",
                 *("Cut", "bob@example.org")),
    "folded": ("Subject: =?utf-8?q?H=C3=B6he?=\n of the crane\n\n", "Höhe of the crane", ANN),
    "Mercurial": (f"# HG changeset patch\n# User {BOB}\n# Date 0\nCrane: limit\n\nWhy.\n\n",
                  *("Crane: limit", "bob@example.org")),
    "git show": (f"It is this:\n\ncommit {SHA} (HEAD -> main)\nAuthor: {BOB}\nDate:   Mon\n\n"
                 "    Cut\n\n    Why.\n\n", *("Cut", "bob@example.org")),
    "a commit that it mends": (
        f"It was this:\n\ncommit {SHA}\nAuthor: {BOB}\nDate:   Mon\n\n    Cut\n\n"
        "Signed-off-by: Ann\n---\n",
        *("Limit", ANN),
    ),
    "prose": ("From: there the crane falls.\n\n", "Limit", ANN),
})  # fmt: skip
def test_fields_in_the_body_replace_those_of_the_mail(body: str, title: str, author: str) -> None:
    [one] = read(body + DIFF)
    assert (one.title, one.author_email) == (title, author)


@pytest.mark.parametrize("escape", ["", ">"])
def test_several_patches_in_one_body(escape: str) -> None:
    both = (message(1, "One"), message(2, "Two", "Cara <cara@example.org>"))
    found = read("".join(f"{escape}{one}" for one in both), "cranes")
    assert [(one.title, one.part, one.parts, one.version) for one in found] == [
        ("One", 1, 2, 4), ("Two", 2, 2, 4),
    ]  # fmt: skip
    assert [one.author_name for one in found] == ["Bob", "Cara"]


def test_commits_of_git_log_are_patches_of_one_body() -> None:
    log = "".join(
        f"commit {SHA}\nAuthor: Bob <bob@example.org>\nDate:   Mon\n\n    {title}\n\n{DIFF}\n"
        for title in ("One", "Two")
    )
    found = read(f"Both:\n\n{log}", "cranes")
    assert [(one.title, one.author_name, one.file_count) for one in found] == [
        ("One", "Bob", 1), ("Two", "Bob", 1),
    ]  # fmt: skip


@pytest.mark.parametrize(("name", "text", "title", "version"), [
    ("v3-0001-Let-it-float.patch", DIFF, "Let it float", 3),
    ("0001-Let-it-float.patch.txt", DIFF, "Let it float", 1),
    ("v3-0001-Let-it-float.patch.gz", DIFF, "Let it float", 3),
    ("0002-Let-it-float.diff.2.xz", DIFF, "Let it float", 1),
    ("crane-v5.diff", DIFF, "Crane floats", 5),
    ("crane_v5.diff.bz2", DIFF, "Crane floats", 5),
    ("crane.patch", DIFF, "Crane floats", 1),
    ("x.patch", message(1, "Mine"), "Mine", 4),
    ("", CONTEXT, "Crane floats", 1),
])  # fmt: skip
def test_attached_patch_is_named_by_itself_its_file_or_its_mail(
    name: str, text: str, title: str, version: int
) -> None:
    [one] = read("See below.", "Crane floats", (name, text))
    assert (one.source, one.title, one.version) == ("attachment", title, version)
    assert one.patch_id == WHOLE


def test_attached_files_of_a_series_are_numbered() -> None:
    other = DIFF.replace("limit_of_crane", "limit")
    files = (("v2-0001-One.patch", DIFF), ("v2-0002-Two.patch", other), ("notes.diff", "text"))
    found = read("See below.", "Re: cranes", *files)
    assert [(one.part, one.parts) for one in found] == [(1, 2), (2, 2), (None, None)]
    assert found[2].malformed == "no diff"


@pytest.mark.parametrize(("text", "faults"), [
    ("", [FAULT]),
    ("words", [FAULT]),
    (DIFF, [FAULT]),
    (message(1, "One") + message(2, "Two"), ["", FAULT]),
])  # fmt: skip
def test_broken_compressed_file_is_a_malformed_patch(text: str, faults: list[str]) -> None:
    mail = read("See below.", "cranes", PatchFile("crane.patch.gz", text, FAULT))
    assert [one.malformed for one in mail] == faults
    assert [one.kind for one in mail] == ["patch"] * len(faults)


def test_patch_in_body_and_attached_is_one_row() -> None:
    [one] = read(f"Why.\n{DIFF}", "[PATCH] Limit", ("crane.patch", DIFF))
    assert one.source == "body"


@pytest.mark.parametrize(("subject", "files", "kinds"), [
    ("[PATCH v2 0/2] Cranes", (), ["cover"]),
    ("[PATCH 0 of 2] Cranes", (), ["cover"]),
    ("[crane PATCH] Cranes of all kinds", (), ["cover"]),
    ("[PATCH 0/1] Cranes", (("x.patch", DIFF),), ["cover", "patch"]),
    ("[Bug 12] [PATCH] Cranes", (), []),
    ("[Bug 12] [PATCH] Cranes", (("x.patch", DIFF),), ["patch"]),
    ("[Bug 12] [PATCH 0/2] Cranes", (), ["cover"]),
    ("[PATCH 1/2] Crane", (), ["patch"]),
    ("Re: [PATCH 0/2] Cranes", (), []),
    ("[RFC] What about cranes?", (), []),
    ("Ping: [PATCH v2 0/2] Cranes", (), []),
    ("[PATCH, PING] Cranes", (), []),
    ("[PATCH, PING] Cranes", (("x.patch", DIFF),), ["patch"]),
    ("[GIT PULL] Cranes", (), []),
    ("Cranes", (), []),
])  # fmt: skip
def test_cover_letter_is_known(
    subject: str, files: tuple[tuple[str, str], ...], kinds: list[str]
) -> None:
    assert [one.kind for one in read("All about it.", subject, *files)] == kinds


@pytest.mark.parametrize(
    ("subject", "head"),
    [
        ("[tip: crane] Limit", "The following commit has been merged into the crane branch:"),
        ("[crane] 01/01: Limit", "This is an automated email from the hooks/post-receive script."),
        ("crane/lift: Limit", "Repository: crane\nUpdated Branches:\n  refs/heads/lift 1 -> 2"),
        ("[2/2] crane: Limit", "Limit\n\n\nProject: https://x.org/crane\nCommit: https://x.org/1\n"
                               "Tree: https://x.org/2"),
        ("crane: 0123456 - lift", "The branch lift has been updated by jo:"),
        ("Limit", "Author: jo\nDate: 2024-03-04\nNew Revision: 1"),
        ("CVS: x.org: src", "CVSROOT:\t/cvs\nModule name:\tsrc"),
        ("CVS: crane lift.c", "Update of /cvsroot/crane\nIn directory x.org:/tmp"),
        ("[crane] jo closed pull request #1: Limit", "jo closed pull request #1: Limit"),
        ("svn commit: r12 - /crane", "Limit"),
        ("[crane] git commit: Limit", "Limit"),
    ],
)  # fmt: skip
def test_programs_mail_about_a_commit_is_no_patch(subject: str, head: str) -> None:
    assert read(f"{head}\n\n{DIFF}", subject) == []


def test_patch_about_git_commit_is_a_patch() -> None:
    assert read(f"Limit\n\n{DIFF}", "[PATCH] git commit: Limit")


@pytest.mark.parametrize(
    "head", ["Interdiff against v1:", "Range-diff against v1:", "Interdiff:", "diff from v1->v2:"]
)
def test_cover_letter_with_an_interdiff_has_no_patch(head: str) -> None:
    found = read(f"All about it.\n\n{head}\n{DIFF}", "[PATCH v2 0/2] Cranes")
    assert [one.kind for one in found] == ["cover"]
    assert [one.kind for one in read(f"It.\n{DIFF}", "[PATCH 0/1] Cranes")] == ["cover", "patch"]


SHOWN = "0123456789abcdef0123456789abcdef01234567"


@pytest.mark.parametrize(("text", "commits"), [
    (f"commit {SHOWN} (HEAD -> main)\nAuthor: Ann <a@x>\n\n    Limit\n", [SHOWN]),
    ("The branch, main has been updated\n       via  0123456789ab (commit)\n", [SHOWN[:12]]),
    (f"https://git.example.org/crane/commit/{SHOWN}\n", [SHOWN]),
    (f"From {SHOWN} Mon Sep 17 00:00:00 2001\nFrom: Ann <a@x>\nSubject: [PATCH] Limit\n", []),
    ("Just a fix of the facade, made 20240304.\n", []),
])  # fmt: skip
def test_commits_in_the_text_of_a_patch_are_noted(text: str, commits: list[str]) -> None:
    [one] = read(f"{text}\n{DIFF}", "Crane falls over")
    assert [*one.named_commits] == commits
    [file] = read("See the file.", "Crane falls over", ("crane.txt", f"{text}\n{DIFF}"))
    assert [*file.named_commits] == commits


def test_commit_named_above_an_attached_patch_is_noted() -> None:
    [one] = read(f"Pushed as {SHOWN}.", "Re: [PATCH] Limit", ("a.patch", DIFF))
    assert [*one.named_commits] == [SHOWN]


def test_mail_with_too_many_patches_is_cut_with_a_flag() -> None:
    found = read("".join(message(1, f"No {n}") for n in range(MAX_PATCHES + 5)), "cranes")
    assert len(found) == MAX_PATCHES
    assert found[-1].flags == ("patches_capped",)


NOTES = """Why.

Changes since v1 [1]:
- the limit has a name
  and a unit
- rebased

v1 -> v2:
 * first review

Link to v1: https://lists.example.org/r/one%40example.org
- Link to RFC: https://lists.example.org/all/rfc@example.org/
v1: https://lists.example.org/r/nul%00@example.org
v2: <two@example.org>
Previous version:
https://lists.example.org/all/before@example.org/T/#u

This depends on v1 of the series https://lists.example.org/all/other@example.org/
It relies on the previous series https://lists.example.org/all/needed@example.org/
Discussion: https://lists.example.org/all/talk@example.org/
v9: https://lists.example.org/all/later@example.org/
Since v1:
Link: https://lists.example.org/all/below@example.org/
* done
Since v1-Resend:
bare@example.org
* also done

[1]: https://lists.example.org/all/first@example.org/

Signed-off-by: Ann <ann@example.org>
Change-Id: I0123456789abcdef0123456789abcdef01234567
---
base-commit: 0123456789abcdef0123456789abcdef01234567
"""


def test_notes_of_the_author_are_read() -> None:
    [one] = read(f"{NOTES}{DIFF}", "[PATCH v3] Limit")
    assert one.base_commit == "0123456789abcdef0123456789abcdef01234567"
    assert one.change_id == "I0123456789abcdef0123456789abcdef01234567"
    assert {*one.links} == {
        EarlierVersion(1, "one@example.org"),
        EarlierVersion(1, "below@example.org"),
        EarlierVersion(1, "bare@example.org"),
        EarlierVersion(1, "first@example.org"),
        EarlierVersion(2, "two@example.org"),
        EarlierVersion(None, "rfc@example.org"),
        EarlierVersion(None, "before@example.org"),
    }
    assert one.changelog[:4] == (
        "Changes since v1 [1]:", "- the limit has a name", "and a unit", "- rebased",
    )  # fmt: skip
    assert "* first review" in one.changelog
