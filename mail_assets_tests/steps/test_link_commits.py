"""Commits and their links: first run, second run, after changes of mail and history."""

import re

import pytest

from mail_assets.forgetting.forget import ForgetRequest
from mail_assets.forgetting.remove_list import remove_list
from mail_assets.month import ListMonth
from mail_assets.steps import link_commits as steps
from mail_assets.steps.link_commits import link_commits
from mail_assets.steps.read_commits import find_months_behind, read_month_commits
from mail_assets.tables import commits as commit_links
from mail_assets.tables.commits import (
    AmbiguousCommitError,
    CommitKey,
    Discussed,
    find_commits,
    has_changes,
)
from mail_assets_tests.crane import COMMITTED, NEW, TITLE, Crane
from mail_assets_tests.sources.inboxes import git
from mail_assets_tests.sources.repositories import COMMITTER, MARCH_5
from mail_assets_tests.steps.test_killed_patches import killed_at
from mail_assets_tests.world import APRIL, HARBOR, MARCH, PIER, Killed, World, mail

NAMING = f"{TITLE}\n\nLink: https://x.example/r/v1@example.org\n"


@pytest.fixture
def crane(world: World) -> Crane:
    return Crane(world)


def later_version(crane: Crane, sha: str) -> bytes:
    mail = crane.mail("v2", sha, f"[PATCH v2] {TITLE}")
    return mail.replace(b"04 Mar 2024 09", b"04 Mar 2024 10")


def test_commits_are_read_once_and_linked(crane: Crane) -> None:
    sha = crane.commit()
    crane.world.load(crane.mail("v1", sha), last="patches")
    assert crane.read().counts["written"] == 2
    assert crane.read().changed is False
    assert crane.read(rebuild=True).counts["written"] == 0
    with crane.world.connect() as connection:
        connection.execute("update commits set added = 99 where sha = %s", [sha])
    assert crane.read(rebuild=True).counts["written"] == 1
    assert crane.link().counts["linked"] == 1
    assert crane.links(sha) == ["applied v1"]
    again = crane.link()
    assert (again.changed, again.counts["read"]) == (False, 2)
    with crane.world.connect() as connection:
        assert not has_changes(connection)
        assert find_months_behind(connection, {HARBOR: {"crane": crane.source()}}) == {}


def test_mail_that_comes_later_is_linked(crane: Crane) -> None:
    sha = crane.commit(NAMING)
    crane.follow()
    assert crane.links(sha) == ["missing v1"]
    crane.world.load(crane.mail("v1", sha), last="patches")
    crane.link()
    assert crane.links(sha) == ["applied v1"]


def test_mail_of_a_larger_tree_is_linked_by_its_lines(crane: Crane) -> None:
    sha = crane.commit()
    other = crane.mail("v1", sha, "[PATCH] Another title").replace(b"/crane.c", b"/tools/crane.c")
    crane.world.load(other.replace(b"04 Mar 2024 09", b"04 Mar 2024 10"), last="patches")
    crane.follow()
    assert crane.links(sha) == ["applied v1"]


@pytest.mark.parametrize(("days", "month", "found"), [
    (1, "2024-03", ["applied v1"]),
    (50, "2024-04", ["applied v1"]),
    (70, "2024-05", []),
    (-1, "2024-03", []),
])  # fmt: skip
def test_applied_patch_of_others_is_linked(
    crane: Crane, days: int, month: str, found: list[str]
) -> None:
    text = b"".join(b"int limit_%d;\n" % n for n in range(6))
    at = MARCH_5 + (days - 1) * 86_400
    sha = crane.made.commit({"trunk/crane.c": text}, "r7", author=COMMITTER, committed=at)
    crane.read(month)
    crane.link()
    diff = crane.diff(sha).replace("trunk/", "")
    crane.world.load(mail("v1", f"---\n{diff}", subject="[PATCH] Limits"), last="patches")
    crane.link()
    assert crane.links(sha) == found
    assert crane.link(rebuild=True).changed is False


def test_later_version_takes_the_first_place(crane: Crane) -> None:
    sha = crane.mailed()
    second = later_version(crane, sha)
    crane.world.load(crane.mail("v1", sha), second, at=10, last="patches")
    crane.link()
    assert crane.links(sha) == ["applied v2", "version v1"]


def test_rewritten_history_loses_its_commits_and_links(crane: Crane) -> None:
    sha = crane.mailed()
    again = crane.made.commit({"crane.c": NEW}, "again", committed=COMMITTED, parents=[])
    outcome = crane.read()
    assert "history was rewritten" in outcome.note
    assert sha[:12] in outcome.note
    crane.link()
    assert crane.links(sha) == []
    with crane.world.connect() as connection:
        found = find_commits(connection, [sha, again[:8].upper()], ["crane"])
    assert found == {again[:8].upper(): CommitKey("crane", again)}


def test_commit_moves_to_the_month_of_its_new_date(crane: Crane) -> None:
    for at in (COMMITTED + 30 * 86_400, COMMITTED + 60):
        sha = crane.made.commit({"a": b"1\n"}, "moved", committed=at, parents=[crane.first])
        for month in (MARCH, APRIL):
            crane.read(month)
    assert crane.world.rows("commits", "month, sha", "subject = 'moved'") == [(MARCH, sha)]


def test_forgotten_mail_loses_its_links(crane: Crane) -> None:
    sha = crane.mailed(TITLE, mail("other"), last="vectors")
    crane.world.forget(ForgetRequest(["v1@example.org"], [], "asked to", "the postmaster"))
    assert crane.links(sha) == []
    crane.link()
    assert crane.links(sha) == []


def test_forgotten_id_does_not_come_back_from_a_commit(crane: Crane) -> None:
    sha = crane.mailed(NAMING, mail("other"), last="vectors")
    assert crane.links(sha) == ["applied v1"]
    crane.world.forget(ForgetRequest(["v1@example.org"], [], "asked to", "the postmaster"))
    for rebuild in (False, True):
        crane.link(rebuild=rebuild)
        assert crane.links(sha) == []
    [(body,)] = crane.world.rows("commits", "body", f"sha = '{sha}'")
    assert "v1@example.org" in body, "the text of the repository stays"


EARLY, LATE = (f"From list@example.org Mon Mar {day:2} 09:00:00 2024" for day in (3, 5))


def forge(name: str, line: str, body: str = "Buy this crane.") -> bytes:
    return mail(name, body, subject="Cranes", sender="eve@example.net", from_line=line)


def test_forged_text_that_arrives_first_is_no_source(crane: Crane) -> None:
    sha = crane.commit()
    own = crane.mail("v1", sha)
    forged = re.sub(rb"(?m)^([+-]int).*", rb"\1 stolen;", own)
    crane.world.load(own, last="patches")
    crane.follow()
    assert crane.links(sha) == ["applied v1"]
    earlier = forged.replace(own.partition(b"\n")[0], EARLY.encode())
    crane.world.load(earlier, list_name=PIER, last="patches")
    crane.link()
    assert crane.links(sha) == []


@pytest.mark.parametrize("place", [(HARBOR, MARCH), (HARBOR, APRIL), (PIER, MARCH)])
@pytest.mark.parametrize("message", [TITLE, NAMING])
def test_contesting_text_takes_no_link_and_marks_it(
    crane: Crane, message: str, place: tuple[str, str]
) -> None:
    world, (list_name, month) = crane.world, place
    sha = crane.commit(message)
    own = [crane.mail("v1", sha)]
    world.load(*own, last="patches")
    crane.follow()
    [(before,)] = world.rows("commit_links", "evidence")
    there = own if place == (HARBOR, MARCH) else []
    forged = forge("v1", LATE, f"Buy it.\n---\n{crane.diff(sha)}")
    world.load(*there, forged, list_name=list_name, month=month, at=1, last="patches")
    crane.link()
    assert crane.links(sha) == ["applied v1"]
    assert world.rows("commit_links", "evidence") == [([*before, "contested"],)]
    world.archive(month, *there, list_name=list_name, at=2)
    world.archives(month, list_name, allow_loss=True)
    world.messages(month, list_name)
    world.patches(month, list_name)
    crane.link()
    assert crane.links(sha) == ["applied v1"]
    assert world.rows("commit_links", "evidence") == [(before,)]


def test_text_of_a_stranger_is_the_source_of_no_commit(crane: Crane) -> None:
    """A stranger sends the diff under another id, or arrives first with a guessed id."""
    sha = crane.commit()
    crane.world.load(
        *[mail("other", "A talk.", from_line=EARLY), crane.mail("v1", sha)],
        *[forge("other", LATE, f"x\n---\n{crane.diff(sha)}"), forge("v1", EARLY)],
        last="patches",
    )
    crane.read()
    crane.link()
    assert crane.links(sha) == []


def test_removed_list_leaves_the_links_of_another(crane: Crane) -> None:
    world = crane.world
    about = {"crane": Discussed((HARBOR, PIER))}
    sha = crane.commit()
    second = later_version(crane, sha)
    world.load(crane.mail("v1", sha), last="patches")
    world.load(second, list_name=PIER, last="patches")
    crane.read()
    crane.link(about=about)
    assert crane.links(sha) == ["applied v2", "version v1"]
    with world.workspace() as workspace:
        remove_list(workspace, PIER, world.open_index)
    assert crane.links(sha) == ["version v1"]
    crane.link(about=about)
    assert crane.links(sha) == ["applied v1"]
    digest = crane.link(about=about).digest
    assert crane.link(about=about, rebuild=True).digest == digest


def test_removed_list_takes_its_commits_and_links_along(crane: Crane) -> None:
    world = crane.world
    crane.mailed()
    with world.workspace() as workspace:
        remove_list(workspace, HARBOR, world.open_index)
    for table in ("commits", "commit_links", "commit_link_months", "commit_link_sources"):
        assert world.rows(table) == [], table
    assert crane.link().counts["commits"] == 0


def test_repository_removed_from_settings_is_dropped(crane: Crane) -> None:
    sha = crane.mailed()
    with crane.world.workspace() as workspace:
        gone = read_month_commits(workspace, ListMonth(HARBOR, MARCH), {})
        assert gone.counts["deleted"] == 2
        link_commits(workspace, {})
    assert crane.links(sha) == []


def test_rebuild_makes_the_same_links(crane: Crane) -> None:
    sha = crane.commit()
    crane.world.load(crane.mail("v1", sha), last="patches")
    crane.read()
    digest = crane.link().digest
    with crane.world.connect() as connection:
        connection.execute("delete from commit_links")
    assert crane.link().changed is False
    assert crane.link(rebuild=True).digest == digest
    assert crane.links(sha) == ["applied v1"]


def test_killed_run_goes_on_with_the_rest(crane: Crane, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "PORTION", 1)
    shas = [crane.commit(f"crane: limit {n}", b"int limit_%d;\n" % n) for n in range(4)]
    crane.world.load(crane.mail("v1", shas[3]), last="patches")
    crane.read()
    with killed_at(60), pytest.raises(Killed):
        crane.link()
    [(left,)] = crane.world.rows("commit_link_changes", "count(*)")
    assert 0 < left < 5
    outcome = crane.link()
    assert outcome.counts["read"] == left
    assert crane.link(rebuild=True).digest == outcome.digest
    assert crane.links(shas[3]) == ["applied v1"]


def test_title_that_becomes_unique_links_again(crane: Crane) -> None:
    sha = crane.commit()
    weak = mail(
        "v1",
        "Know it.\n---\n" + crane.diff(sha).replace("int", "long"),
        subject=f"[PATCH] {TITLE}",
        sender="Ann <ann@example.org>",
    )
    crane.world.load(weak, last="patches")
    crane.follow()
    alone = crane.links(sha)
    crane.commit(text=b"int x;\n")
    crane.read()
    assert crane.link().counts["read"] == 3
    assert (alone, crane.links(sha)) == (["applied v1"], [])
    git(crane.made.folder, "update-ref", "refs/heads/main", sha)
    crane.follow()
    assert crane.links(sha) == alone


def test_mail_with_a_common_title_relinks_no_commit(crane: Crane) -> None:
    for n in range(3):
        crane.made.commit({"n": b"%d\n" % n}, "sync", committed=COMMITTED + n * 40 * 86_400)
        crane.read(f"2024-0{3 + n}")
        assert crane.link().counts["read"] == (2, 2, 1)[n]


@pytest.mark.parametrize(("path", "date", "read"), [
    ("crane.c", "04 Mar 2024", 1),
    ("harbor/crane.c", "04 Mar 2024", 1),
    ("other.c", "04 Mar 2024", 0),
    ("crane.c", "20 Mar 2024", 0),
])  # fmt: skip
def test_mail_relinks_commits_of_its_author_and_files(
    crane: Crane, path: str, date: str, read: int
) -> None:
    crane.world.load(mail("m"), last="patches")
    crane.follow()
    diff = f"---\n--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-int a;\n+int b;\n"
    new = mail(
        "n",
        diff,
        subject="[PATCH] Turn",
        sender="Ann <ann@example.org>",
        date=f"{date} 09:00 +0000",
    )
    crane.world.load(mail("m"), new, at=1, last="patches")
    crane.link()
    [(counts,)] = crane.world.rows("partitions", "counts", "asset = 'commit_links'")
    assert counts["read"] == read


def test_mail_is_found_among_many_alike(crane: Crane, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commit_links, "MOST_ALIKE", 2)
    texts = [b"".join(b"int limit_%d_%d;\n" % (n, m) for m in range(6)) for n in range(9)]
    shas = [
        crane.made.commit({"crane.c": text}, "sync", authored=at, committed=at + 3_600)
        for n, text in enumerate(texts)
        for at in [MARCH_5 + n * 86_400]
    ]
    mails = [
        crane.mail(f"v{n}", sha, "[PATCH] sync").replace(b"04 Mar 2024", b"%02d Mar 2024" % (n + 5))
        for n, sha in enumerate(shas)
    ]
    crane.world.load(*mails, last="patches")
    crane.follow()
    assert [crane.links(sha)[:1] for sha in shas] == [[f"applied v{n}"] for n in range(9)]


def test_mail_is_found_by_the_date_of_the_commit(crane: Crane) -> None:
    at = 1_709_542_800  # 2024-03-04 09:00
    sha = crane.made.commit({"crane.c": NEW}, "Limit the load", authored=at, committed=COMMITTED)
    crane.world.load(mail("m"), last="patches")
    crane.follow()
    edited = crane.mail("v1", sha).replace(b"limit_of_crane", b"limit_of_it")
    other = edited.replace(b"ann@example.org", b"ann@home.example").replace(b"Ann", b"A. Harbor")
    crane.world.load(mail("m"), other, at=1, last="patches")
    crane.link()
    assert crane.links(sha) == ["applied v1"]


def test_ambiguous_id_is_refused(crane: Crane) -> None:
    shas = [crane.made.commit({"n": b"%d\n" % n}, f"n {n}", committed=COMMITTED) for n in range(20)]
    crane.read()
    twice = next(x for x in "0123456789abcdef" if sum(sha[0] == x for sha in shas) > 1)
    with crane.world.connect() as connection, pytest.raises(AmbiguousCommitError):
        find_commits(connection, [shas[0], twice], ["crane"])
