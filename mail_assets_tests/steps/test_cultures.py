"""Patches as projects post and commit them: PostgreSQL, git, GCC, FFmpeg, Subversion and others."""

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import pytest

from mail_assets.reading.patch_pages import read_commit_page
from mail_assets.reading.series import read_many
from mail_assets.tables.commits import CommitKey
from mail_assets_tests.crane import COMMITTED, Crane
from mail_assets_tests.world import World, mail

NOW = dt.datetime(2024, 3, 20, tzinfo=dt.UTC)
ANN, BO = "Ann Harbor <ann@example.org>", "Bo Pier <bo@example.org>"
CEM = "Cem Gate <cem@example.org>"
LINES = [f"int load_of_crane_{n} = {n * 7};" for n in range(24)]
FIRST, SECOND = LINES[:12], LINES[12:]
LIFT = "Lift heavier loads"
TITLE = "crane: Lift heavier loads at night"


def diff(lines: Sequence[str] = LINES, head: str = "--- a/crane.c\n+++ b/crane.c") -> str:
    added = "\n".join(f"+{line}" for line in lines)
    return f"{head}\n@@ -1,1 +1,{len(lines) + 1} @@\n top\n{added}\n"


def post(
    name: str,
    subject: str,
    body: str,
    sender: str = ANN,
    day: int = 1,
    answers: str = "",
    files: Mapping[str, str] | None = None,
) -> bytes:
    head = [
        f"From x@example.org Fri Mar {day:2d} 09:00:00 2024",
        f"From: {sender}",
        f"Date: {day:02d} Mar 2024 09:00:00 +0000",
        f"Message-ID: <{name}@example.org>",
        f"Subject: {subject}",
        *([f"References: <{answers}@example.org>"] if answers else []),
    ]
    if files:
        head += ["MIME-Version: 1.0", "Content-Type: multipart/mixed; boundary=cut"]
        parts = [f"Content-Type: text/plain\n\n{body}\n"]
        parts += [
            f"Content-Type: text/x-patch\nContent-Disposition: attachment; filename={file}"
            f"\n\n{text}"
            for file, text in files.items()
        ]
        body = "".join(f"--cut\n{part}\n" for part in parts) + "--cut--"
    return "\n".join([*head, "", body, "", ""]).encode()


def formatted(title: str, lines: Sequence[str], author: str = BO) -> str:
    """Return a file of git format-patch."""
    mbox = "From 0123456789012345678901234567890123456789 Mon Sep 17 00:00:00 2001"
    return f"{mbox}\nFrom: {author}\nSubject: [PATCH] {title}\n\nBecause.\n---\n{diff(lines)}"


class Case(NamedTuple):
    """Mails, the message of the commit ("" without a commit), and the expected results."""

    mails: Sequence[bytes]
    message: str
    links: Sequence[str]
    states: Mapping[str, str]
    author: str = ANN
    lines: Sequence[str] = LINES


EDITED = [*LINES[:9], "int night;", "int day;", *LINES[11:]]
SVN = "Index: crane.c\n" + "=" * 67 + "\n--- crane.c\t(revision 41)\n+++ crane.c\t(working copy)"
PIER = "--- a/pier.c\n+++ b/pier.c"
SCRUBBED = (
    "Lift.\n---\n crane.c | 3 ++-\n-------------- next part --------------\nName: crane.patch\n"
)
REWRITTEN = f"Lift.\n---\n{diff(FIRST, PIER)}"
COOKING = f"""\
* ah/crane (2024-03-02) 1 commit
  (merged to 'next' on 2024-03-03 at 0123456789)
 + {TITLE}

 Will merge to 'master'.
 source: <v1@example.org>
"""

CASES = {
    # Versions stand in the names of attached files, the committer is the author of the commit, and
    # rewrites and squashes what was mailed.
    "PostgreSQL": Case(
        [
            post("v1", "Cranes at night", "Attached.", BO,
                 files={"v1-0001-Lift-heavier-loads.patch": formatted(LIFT, FIRST)}),
            post("v2", "Re: Cranes at night", "A new version is attached.", BO, 2, "v1",
                 files={
                     "v2-0001-Lift-heavier-loads.patch": formatted(LIFT, FIRST),
                     "v2-0002-Document-it.patch": formatted("Document it", SECOND),
                 }),
            post("plan", "Re: Cranes at night", "I plan to push this next week.", CEM, 3, "v2"),
            post("push", "Re: Cranes at night", "Pushed with minor edits, thanks!", CEM, 6, "v2"),
        ],
        "Let cranes work at night.\n\nThey could not.\n\nAuthor: Bo Pier <bo@example.org>\n"
        "Discussion: https://archive.example/m/v1@example.org\nBackpatch-through: 15\n",
        ["applied v2", "discussion v1"],
        {"v1": "superseded", "v2": "applied"},
        CEM,
        EDITED,
    ),
    "git": Case(
        [
            post("v1", f"[PATCH] {TITLE}", f"From: {ANN}\n\nBecause.\n---\n{diff(FIRST)}",
                 "Ann Harbor via Gadget <gadget@example.org>"),
            post("v2", f"[PATCH v2] {TITLE}", f"From: {ANN}\n\nBecause.\n---\n{diff()}",
                 "Ann Harbor via Gadget <gadget@example.org>", 2, "v1"),
            post("queue", f"Re: [PATCH v2] {TITLE}", "Thanks, will queue.", CEM, 3, "v2"),
            post("cook", "What's cooking (Mar 2024, #02)", COOKING, CEM, 4),
        ],
        "",
        [],
        {"v1": "superseded", "v2": "open"},
    ),
    "GCC": Case(
        [
            post("v1", "[PATCH] crane: Lift heavier loads at night [PR4711]",
                 f"Tested on x86_64, OK for trunk?\n\nChangeLog:\n\n\t* crane.c (lift): New.\n\n"
                 f"{diff()}"),
            post("ping", "PING^2: [PATCH] crane: Lift heavier loads at night [PR4711]", "Ping.",
                 day=3),
            post("ok", "Re: [PATCH] crane: Lift heavier loads at night [PR4711]", "OK for trunk.",
                 CEM, 4, "v1"),
            post("push", "Re: [PATCH] crane: Lift heavier loads at night [PR4711]",
                 "Bootstrapped on x86_64, pushed to trunk as r14-99-gabcdef0123.", ANN, 6, "v1"),
        ],
        "crane: Lift heavier loads at night [PR4711]\n\nChangeLog:\n\n\t* crane.c (lift): New.\n",
        ["applied v1"],
        {"v1": "applied"},
    ),
    "FFmpeg": Case(
        [
            post("v1", f"[Crane-devel] [PATCH] {TITLE}", f"---\n{diff()}"),
            post("will", f"Re: [Crane-devel] [PATCH] {TITLE}", "will apply in a day", CEM, 2, "v1"),
            post("push", f"Re: [Crane-devel] [PATCH] {TITLE}", "patchset applied", CEM, 4, "v1"),
        ],
        TITLE,
        ["applied v1"],
        {"v1": "applied"},
    ),
    "Subversion": Case(
        [
            post("v1", "[PATCH] Lift heavier loads", f"[[[\nMore.\n]]]\n\n{diff(head=SVN)}"),
            post("done", "Re: [PATCH] Lift heavier loads", "Committed in r12345, thanks!", CEM, 6,
                 "v1"),
        ],
        "Let cranes work at night.\n\n* crane.c: More.\n\nPatch by: Ann\n",
        ["applied v1"],
        {"v1": "applied"},
        CEM,
    ),
    "Mercurial": Case(
        [
            post("v1", "[PATCH 1 of 1] crane: lift heavier loads",
                 "# HG changeset patch\n# User Ann Harbor <ann@example.org>\n# Date 1709283600 0\n"
                 f"# Node ID 0123456789\ncrane: lift heavier loads\n\n{diff()}"),
            post("q", "Re: [PATCH 1 of 1] crane: lift heavier loads", "Queued for default, thanks!",
                 CEM, 6, "v1"),
        ],
        "crane: lift heavier loads",
        ["applied v1"],
        {"v1": "applied"},
    ),
    "Debian": Case(
        [
            post("v1", "Bug#4711: crane: does not lift at night", "A patch is attached.", BO,
                 files={"night.patch": f"Description: Lift at night\n{diff()}"}),
            post("done", "Bug#4711: crane: does not lift at night",
                 "Applied to git, will be in the next upload.", CEM, 6, "v1"),
        ],
        "Lift at night (Closes: #4711)",
        ["applied v1"],
        {"v1": "applied"},
        CEM,
    ),
    "a commit that was never mailed": Case(
        [post("v1", "[PATCH] pier: Paint it", f"---\n{diff(head=PIER)}", BO)],
        "Stamp 1.2.",
        [],
        {"v1": "open"},
        CEM,
    ),
    "a patch that its maintainer refuses": Case(
        [
            post("v1", f"[PATCH] {TITLE}", f"---\n{diff()}"),
            post("no", f"Re: [PATCH] {TITLE}", "I'm not going to apply this patch.", CEM, 2, "v1"),
        ],
        "",
        [],
        {"v1": "rejected"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_patches_of_a_project_are_followed(world: World, name: str) -> None:
    case, crane = CASES[name], Crane(world)
    crane.made.commit({"crane.c": b"top\n"}, "top", committed=COMMITTED)
    sha = ""
    if case.message:
        text = "\n".join(["top", *case.lines, ""]).encode()
        sha = crane.made.commit(
            {"crane.c": text}, case.message, author=case.author, committed=COMMITTED
        )
    world.load(*case.mails, last="patches")
    world.threads()
    crane.follow()
    world.series()
    assert crane.links(sha) == [*case.links]
    names = list(case.states)
    with world.connect() as connection:
        found = read_many(connection, [f"{one}@example.org" for one in names], NOW)
    assert {
        id.partition("@")[0]: {x.state for change in one.change_of(id) for x in change.versions
                               if x.message_id == id}
        for id, one in found.items()
    } == {one: {state} for one, state in case.states.items()}  # fmt: skip
    mails = {row[0] for row in world.rows("patches", "message_id")}
    assert mails == {f"{one}@example.org" for one in names}


@pytest.mark.parametrize(("subject", "found"), [
    ("Re: [PATCH v2 1/2] crane: know the limit", True),
    ("Re: [PATCH] crane: know the limit of the pier", False),
    ("Re: crane: know the limit", False),
    ("What's cooking: crane: know the limit", False),
])  # fmt: skip
def test_answers_to_a_patch_outside_are_named(world: World, subject: str, found: bool) -> None:
    crane = Crane(world)
    sha = crane.commit()
    world.load(mail("a", "Thanks. Patch applied.", subject=subject, references="<gone@x.org>"))
    crane.follow()
    with world.connect() as connection:
        page = read_commit_page(connection, CommitKey("crane", sha))
    assert page
    _, decision = page
    assert (decision.abstained, decision.message_ids) == (True, [])
    assert [one.message_id for one in decision.naming] == ["a@example.org"] * found
    assert ("only answers to it are" in decision.reason) == found


@pytest.mark.parametrize(
    ("subject", "body", "reason"),
    [
        ("[PATCH 2/3] crane: know the limit", SCRUBBED, "without a diff to compare"),
        ("[PATCH 2/3] crane: know the limit", REWRITTEN, "its diff or date differs"),
        ("crane: know the limit", REWRITTEN, "its diff or date differs"),
        ("crane: know the limit", "Shall it?", ""),
        ("[PATCH] crane: know the limit of the pier", SCRUBBED, ""),
    ],
)
def test_uncertain_mail_with_the_title_is_named(
    world: World, subject: str, body: str, reason: str
) -> None:
    crane = Crane(world)
    sha = crane.commit()
    world.load(post("a", subject, body, BO), last="patches")
    crane.read()
    crane.link()
    with world.connect() as connection:
        page = read_commit_page(connection, CommitKey("crane", sha))
    assert page
    _, decision = page
    assert (decision.abstained, decision.message_ids) == (True, [])
    assert [one.message_id for one in decision.naming] == ["a@example.org"] * bool(reason)
    assert reason in decision.reason


def test_revision_of_subversion_leads_to_mail(world: World) -> None:
    crane = Crane(world)
    end = "git-svn-id: svn://x.org/crane/trunk@1931 b42882b7-edfa-0310-969c-e2dbd0fdcd60"
    sha = crane.commit(f"know the limit\n\n{end}")
    patch = post("p", "[PATCH] Limits", SCRUBBED, BO, day=6)
    said = "Committed, r1931.\n"
    world.load(
        patch,
        post("said", "Re: [PATCH] Limits", said, CEM, day=7, answers="p"),
        post("broken", "r1931 breaks the pier", "It does.\n", BO, day=8),
        post("runs", "Where is my load?", "I have crane 1.0 r1931 here.\n", BO, day=9),
        post("earlier", "Re: Limits", said, CEM, day=1),
        last="patches",
    )
    world.load(post("other", "Re: Piers", said, CEM, day=7), list_name="pier", last="patches")
    crane.read()
    crane.link()
    world.series()
    with world.connect() as connection:
        page = read_commit_page(connection, CommitKey("crane", sha))
    assert page
    _, decision = page
    [thanks] = decision.thanks
    assert (thanks.mail.message_id, thanks.said) == ("said@example.org", said.strip())
    assert (thanks.by_id, thanks.patches) == (True, ("p@example.org",))
    assert [one.message_id for one in decision.naming] == ["broken@example.org"]


@pytest.mark.parametrize(("message", "found"), [
    ("(cherry picked from commit {sha})", True),
    ("commit {sha} upstream.", True),
    ("[ Upstream commit {sha} ]", True),
    ("(backported from commit {short})", True),
    ("(cherry picked from commit 0123456789ab)\n(cherry picked from commit {sha})", True),
    ("(cherry picked from commit 0123456789ab)", False),
    ("See commit {sha}.", False),
])  # fmt: skip
def test_page_of_backport_has_mail_of_its_original(world: World, message: str, found: bool) -> None:
    crane = Crane(world)
    sha = crane.commit()
    text = message.format(sha=sha, short=sha[:10])
    pick = crane.made.commit({"old.c": b"1\n"}, f"crane: old\n\n{text}\n", committed=COMMITTED)
    again = f"crane: older\n\n(cherry picked from commit {pick})\n"
    picks = [pick, crane.made.commit({"old.c": b"2\n"}, again, committed=COMMITTED)]
    world.load(crane.mail("v1", sha), last="patches")
    crane.follow()
    with world.connect() as connection:
        pages = [read_commit_page(connection, CommitKey("crane", one)) for one in picks]
    assert [(one.commit.sha, one.message_ids) for _, one in filter(None, pages)] == [
        (one, ["v1@example.org"] * found) for one in picks
    ]
