"""Messages of commits: trailers, named mails, cherry-picks, reverts; and release announcements."""

import datetime as dt

import pytest

from mail_assets.mail.patches.commits import (
    SHA_URL,
    Commit,
    find_listed,
    find_named_mails,
    find_named_shas,
    read_release,
    read_revision,
    read_trailers,
)


@pytest.mark.parametrize(
    ("body", "trailers"),
    [
        ("", []),
        ("Text: not a trailer, for it is prose.\nMore prose.\nAnd more.", []),
        ("Why.\n\nFixes: 12ab34cd56ef (\"crane\")\nSigned-off-by: Ann <a@x>",
         ["Fixes", "Signed-off-by"]),
        ("Why.\n\nAuthor: Ann\nBackpatch-through: 14\nDiscussion: https://x.org/m/a%40b",
         ["Author", "Backpatch-through", "Discussion"]),
        # git adds its trailers below; a link may be above
        ("Link: https://x.org/r/a@b\n\nWhy.\n\nCc: Bo <b@x>", ["Link", "Cc"]),
        ("Why.\n\n[ann: shorter]\nReviewed-by: Bo <b@x>\nLink: https://x.org/a@b",
         ["Reviewed-by", "Link"]),
        ("Why.\n\nReported-by: Bo\n  <b@x>", ["Reported-by"]),
        ("x: y\n" * 500, ["x"] * 200),
    ],
)  # fmt: skip
def test_trailers_are_the_last_lines_with_keys(body: str, trailers: list[str]) -> None:
    assert [one.key for one in read_trailers(body)] == trailers


@pytest.mark.parametrize(
    ("body", "revision"),
    [
        ("Why.\n\ngit-svn-id: svn://x.org/crane/trunk@2426 b42882b7-edfa-0310-969c\n", "r2426"),
        ("Why.\n\nFrom-SVN: r123456", "r123456"),
        ("Why.\n\nsvn path=/trunk/; revision=99\n", "r99"),
        ("Why.\n\nIt undoes r2426, see git-svn-id: svn://x.org/crane/trunk@2426 b428", ""),
        ("", ""),
    ],
)
def test_revision_of_subversion_is_read(body: str, revision: str) -> None:
    assert read_revision(body) == revision


def test_trailer_goes_on_in_an_indented_line() -> None:
    (one,) = read_trailers("Why.\n\nReported-by: Bo\n  <b@x>")
    assert one.value == "Bo <b@x>"


@pytest.mark.parametrize(("body", "named"), [
    ("Link: https://lore.example.org/r/a.1@b.org", ["a.1@b.org"]),
    ("Link: https://lore.example.org/dev/a.1@b.org/T/#u", ["a.1@b.org"]),
    ("Discussion: https://postgr.example/m/a%2B1%40b.org", ["a+1@b.org"]),
    ("Discussion: https://x.org/message-id/flat/a1@b.org", ["a1@b.org"]),
    ("Link: https://marc.example.org/?i=a1@b.org", ["a1@b.org"]),
    ("Message-Id: <a1@b.org>", ["a1@b.org"]),
    ("Message-ID: a1@b.org", ["a1@b.org"]),
    ("Link: https://x.org/a1@b.org/ [1]", ["a1@b.org"]),
    ("See https://x.org/r/a1@b.org.", ["a1@b.org"]),
    ("Discussion: https://x.org/m/a@b, https://x.org/m/c@d", ["a@b", "c@d"]),
    ("Discussion: https://x.org/message-id/flat/CA+a=b@c.org", ["CA+a=b@c.org"]),
    ("Link: https://x.org/message-id/a1%40b.org/1-v2-limit.patch", ["a1@b.org"]),
    ('Report in id:"a1@b.org".', ["a1@b.org"]),
    ("Message-Id: mid:a1@b.org", ["a1@b.org"]),
    # URLs of HyperKitty have the address of the list, but no id
    ("Link: https://x.org/hyperkitty/list/dev@x.org/thread/ABC/", []),
    # no ids, and no characters that PostgreSQL refuses
    ("Link: https://x.org/r/a%00b@c.org\nMessage-Id: <a@b@c>\nLink: <oops\nLink:", []),
    ("Link: mailto:ann@example.org", []),
    # addresses are no ids
    ("Signed-off-by: Ann <ann@example.org>\nCc: bo@example.org", []),
    ("Suggested by Ann <ann@example.org>.", []),
    ("Closes: https://bugs.example.org/123", []),
])  # fmt: skip
def test_named_mails_are_found_in_any_archive(body: str, named: list[str]) -> None:
    assert [one.message_id for one in find_named_mails(body)] == named


@pytest.mark.parametrize(("body", "is_report"), [
    ("Closes: https://x.org/r/a@b", True),
    ("Reported-by: Bo <b@x>\nLink: https://x.org/r/a@b", True),
    ("Reviewed-by: Bo <b@x>\nLink: https://x.org/r/a@b", False),
    ("Discussion: https://x.org/r/a@b", False),
])  # fmt: skip
def test_link_of_a_report_is_told_from_that_of_a_patch(body: str, is_report: bool) -> None:
    assert [one.is_report for one in find_named_mails(body)] == [is_report]


SHA = "0123456789abcdef0123456789abcdef01234567"


@pytest.mark.parametrize(("body", "picked", "reverts"), [
    (f"Why.\n\n(cherry picked from commit {SHA})", [SHA], []),
    (f"(backported from commit {SHA[:12]})", [SHA[:12]], []),
    (f"commit {SHA} upstream.\n\nWhy.", [SHA], []),
    (f"[ Upstream commit {SHA} ]", [SHA], []),
    (f"This reverts commit {SHA}.", [], [SHA]),
    (f"This reverts commit\n{SHA[:10]}, which broke it.", [], [SHA[:10]]),
    (f"See commit {SHA}.", [], []),
    (f"Fixes: {SHA[:12]}", [], []),
])  # fmt: skip
def test_other_commits_are_named_by_part(body: str, picked: list[str], reverts: list[str]) -> None:
    noon = dt.datetime(2024, 3, 4, 12, tzinfo=dt.UTC)
    about = ("Ann", "a@x", noon, "Bo", "b@x", noon, "s", body)
    commit = Commit(SHA, (), *about, (), "", ())
    assert ([*commit.picked_from], [*commit.reverts]) == (picked, reverts)


TITLE = "crane: know the limit of the load"


@pytest.mark.parametrize(("subject", "name"), [
    ("[ANNOUNCE] crane v7", "crane v7"),
    ("[ANN] crane-tools 1.2.3-rc1", "crane-tools 1.2.3-rc1"),
    ("crane 2.0 released", "crane 2.0 released"),
    ("Announcing crane 12", "Announcing crane 12"),
    ("Crane v2.40.0", "Crane v2.40.0"),
    ("Crane 6.1-rc3", "Crane 6.1-rc3"),
    ("Release of crane 2024.05", "Release of crane 2024.05"),
    ("Re: [ANNOUNCE] crane v7", ""),
    ("[GIT PULL] crane fixes for v6.2-rc6", ""),
    ("[PATCH] crane: release the hook 2 times", ""),
    ("[crane PATCH 0/3] misc updates for release scripts v2", ""),
    ("[BUG] 6.15-rc1 crane falls", ""),
    ("When is crane 2.0 released?", ""),
    ("Release schedule of 2.0", ""),
    ("crane: release the hook", ""),
    ("Meeting on 4.5", ""),
])  # fmt: skip
def test_subject_names_the_release(subject: str, name: str) -> None:
    assert read_release(subject) == name


@pytest.mark.parametrize("line", [
    f"      {TITLE}",
    f"  * {TITLE}",
    f"- {TITLE}.",
    f"12. {TITLE}",
    f"4e646fa490ba {TITLE}",
    f"- [4e646fa4] {TITLE} (Ann Lee)",
    f"* {TITLE} (#123)",
    f"* {TITLE} [Ann Lee]",
    "      crane: know the limit\n        of the load",
    f"      {TITLE.upper()}",
])  # fmt: skip
def test_title_is_found_in_the_list(line: str) -> None:
    body = f"A new crane.\n\nAnn Lee (2):\n{line}\n      crane: paint it\n"
    start, end = find_listed(body, TITLE) or (0, 0)
    assert body[start:end] == line


@pytest.mark.parametrize("line", [
    f"> {TITLE}", f'Revert "{TITLE}"', f"{TITLE}, and of the hook", f"We now {TITLE}",
    "crane: know the limit", "crane: know the limit\n\n  of the load",
])  # fmt: skip
def test_other_lines_are_no_title(line: str) -> None:
    assert find_listed(f"A new crane.\n\n{line}\n", TITLE) is None


def test_short_title_is_not_looked_for() -> None:
    assert find_listed("Fix typo\n", "Fix typo") is None


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("https://e.org/c/0123abc https://e.org/?id=1234abc", 2),
        ("https://e.org/c/0123abc/commit/1234abc", 1),
        ("https://e.org/c/0123abchttps://e.org/c/1234abc", 1),
        ("http://e.org/?to=https://e.org/commits/0123abc;h=1234abc", 1),
        (f"https://{'a' * 299}/c/0123abc http://{'b' * 300}/c/1234abc", 2),
        (f"https://{'a' * 301}/c/0123abc", 0),
        ("https:///c/0123abc https://e.org /c/1234abc /c/2345abc", 0),
    ],
)
def test_commits_in_urls_are_those_of_the_pattern(text: str, count: int) -> None:
    expected = [match[1] for match in SHA_URL.finditer(text)]
    assert [*find_named_shas(text).in_urls] == expected
    assert len(expected) == count
