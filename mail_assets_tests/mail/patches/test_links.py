"""Links from commits to mail: agreement, late mail, weak evidence, and forgeries."""

import datetime as dt
from collections.abc import Sequence
from typing import Any

import pytest

from mail_assets.mail.patches.commits import NamedMail
from mail_assets.mail.patches.links import (
    ArchivedMail,
    CommitFacts,
    Kind,
    PatchFacts,
    abstains,
    link_commit,
)

NOON = dt.datetime(2024, 3, 4, 12, tzinfo=dt.UTC)
DAY = dt.timedelta(days=1)
LINES = frozenset(range(20))
TITLE = "cranelifttheloadevenly"
ID = "patch-id-of-the-crane"


def commit(**changes: object) -> CommitFacts:
    facts = CommitFacts(
        sha="c0ffee0123",
        title_key=TITLE,
        author_name="Ann Harbor",
        author_email="ann@example.org",
        authored_at=NOON - 2 * DAY,
        committed_at=NOON,
        patch_id=ID,
        paths=frozenset({"crane.c"}),
        lines=LINES,
    )
    return facts._replace(**changes)  # type: ignore[arg-type]


def patch(name: object = "v1", **changes: object) -> PatchFacts:
    facts = PatchFacts(
        message_id=f"{name}@example.org",
        place=0,
        title_key=TITLE,
        author_name="Ann Harbor",
        author_email="ann@example.org",
        sent_at=NOON - 3 * DAY,
        arrived_at=None,
        patch_id=ID,
        paths=frozenset({"crane.c"}),
        lines=LINES,
    )
    return facts._replace(**changes)  # type: ignore[arg-type]


def kinds(facts: CommitFacts, patches: Sequence[PatchFacts], *archived: str) -> list[str]:
    """Return the links as "KIND NAME", best first; archived mails are in the thread "t"."""
    links = link_commit(facts, patches, dict.fromkeys(archived, ArchivedMail("t")))
    return [f"{one.kind} {one.message_id.partition('@')[0]}" for one in links]


OTHER_TEXT = {"patch_id": "another", "lines": frozenset(range(100, 120))}
GITS_ID = "c0ffee0123.1709553600.git.ann@example.org"
EDITED = {"patch_id": "another", "lines": frozenset(range(2, 22))}
STRANGER = {"author_email": "bo@x", "author_name": "Bo Pier"}
SHE = {"author_email": "ann@example.org", "author_name": "Ann Harbor"}
IN_HER_NAME = {**SHE, "is_sender": False, "version": 9}  # "From: Ann Harbor" in Bo's mail


@pytest.mark.parametrize(("facts", "mailed", "found"), [
    ({"is_own": True}, {}, True),
    ({"is_own": True}, EDITED, True),
    ({"is_own": True}, {"sent_at": NOON + 11 * DAY}, False),
    ({"is_own": True}, {"sent_at": NOON + 11 * DAY, "message_id": GITS_ID}, True),
    ({"is_own": True}, {"sent_at": NOON + 20 * DAY, "message_id": GITS_ID}, False),
    ({}, {"sent_at": NOON + 11 * DAY, "message_id": GITS_ID}, False),
    ({"is_own": True}, {"is_sender": False}, False),
    ({"is_own": True}, STRANGER, False),
    ({"is_own": True}, {**EDITED, "title_key": "anothertitle"}, False),
    # somebody else committed it: the mail is a copy
    ({}, {}, False),
])  # fmt: skip
def test_mail_after_the_commit_counts_if_its_author_committed(
    facts: dict[str, Any], mailed: dict[str, Any], found: bool
) -> None:
    later = patch("v2")._replace(**{"sent_at": NOON + 3 * DAY, **mailed})
    assert bool(kinds(commit(**facts), [later])) is found


ANSWER = {"is_answer": True, "sent_at": NOON + DAY / 4, "named_commits": ("c0ffee0",)}


@pytest.mark.parametrize(("mailed", "found"), [
    ({}, True),
    ({"named_commits": ()}, True),
    ({"patch_id": "other context", "title_key": "x"}, True),
    # only a part of it, or much later, or not an answer
    ({"patch_id": "another", "lines": frozenset(range(10))}, False),
    ({"sent_at": NOON + 20 * DAY}, False),
    ({"arrived_at": NOON + 20 * DAY}, False),
    ({"is_answer": False}, False),
    # by somebody else, also in the name of the author
    (STRANGER, False),
    ({"is_sender": False}, False),
])  # fmt: skip
def test_answer_that_shows_the_commit_is_its_discussion(
    mailed: dict[str, Any], found: bool
) -> None:
    answer = patch("answer")._replace(**{**ANSWER, **mailed})
    assert kinds(commit(is_own=True), [answer]) == ["discussion answer"] * found
    assert kinds(commit(), [answer]) == []
    assert kinds(commit(is_own=True), [answer, patch()])[0] == "applied v1"


@pytest.mark.parametrize(("second", "first"), [
    ({}, "v2"),
    ({**STRANGER, "patch_id": ""}, "v1"),
    ({"title_key": "anothertitle"}, "v1"),
])  # fmt: skip
def test_version_without_prefix_is_of_its_repository(second: dict[str, Any], first: str) -> None:
    later = patch("v2", **{"sent_at": NOON - DAY, "version": 2, **second})
    assert kinds(commit(), [patch(in_prefix=True), later])[0] == f"applied {first}"


@pytest.mark.parametrize(
    ("wrong", "found"),
    [
        ({}, True),
        ({"title_key": "anothertitle"}, True),
        ({"title_key": "anothertitle", **STRANGER}, True),
        # edited when it was applied
        (EDITED, True),
        # its subject was edited too
        ({**EDITED, "title_key": "anothertitle"}, True),
        # somebody took it over
        ({**EDITED, **STRANGER}, True),
        # the same author from another address
        ({**OTHER_TEXT, "author_email": "ann@work.example"}, True),
        ({**OTHER_TEXT, "author_email": "list@x", "author_name": "'Ann Harbor' via Crane"}, True),
        # rewritten, under its subject
        (OTHER_TEXT, True),
        # the date of the mail is that of the commit
        ({**OTHER_TEXT, "title_key": "x", "sent_at": NOON - 2 * DAY}, True),
        # so it is with the title, or a part of the lines, under another name and address
        ({**OTHER_TEXT, **STRANGER, "sent_at": NOON - 2 * DAY}, True),
        ({**EDITED, **STRANGER, "title_key": "x", "sent_at": NOON - 2 * DAY}, True),
        # the same by the author, for other files
        (
            {**OTHER_TEXT, "title_key": "x", "sent_at": NOON - 2 * DAY,
             "paths": frozenset({"crane.c", "pier.c", "quay.c"})},
            False,
        ),
        # the title alone, of a change elsewhere
        ({**OTHER_TEXT, "paths": frozenset({"pier.c"})}, False),
        # a stranger's patch with the title and a file
        ({**OTHER_TEXT, **STRANGER}, False),
        # another patch of the author to the same file
        ({**OTHER_TEXT, "title_key": "anothertitle"}, False),
        # the date alone
        ({**OTHER_TEXT, **STRANGER, "title_key": "x", "sent_at": NOON - 2 * DAY}, False),
        # sent after the commit, or with a false date
        ({"sent_at": NOON + 3 * DAY}, False),
        ({"arrived_at": NOON + 30 * DAY}, False),
        ({"arrived_at": NOON + 2 * DAY}, True),
        # after it by another person, who may have copied it
        ({"sent_at": NOON + DAY / 4}, True),
        ({**STRANGER, "sent_at": NOON + DAY / 4}, False),
        ({**STRANGER, "arrived_at": NOON + 2 * DAY}, False),
        # in the author's name, or as an answer that shows the committed diff
        ({"is_sender": False, "sent_at": NOON + DAY / 4}, False),
        ({"is_answer": True, "sent_at": NOON + DAY / 4}, False),
        # it names the commit: git show, git log, a notification
        ({"named_commits": ("1234567", "c0ffee0")}, False),
        ({"named_commits": ("1234567", "c0ffee1")}, True),
    ],
)  # fmt: skip
def test_patch_is_applied_if_enough_agrees(wrong: dict[str, Any], found: bool) -> None:
    assert kinds(commit(), [patch(**wrong)]) == (["applied v1"] if found else [])


FEW = {"patch_id": "another", "lines": frozenset({0, 1})}


@pytest.mark.parametrize(("wrong", "found"), [
    # "crane(1): lift the load evenly", "Lift the load evenly" of "crane: lift the load evenly"
    ({"title_key": "crane1lifttheloadevenly"}, True),
    ({"title_key": "lifttheloadevenly"}, True),
    ({"title_key": "cranelifttheloadevenly2"}, False),
    ({"title_key": "lowertheloadevenly"}, False),
    ({"title_key": "evenly"}, False),
    # the lines of both, under a title of its own, or one line: "}"
    ({"title_key": "anothertitle", "lines": frozenset({0, 1, 2})}, True),
    ({"title_key": "anothertitle"}, False),
    ({"title_key": "lifttheloadevenly", "lines": frozenset({7, 8})}, False),
    ({"title_key": "lifttheloadevenly", "paths": frozenset({"pier.c"})}, False),
    ({"title_key": "lifttheloadevenly", **STRANGER}, False),
])  # fmt: skip
def test_small_patch_of_the_author_needs_its_lines(wrong: dict[str, Any], found: bool) -> None:
    small = commit(lines=frozenset({0, 1, 2}))
    assert kinds(small, [patch(**{**FEW, **wrong})]) == (["applied v1"] if found else [])


@pytest.mark.parametrize(("facts", "found"), [
    # "Fix typo" is weak evidence unless the lines agree
    ({"title_key": "fixtypo"}, False),
    # a title that many commits have, such as that of a release
    ({"is_only": False}, False),
    ({}, True),
])  # fmt: skip
def test_generic_title_needs_lines(facts: dict[str, object], found: bool) -> None:
    facts = {"patch_id": "mine", "lines": frozenset(range(50, 70)), **facts}
    title = str(facts.get("title_key", TITLE))
    got = kinds(commit(**facts), [patch(title_key=title)])
    assert got == (["applied v1"] if found else [])


@pytest.mark.parametrize(("facts", "other", "found"), [
    ({}, OTHER_TEXT, True),
    # "proc.5: tfix": many patches have that title
    ({"title_key": "proc5tfix"}, {**OTHER_TEXT, "title_key": "proc5tfix"}, False),
    ({"is_only": False}, OTHER_TEXT, False),
    ({"is_only": False}, EDITED, True),
    # years later, for another change
    ({}, {**OTHER_TEXT, "sent_at": NOON + 500 * DAY}, False),
])  # fmt: skip
def test_version_needs_a_title_that_says_much_or_lines(
    facts: dict[str, object], other: dict[str, object], found: bool
) -> None:
    title = {"title_key": facts.get("title_key", TITLE)}
    got = kinds(
        commit(**facts), [patch("v2", **title), patch(**{"sent_at": NOON - 9 * DAY, **other})]
    )
    assert got == ["applied v2", *["version v1"] * found]


def test_author_that_a_list_rewrote_is_known_in_the_commit_too() -> None:
    munged = commit(author_name="Ann Harbor via Crane", author_email="crane@lists.example")
    found = patch(**EDITED, title_key="anothertitle")
    assert kinds(munged, [found]) == ["applied v1"]


def test_tiny_patch_of_a_stranger_needs_more_than_an_id() -> None:
    tiny = frozenset({1, 2})
    stranger = patch(lines=tiny, title_key="other", **STRANGER)
    assert kinds(commit(lines=tiny), [stranger]) == []
    assert kinds(commit(lines=tiny), [patch(lines=tiny)]) == ["applied v1"]


@pytest.mark.parametrize(("second", "first"), [
    # the newest of the same text
    ({}, "v2"),
    # the older one is what was applied
    (OTHER_TEXT, "v1"),
    ({**EDITED, "title_key": "anothertitle"}, "v1"),
    # the date decides, also against an equal text
    ({**EDITED, "sent_at": NOON - 2 * DAY}, "v2"),
    # an answer that quotes the whole patch
    ({"is_answer": True}, "v1"),
    # a forged copy that arrived after the commit
    ({"sent_at": NOON - 2 * DAY, "arrived_at": NOON + 40 * DAY}, "v1"),
])  # fmt: skip
def test_version_that_landed_is_first(second: dict[str, object], first: str) -> None:
    later = patch("v2", **{"sent_at": NOON - 2.5 * DAY, "version": 2, **second})
    got = kinds(commit(), [patch(), later])
    assert got[0] == f"applied {first}"
    assert [x for x in got if x.startswith("applied")] == got[:1]


@pytest.mark.parametrize(("dated", "later", "first"), [
    # the maintainer sent a better text, as a version or in an answer: the commit keeps the date
    (EDITED, STRANGER, "later"),
    (EDITED, {**STRANGER, "is_answer": True}, "later"),
    (EDITED, {"patch_id": "other context"}, "later"),
    (OTHER_TEXT, {**STRANGER, **EDITED}, "later"),
    # of one text, the mail with the title, or that the commit names
    ({"title_key": "anothertitle"}, STRANGER, "later"),
    ({}, {**STRANGER, "message_id": "later@named.example"}, "later"),
    # the text was edited after both
    (EDITED, {**STRANGER, **EDITED}, "dated"),
    ({}, STRANGER, "dated"),
    # sent before the mail of that date, or shown after the commit
    (EDITED, {"sent_at": NOON - 3 * DAY}, "dated"),
    (EDITED, {"sent_at": NOON + DAY / 4, "is_answer": True}, "dated"),
])  # fmt: skip
def test_better_text_wins_over_the_date_when_sent_later(
    dated: dict[str, Any], later: dict[str, Any], first: str
) -> None:
    mails = [
        patch("dated", **{"sent_at": NOON - 2 * DAY, **dated}),
        patch("later", **{"sent_at": NOON - DAY, **later}),
    ]
    facts = commit(named=(NamedMail("later@named.example", "Link", False),))
    assert kinds(facts, mails)[0] == f"applied {first}"


APPLIED = {"patch_id": "", "title_key": "x", "paths": frozenset({"trunk/crane.c"})}
CEMS = {"author_name": "cem", "author_email": "cem@svn", "is_own": True}


@pytest.mark.parametrize(("facts", "mailed", "found"), [
    ({}, {}, True),
    ({"lines": frozenset(range(4))}, {"lines": frozenset(range(4))}, True),
    ({"lines": frozenset(range(3))}, {"lines": frozenset(range(3))}, False),
    # edited when it was applied
    ({"lines": frozenset(range(8))}, {"lines": frozenset(range(7))}, False),
    ({}, {"lines": frozenset(range(15))}, True),
    ({}, {"lines": frozenset(range(14))}, False),
    # a change of another file
    ({"lines": LINES - {0}, "paths": frozenset({"pier.c"})}, {}, True),
    ({"lines": LINES - {0, 1, 2}, "paths": frozenset({"pier.c"})}, {}, False),
    # the commit has an author of its own
    ({"is_own": False}, {"lines": frozenset(range(15))}, False),
    # a stranger shows the commit
    ({}, {"sent_at": NOON + DAY / 4}, False),
    ({}, {"arrived_at": NOON + 2 * DAY}, False),
    ({}, {"named_commits": ("c0ffee0",)}, False),
])  # fmt: skip
def test_patch_of_others_is_applied_if_lines_agree(
    facts: dict[str, Any], mailed: dict[str, Any], found: bool
) -> None:
    others = patch(**{**APPLIED, **mailed})
    assert kinds(commit(**{**CEMS, **facts}), [others]) == ["applied v1"] * found


@pytest.mark.parametrize(("ann", "bo", "found"), [
    ({}, {}, ["applied ann"]),
    ({"is_answer": True}, {"version": 2}, ["applied ann"]),
    ({"arrived_at": NOON - 2 * DAY}, {"sent_at": NOON - 9 * DAY}, ["applied ann"]),
    ({}, IN_HER_NAME, ["applied ann"]),
    ({}, {**SHE, "lines": frozenset(range(1, 20))}, ["applied bo", "version ann"]),
    # Bo's text was taken, although Ann's was the first
    ({"lines": frozenset(range(17))}, {"lines": LINES}, ["applied bo"]),
])  # fmt: skip
def test_copy_of_others_lines_is_no_source(
    ann: dict[str, Any], bo: dict[str, Any], found: list[str]
) -> None:
    kept = {**APPLIED, "lines": frozenset(range(18))}
    later = {**kept, **STRANGER, "sent_at": NOON - DAY, "arrived_at": NOON - DAY, **bo}
    assert kinds(commit(**CEMS), [patch("ann", **{**kept, **ann}), patch("bo", **later)]) == found


@pytest.mark.parametrize(("author", "ann", "bo", "first"), [
    # Bo sends Ann's patch again, as a new version or not: she is the author
    ("Ann Harbor", {}, {}, "ann"),
    ("Ann Harbor", {"title_key": "x"}, {}, "ann"),
    # the committer is the author, as PostgreSQL has it: who wrote the text, wherever it is sent
    ("Cem Gate", {}, {}, "ann"),
    ("Cem Gate", {"title_key": "x"}, {}, "ann"),
    ("Cem Gate", {}, {"sent_at": NOON - 5 * DAY, "arrived_at": NOON - DAY}, "ann"),
    # Bo claims an earlier date; the commit names her thread
    ("Cem Gate", {"thread_id": "t"}, {"sent_at": NOON - 5 * DAY}, "ann"),
    ("Cem Gate", {"thread_id": "t", "is_answer": True}, {}, "ann"),
    # another text of Bo with the title, when hers was edited
    ("Ann Harbor", EDITED, EDITED, "ann"),
    # Bo's text was taken, although Ann's was the first
    ("Ann Harbor", EDITED, {}, "bo"),
])  # fmt: skip
def test_copy_of_a_stranger_never_ranks_first(
    author: str, ann: dict[str, Any], bo: dict[str, Any], first: str
) -> None:
    facts = commit(
        author_name=author,
        author_email=f"{author[:3].lower()}@example.org",
        named=(named("talk", "Discussion"),),
        authored_at=NOON - DAY / 2,
    )
    bos = patch("bo", **{**STRANGER, "sent_at": NOON - DAY, "version": 2, **bo})
    got = kinds(facts, [patch("ann", **ann), bos], "talk@example.org")
    assert got[0] == f"applied {first}"


@pytest.mark.parametrize(("second", "found"), [
    ({"arrived_at": NOON - DAY}, []),
    ({"arrived_at": NOON + DAY}, ["applied v1"]),
    ({"arrived_at": None}, ["applied v1"]),
    ({"arrived_at": NOON - DAY, **OTHER_TEXT}, ["applied v1"]),
])  # fmt: skip
def test_forged_first_text_is_no_source(second: dict[str, Any], found: list[str]) -> None:
    forged = patch("v1", text=1, arrived_at=NOON - 2 * DAY, **OTHER_TEXT)
    assert kinds(commit(), [forged, patch("v1", text=2, **second)]) == found
    genuine = patch("v1", text=1, arrived_at=NOON - 2 * DAY)
    assert kinds(commit(), [genuine, patch("v1", text=2, **second)]) == ["applied v1"]


@pytest.mark.parametrize(("ann", "bo"), [
    ({}, {"sent_at": NOON - DAY, "arrived_at": NOON - DAY}),
    # with the date of her mail, which the commit keeps
    ({"sent_at": NOON - 2 * DAY}, {"sent_at": NOON - 2 * DAY, "arrived_at": NOON - DAY}),
    ({}, {"sent_at": NOON - 9 * DAY, "arrived_at": NOON - DAY}),
    # in the thread that the commit names
    ({}, {"sent_at": NOON - DAY, "thread_id": "t"}),
])  # fmt: skip
def test_copy_in_authors_name_never_ranks_first(ann: dict[str, Any], bo: dict[str, Any]) -> None:
    mails = [patch("ann", arrived_at=NOON - 2 * DAY, **ann), patch("bo", **IN_HER_NAME, **bo)]
    got = kinds(commit(named=(named("talk"),)), mails, "talk@example.org")
    assert got[:2] == ["applied ann", "version bo"]


def test_mail_that_names_a_commit_is_no_version_of_it() -> None:
    shown = patch("shown", named_commits=("c0ffee0123",), sent_at=NOON + 90 * DAY)
    assert kinds(commit(), [patch(), shown]) == ["applied v1"]


def test_squashed_series_has_all_its_parts() -> None:
    halves = [frozenset(range(10)), frozenset(range(10, 20))]
    parts = [
        patch(f"p{n}", patch_id=f"{n}", title_key=f"part{n}", lines=half, part=n, parts=2,
              thread_id="t")
        for n, half in enumerate(halves, 1)
    ]  # fmt: skip
    assert kinds(commit(title_key="crane"), parts) == ["applied p1", "applied p2"]
    assert kinds(commit(title_key="crane"), parts[:1]) == []
    strangers = [one._replace(author_email="bo@x", author_name="Bo") for one in parts]
    assert kinds(commit(title_key="crane"), strangers) == []


@pytest.mark.parametrize("who", [{}, STRANGER])
def test_copy_of_a_squashed_series_is_not_its_source(who: dict[str, Any]) -> None:
    thirds = [frozenset(range(n, n + 7)) for n in (0, 7, 13)]
    parts = [
        patch(f"p{n}", patch_id=f"{n}", title_key=f"part{n}", lines=some, part=n, parts=3,
              thread_id="t")
        for n, some in enumerate(thirds, 1)
    ]  # fmt: skip
    copies = [
        one._replace(
            message_id=f"c{one.part}@example.org", sent_at=NOON - DAY, is_sender=bool(who), **who
        )
        for one in parts
    ]
    facts = commit(title_key="crane", named=(named("t"),))
    got = kinds(facts, [*copies, *parts], "t@example.org")
    assert got[:3] == ["applied p1", "applied p2", "applied p3"]


def named(name: str, key: str = "Link", is_report: bool = False) -> NamedMail:
    return NamedMail(f"{name}@example.org", key, is_report)


def test_named_mail_is_linked_by_its_part() -> None:
    facts = commit(named=(named("talk", "Discussion"), named("bug", "Closes", True), named("v1")))
    got = kinds(facts, [patch()], "talk@example.org", "bug@example.org", "v1@example.org")
    assert got == ["applied v1", "discussion talk", "report bug"]


def test_named_mail_outside_the_archive_is_not_guessed() -> None:
    facts = commit(named=(named("gone"),), lines=frozenset(), patch_id="")
    links = link_commit(facts, [], {})
    assert [(one.kind, one.message_id) for one in links] == [(Kind.missing, "gone@example.org")]
    assert abstains(links)
    assert abstains([])


@pytest.mark.parametrize(("days", "found"), [(1, "discussion gone"), (15, "missing gone")])
def test_mail_that_came_long_after_a_commit_is_not_named(days: int, found: str) -> None:
    facts = commit(named=(named("gone"),), lines=frozenset(), patch_id="")
    mail = ArchivedMail("t", NOON + days * DAY)
    got = link_commit(facts, [], {"gone@example.org": mail})
    assert [f"{one.kind} {one.message_id[:4]}" for one in got] == [found]


def test_patch_of_the_named_thread_needs_fewer_facts() -> None:
    facts = commit(named=(named("talk", "Discussion"),), title_key="committerstitle")
    other = {"author_email": "bo@x", "author_name": "Bo", **EDITED, "title_key": "bostitle"}
    edited = frozenset({*range(2, 22), 40, 41, 42})
    there = patch("there", thread_id="t", **{**other, "lines": edited})
    got = kinds(facts, [there], "talk@example.org")  # a cover letter, or a mail without a patch
    assert got == ["applied there", "discussion talk"]
    assert kinds(commit(title_key="committerstitle"), [there]) == []


@pytest.mark.parametrize(("path", "found"), [
    # the diff was made in a folder of the repository
    ("src/crane.c", True),
    ("crane.c", True),
    ("rane.c", False),
    ("old/src/crane.c", False),
    ("port/src/crane.c", True),
    # or in a larger tree
    ("harbor/port/src/crane.c", True),
])  # fmt: skip
def test_file_of_a_folder_is_the_same_file(path: str, found: bool) -> None:
    facts = commit(paths=frozenset({"port/src/crane.c", "port/README"}))
    there = patch(**OTHER_TEXT, paths=frozenset({path}))
    assert kinds(facts, [there]) == (["applied v1"] if found else [])


def test_merge_has_no_link() -> None:
    merge = commit(patch_id="", lines=frozenset(), paths=frozenset(), title_key="mergebranchpier")
    assert kinds(merge, [patch(title_key="mergebranchpier")]) == []
