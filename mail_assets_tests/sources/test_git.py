"""Public-inbox repositories on this machine, made by git and by public-inbox itself."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from mail_assets.sources.git import Blob, find_repositories, log_lines, read_blobs
from mail_assets.sources.source import ArchiveSource, SourceError, Unchanged
from mail_assets_tests.sources.inboxes import (
    PublicInbox,
    add_mails,
    commit,
    git,
    make_repository,
    needs_public_inbox,
)
from mail_assets_tests.sources.mails import (
    APRIL_2024,
    APRIL_DATE,
    MARCH_2024,
    fetch_all,
    fetch_months,
    mail,
    open_list,
)

APRIL = int(datetime(2024, 4, 2, tzinfo=UTC).timestamp())


def open_at(folder: Path, kind: str = "") -> ArchiveSource:
    return open_list(folder, folder.parent / "cache", kind)


def path_1(number: int) -> str:
    """The name that format 1 gives to the message of a number."""
    digits = hashlib.sha1(f"{number}@example.org".encode()).hexdigest()
    return f"{digits[:2]}/{digits[2:]}"


@pytest.fixture
def inbox(tmp_path: Path) -> Path:
    """Format 2 with two epochs."""
    folder = tmp_path / "dev"
    add_mails(make_repository(folder / "git/0.git"), [mail(1), mail(2, APRIL_DATE), mail(3)])
    add_mails(make_repository(folder / "git/1.git"), [mail(4, body="From here\n")])
    make_repository(folder / "all.git")
    return folder


def test_epochs_are_one_inbox_in_order_of_commits(inbox: Path, tmp_path: Path) -> None:
    months = {
        "2024-03": [mail(1), mail(3), mail(4, body="From here\n")],
        "2024-04": [mail(2, APRIL_DATE)],
    }
    assert fetch_months(open_at(inbox), tmp_path) == months
    assert fetch_months(open_at(inbox, "public-inbox"), tmp_path) == months


def test_tenth_epoch_comes_after_the_second(tmp_path: Path) -> None:
    for number in (10, 2, 0):
        add_mails(make_repository(tmp_path / f"git/{number}.git"), [mail(number)])
    (tmp_path / "git/x.git").mkdir()
    assert [x.name for x in find_repositories(tmp_path)] == ["0.git", "2.git", "10.git"]


def test_removed_message_is_gone_until_it_comes_again(inbox: Path, tmp_path: Path) -> None:
    before = open_at(inbox).versions()
    commit(inbox / "git/1.git", {"m": None, "d": mail(1)})  # of the epoch before
    source = open_at(inbox)
    assert fetch_months(source, tmp_path)["2024-03"] == [mail(3), mail(4, body="From here\n")]
    assert source.versions()[APRIL_2024] == before[APRIL_2024]
    add_mails(inbox / "git/1.git", [mail(1)])
    assert fetch_months(open_at(inbox), tmp_path)["2024-03"][-1] == mail(1)


def test_format_1_has_a_file_for_each_message(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "dev.git")
    for number in (1, 2, 3):
        commit(folder, {path_1(number): mail(number)})
    commit(folder, {"README": b"not a message\n", "ab/cd": mail(9)})
    assert fetch_months(open_at(folder), tmp_path) == {"2024-03": [mail(1), mail(2), mail(3)]}
    commit(folder, {path_1(1): None})
    commit(folder, {path_1(2): mail(2, body="Edited\n")})
    months = fetch_months(open_at(folder), tmp_path)
    assert months == {"2024-03": [mail(3), mail(2, body="Edited\n")]}


def test_without_any_date_the_time_of_the_commit_counts(inbox: Path, tmp_path: Path) -> None:
    add_mails(inbox / "git/1.git", [mail(5, "")], APRIL)
    assert fetch_months(open_at(inbox), tmp_path)["2024-04"] == [mail(2, APRIL_DATE), mail(5, "")]


def test_only_new_commits_are_walked_and_only_new_messages_read(
    inbox: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = open_at(inbox).versions()
    walked: list[str] = []
    read: list[str] = []

    def walk(folder: Path, commit: str) -> Iterator[str]:
        for line in log_lines(folder, commit):
            walked.append(line)
            yield line

    def read_ids(
        folders: Sequence[Path], ids: Iterable[str], limit: int, lacking: list[str]
    ) -> Iterator[Blob]:
        wanted = [*ids]
        read.extend(wanted)
        return read_blobs(folders, wanted, limit, lacking)

    monkeypatch.setattr("mail_assets.sources.git.log_lines", walk)
    monkeypatch.setattr("mail_assets.sources.git.read_blobs", read_ids)
    assert open_at(inbox).versions() == before
    assert walked == []
    add_mails(inbox / "git/1.git", [mail(6)])
    after = open_at(inbox).versions()
    assert (len([x for x in walked if x.startswith("@")]), len(read)) == (1, 1)
    assert after[MARCH_2024] != before[MARCH_2024]
    assert after[APRIL_2024] == before[APRIL_2024]


def test_history_that_was_rewritten_is_walked_again(inbox: Path, tmp_path: Path) -> None:
    open_at(inbox).versions()
    git(inbox / "git/0.git", "update-ref", "-d", "refs/heads/master")
    add_mails(inbox / "git/0.git", [mail(3)])  # as public-inbox-purge does
    assert fetch_months(open_at(inbox), tmp_path) == {
        "2024-03": [mail(3), mail(4, body="From here\n")]
    }


def test_known_version_is_not_written(inbox: Path, tmp_path: Path) -> None:
    version = open_at(inbox).versions()[MARCH_2024]
    found = open_at(inbox).fetch(MARCH_2024, tmp_path / "x", version)
    assert found == Unchanged(version, inbox.as_uri())
    assert not (tmp_path / "x").exists()


def test_inbox_without_a_message_has_no_month(tmp_path: Path) -> None:
    make_repository(tmp_path / "dev/git/0.git")
    assert open_at(tmp_path / "dev").versions() == {}


def test_object_that_is_missing_is_an_error_that_names_it(inbox: Path, tmp_path: Path) -> None:
    source = open_at(inbox)
    source.versions()
    for path in (inbox / "git/0.git/objects").rglob("*"):
        if path.is_file():
            path.unlink()
    with pytest.raises(SourceError, match=r"list dev, month 2024-03: .*(lacks the object|git:)"):
        source.fetch(MARCH_2024, tmp_path / "x")
    assert [*tmp_path.glob("x*")] == []


def test_listing_names_lost_objects_and_goes_on(inbox: Path, tmp_path: Path) -> None:
    id = git(inbox / "git/1.git", "rev-parse", "HEAD:m").decode().strip()
    lost = inbox / "git/1.git/objects" / id[:2] / id[2:]
    data = lost.read_bytes()
    lost.unlink()
    source = open_at(inbox)
    assert fetch_months(source, tmp_path)["2024-03"] == [mail(1), mail(3)]
    (remark,) = source.new_remarks()
    assert "`git fsck` (1)" in remark
    assert f"{id} of 20" in remark
    lost.write_bytes(data)
    assert len(fetch_months(open_at(inbox), tmp_path)["2024-03"]) == 3


def test_nothing_that_a_repository_configures_is_run(inbox: Path, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {ran}\n")
    program.chmod(0o755)
    epoch = inbox / "git/0.git"
    for key in ("diff.external", "core.pager", "core.fsmonitor", "gpg.program", "diff.x.textconv"):
        git(epoch, "config", key, str(program))
    git(epoch, "config", "log.showSignature", "true")
    (epoch / "info").mkdir(exist_ok=True)
    (epoch / "info/attributes").write_text("* diff=x\n")
    for hook in ("post-checkout", "reference-transaction", "post-index-change"):
        (epoch / "hooks").mkdir(exist_ok=True)
        (epoch / "hooks" / hook).write_bytes(program.read_bytes())
        (epoch / "hooks" / hook).chmod(0o755)
    fetch_all(open_at(inbox), tmp_path)
    assert not ran.exists()


def test_users_own_configuration_of_git_changes_nothing(
    inbox: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = fetch_all(open_at(inbox), tmp_path)
    config = tmp_path / "gitconfig"
    config.write_text("[log]\nshowSignature = true\n[diff]\nrenames = copies\nnoprefix = true\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    monkeypatch.setenv("GIT_DIR", str(tmp_path))
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", "false")
    (tmp_path / "cache").rename(tmp_path / "old")
    assert fetch_all(open_at(inbox), tmp_path) == expected


def test_missing_git_is_reported(
    inbox: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SourceError, match="list dev: git is not installed"):
        open_at(inbox).versions()


@needs_public_inbox
@pytest.mark.parametrize("format", [1, 2])
def test_inboxes_that_public_inbox_writes_are_read(tmp_path: Path, format: int) -> None:
    (tmp_path / "home").mkdir()
    inbox = PublicInbox(tmp_path / "home", format)
    to = "To: dev@example.org\nSubject: x\n"
    mails = [mail(n, date, "From here\n", to) for n, date in ((1, APRIL_DATE), (2, APRIL_DATE))]
    mails.append(mail(3, more=to))
    for raw in mails:
        inbox.deliver(raw)
    months = fetch_months(open_at(inbox.folder), tmp_path)
    ids = {month: [raw.split(b"<")[1][:1] for raw in raws] for month, raws in months.items()}
    assert ids == {"2024-03": [b"3"], "2024-04": [b"1", b"2"]}
    assert all(raw.endswith(b"\n\nFrom here\n") for raw in months["2024-04"])
    inbox.remove(mails[0])
    [left] = fetch_months(open_at(inbox.folder), tmp_path)["2024-04"]
    assert b"<2@" in left
