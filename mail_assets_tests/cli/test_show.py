"""`mail-assets show`: copies, bytes, chunks, attachments."""

import gzip
import hashlib
import re
import sys
from pathlib import Path

import psycopg
import pytest

from mail_assets.cli.thread import _write_attachment
from mail_assets.reading.attachments import AttachmentContent
from mail_assets_tests.cli.conftest import Run, assert_fails, invoke
from mail_assets_tests.conftest import REPOSITORY
from mail_assets_tests.sample_corpus import ROOT
from mail_assets_tests.world import HARBOR, World, mail
from mail_assets_tests.world import MARCH as MONTH

MARCH = REPOSITORY / "samples" / "harbor-dev" / "harbor-dev.2024-03.mbox"
USERS = REPOSITORY / "samples" / "harbor-users"


@pytest.mark.parametrize("given", [ROOT, f"<{ROOT}>", f" <{ROOT}> "])
def test_show_takes_an_id_with_or_without_brackets(run: Run, given: str) -> None:
    result = run("show", given)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.startswith("Archive: harbor-users 2024-03, offset ")
    assert f"\nMessage-ID: {ROOT}\n" in result.stdout


@pytest.mark.parametrize("command", ["show", "show --raw", "thread"])
@pytest.mark.parametrize("given", ["nobody@nowhere.example", "' or true --", "\udcff"])
def test_unknown_id_exits_1(run: Run, given: str, command: str) -> None:
    result = run(*command.split(), "--", given)
    assert (result.exit_code, result.stdout) == (1, "")
    what = "thread has" if command == "thread" else "message"
    assert result.stderr.startswith(f"mail-assets: no {what} ")


@pytest.mark.parametrize("command", ["show", "thread", "similar"])
@pytest.mark.parametrize("given", ["", " ", "<>", "< >"])
def test_empty_id_is_a_wrong_argument(run: Run, command: str, given: str) -> None:
    result = run(command, given)
    assert_fails(result, 2, "the Message-ID is empty")


def archive_bytes(list_: str, month: str) -> bytes:
    if list_ == "harbor-dev":
        if month == "2024-03":
            return MARCH.read_bytes()
        return gzip.decompress((MARCH.parent / "harbor-dev.2024-04.mbox.gz").read_bytes())
    return (
        USERS / f"harbor-users.2024-{'March' if month == '2024-03' else 'April'}.txt"
    ).read_bytes()


def test_show_raw_prints_the_bytes_of_every_copy(run: Run, connection: psycopg.Connection) -> None:
    rows = connection.execute(
        "select message_id, list, month, archive_offset, archive_length from archive_entries"
        " join messages using (list, month, message_id, variant)"
        " where outcome = 'stored' and list <> 'harbor-es'"
        ' order by message_id, arrived_at, break_tie(list, month, variant) collate "C"'
    ).fetchall()
    expected: dict[str, bytes] = {}
    for message_id, list_, month, offset, length in rows:
        piece = archive_bytes(list_, month)[offset : offset + length]
        assert piece.startswith(b"From ")
        expected[message_id] = expected.get(message_id, b"") + piece
    assert len(expected) == 96
    cross_posted = [m for m, data in expected.items() if data.count(b"\nMessage-ID: ") == 2]
    assert len(cross_posted) >= 2
    for message_id in [ROOT, *cross_posted, *sorted(expected)[:12]]:
        result = run("show", "--raw", message_id)
        assert (result.exit_code, result.stderr) == (0, "")
        assert result.stdout_bytes == expected[message_id]


def test_show_prints_both_contents_of_one_id(run: Run) -> None:
    text = run("show", "twice@example.es").stdout
    assert text.index("Subject: Primera") < text.index("Subject: Segunda")
    assert "Flags: variant" in text
    raw = run("show", "--raw", "twice@example.es").stdout
    assert raw.count("\nMessage-ID: <twice@example.es>") == 2


def test_show_names_every_list_of_a_cross_post(run: Run, connection: psycopg.Connection) -> None:
    row = connection.execute(
        "select message_id from messages group by 1 having count(distinct list) > 1 limit 1"
    ).fetchone()
    assert row
    text = run("show", row[0]).stdout
    assert "Archive: harbor-dev " in text
    assert "Archive: harbor-users " in text


def test_show_raw_reads_the_file_that_messages_has_read(
    run: Run, connection: psycopg.Connection
) -> None:
    """A newer archive may have been fetched that messages has not read yet."""
    before = run("show", "--raw", ROOT).stdout_bytes
    where = "list = 'harbor-users' and month = '2024-03'"
    row = connection.execute(f"select object_key from mbox_archives where {where}").fetchone()
    assert row
    try:
        connection.execute(f"update mbox_archives set object_key = 'archives/x' where {where}")
        assert run("show", "--raw", ROOT).stdout_bytes == before
    finally:
        connection.execute(f"update mbox_archives set object_key = %s where {where}", row)


def test_show_raw_without_its_archive_names_the_remedy(run: Run, tmp_path: Path) -> None:
    result = run("show", "--raw", ROOT, MAIL_STORE=str(tmp_path))
    assert_fails(result, 1, "harbor-users 2024-03: the archive of its messages is missing")
    command = "mail-assets backfill --list harbor-users --from 2024-03 --to 2024-03 --rebuild"
    assert f"run {command}\n" in result.stderr


@pytest.fixture
def attached(connection: psycopg.Connection) -> tuple[str, int, dict[str, object]]:
    """A message of the samples with an attachment, its number, and what the row says of it."""
    row = connection.execute(
        "select message_id, attachments from messages where attachments <> '[]'"
        " order by message_id, list, month limit 1"
    ).fetchone()
    assert row
    return row[0], len(row[1]), row[1][-1]


def test_show_numbers_attachments_and_writes_their_bytes(
    run: Run, attached: tuple[str, int, dict[str, object]], tmp_path: Path
) -> None:
    message_id, number, about = attached
    line = (
        f"Attachment {number}: {about['name']} ({about['type']}, {about['size']} bytes, "
        f"sha256 {about['sha256']})"
    )
    assert line in run("show", message_id).stdout
    result = run("show", message_id, "--attachment", str(number))
    assert (result.exit_code, result.stderr) == (0, "")
    assert hashlib.sha256(result.stdout_bytes).hexdigest() == about["sha256"]
    target = tmp_path / "target"
    written = run("show", message_id, "--attachment", str(number), "--output", str(target))
    assert (written.exit_code, written.stdout) == (0, "")
    assert target.read_bytes() == result.stdout_bytes


def test_show_of_a_missing_attachment_lists_the_others(
    run: Run, attached: tuple[str, int, dict[str, object]]
) -> None:
    message_id, number, about = attached
    result = run("show", message_id, "--attachment", str(number + 1))
    assert_fails(result, 1, f"{message_id} has no attachment {number + 1}: it has ")
    assert f"{number} ({about['name']})" in result.stderr


def test_attachment_is_shown_alone(run: Run) -> None:
    result = run("show", ROOT, "--attachment", "1", "--raw")
    assert_fails(result, 2, "--attachment: not with --raw")


def test_show_output_needs_an_attachment(run: Run, tmp_path: Path) -> None:
    result = run("show", ROOT, "--output", str(tmp_path / "x"))
    assert_fails(result, 2, "--output: only with --attachment")


@pytest.mark.parametrize(("data", "is_shown"), [(b"text\n", True), (b"\x1b[2J", False)])
def test_attachment_on_a_terminal_has_no_control_characters(
    monkeypatch: pytest.MonkeyPatch,
    capfdbinary: pytest.CaptureFixture[bytes],
    data: bytes,
    is_shown: bool,
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    content = AttachmentContent("a", "text/plain", data)
    if is_shown:
        _write_attachment(content, None)
    else:
        with pytest.raises(SystemExit):
            _write_attachment(content, None)
    captured = capfdbinary.readouterr()
    assert captured.out == (data if is_shown else b"")
    assert (b"--output FILE" in captured.err) is not is_shown


def test_vanished_message_is_named_with_its_archive(world: World) -> None:
    world.keep_days = 30
    for at, names in enumerate(["ab", "a"]):
        world.archive(MONTH, *map(mail, names), at=at)
        world.chain(last="messages")
    shown = invoke("show", "b@example.org", env=world.environ())
    assert shown.exit_code == 1
    said = rf"message b@example.org of {HARBOR} {MONTH} was removed upstream, noticed \d{{4}}-"
    assert re.search(said + r".*; its former archive is kept until \d{4}-", shown.stderr)
