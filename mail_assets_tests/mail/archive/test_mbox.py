"""The dialect of an archive; archives of every dialect are split into messages."""

import gzip
import io
import tarfile
import tracemalloc
import zipfile
from collections.abc import Callable, Generator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mail_assets.mail.archive.compression import BUFFER, ArchiveError, unpacked
from mail_assets.mail.archive.mbox import (
    DIALECTS,
    SAMPLE,
    RawMessage,
    contradicts,
    find_dialect,
    split_archive,
    split_mbox,
)
from mail_assets_tests.mail.archive.test_boundaries import PEOPLE, PG, PIPERMAIL, TEXTS, archive
from mail_assets_tests.mail.mails import GIT_LINE, LINE, head

GIT = (
    GIT_LINE
    + b"From: Ann <ann@example.org>\nDate: Sun, 4 Jan 2026 10:00:00 +0000\nSubject: [PATCH] x\n\n"
)


def split(data: bytes, dialect: str = "plain") -> list[RawMessage]:
    return list(split_mbox(data, dialect))


def from_file(data: bytes, folder: Path, dialect: str = "plain") -> list[RawMessage]:
    path = folder / "archive.mbox"
    path.write_bytes(data)
    return list(split_archive(path, dialect))


PROSE = LINE + head(1) + b"\nFrom the start this was prose.\nFrom here on too.\n\n"
CASES: dict[str, tuple[bytes, int]] = {
    "prose that begins with From": (PROSE + LINE + head(2) + b"x\n\n", 2),
    "a blank line and From without a date": (LINE + head(1) + b"\nFrom x\nTo: y\n\n", 1),
    "a dated From line that no header follows": (
        LINE + head(1) + b"\nFrom a@b Mon Jan 05 15:18:12 2026\nis what it said\n\n",
        1,
    ),
    "git format-patch twice in one message": (
        LINE + head(1) + b"first\n\n" + GIT + b"---\n\n" + GIT + b"second\n\n" + LINE + head(2),
        2,
    ),
    "no final newline": (LINE + head(1) + b"one\n\n" + LINE + head(2) + b"two", 2),
    "a quoted first header": (LINE + b">From: a@example.org\n" + head(1) + b"x\n", 1),
    "blank lines in front": (b"\n\r\n\n" + LINE + head(1) + b"x\n", 1),
    "nothing": (b"", 0),
    "blank lines only": (b"\n\n\r\n", 0),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("crlf", [False, True])
def test_messages_are_found_by_rule(name: str, crlf: bool, tmp_path: Path) -> None:
    data, count = CASES[name]
    data = data.replace(b"\n", b"\r\n") if crlf else data
    found = from_file(data, tmp_path)
    assert len(found) == count
    assert not any(message.suspicious or message.truncated for message in found)
    assert split(data) == found


def test_offset_and_length_give_the_message(tmp_path: Path) -> None:
    first, second = LINE + head(1) + b"one\n", LINE + head(2) + b"two\n"
    data = first + b"\n" + second + b"\n"
    found = from_file(data, tmp_path)
    assert [data[m.offset : m.offset + m.length] for m in found] == [first, second]
    assert [m.from_line for m in found] == [LINE.rstrip()] * 2
    assert [m.raw for m in found] == [head(1) + b"one\n", head(2) + b"two\n"]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_last_blank_line_belongs_to_all_archives_but_pg(dialect: str) -> None:
    found = split(LINE + head(1) + b"x\n\n\n" + LINE + head(2) + b"y\n", dialect)
    assert found[0].raw == head(1) + (b"x\n\n\n" if dialect == "pg" else b"x\n\n")
    assert found[1].raw == head(2) + b"y\n"


@pytest.mark.parametrize(("dialect", "body"), [
    ("pg", b">From a\n>>From b\n"),
    ("plain", b">From a\n>>From b\n"),
    ("pipermail", b">From a\n>>From b\n"),
    ("mboxo", b"From a\n>>From b\n"),
    ("mboxrd", b"From a\n>From b\n"),
])  # fmt: skip
def test_quoted_from_lines_are_unquoted(dialect: str, body: bytes) -> None:
    data = LINE + head(1) + b">From a\n>>From b\n"
    (found,) = split(data, dialect)
    assert found.raw == head(1) + body
    assert found.length == len(data)


def test_unknown_dialect_is_refused() -> None:
    with pytest.raises(ValueError, match=r"maildir.*pg, plain"):
        split(b"", "maildir")


def test_message_without_id_and_date_is_suspicious() -> None:
    found = split(LINE + b"Subject: Date: in a subject\n\nDate: x\n\n" + LINE + head(1))
    assert [message.suspicious for message in found] == [True, False]


def test_bytes_before_the_first_from_line_are_not_lost(tmp_path: Path) -> None:
    lost = head(7) + b"whose From_ line is gone\n"
    data = lost + LINE + head(1) + b"x\n"
    found = from_file(data, tmp_path)
    assert [(m.offset, m.from_line, m.suspicious) for m in found] == [
        (0, b"", True),
        (len(lost), LINE.rstrip(), True),
    ]
    assert found[0].raw == lost
    assert split(data) == found


def test_overlong_start_without_from_line_is_truncated() -> None:
    data = head(7) + b"x" * 9_000 + b"\n" + LINE + head(1)
    lost, found = split_mbox(data, "plain", 5_000)
    assert (lost.offset, lost.length, lost.truncated, lost.suspicious) == (0, 5_000, True, True)
    assert not found.truncated


@pytest.mark.parametrize("data", [b"<!doctype html>\n<title>Log in</title>", b"\x00" * 5_000])
def test_other_files_are_refused_by_name(data: bytes, tmp_path: Path) -> None:
    with pytest.raises(ArchiveError, match=r"archive\.mbox: it is not an mbox"):
        from_file(data, tmp_path)
    with pytest.raises(ArchiveError, match="archive: it is not an mbox"):
        split(data)


def tar_file(data: bytes) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as tar:
        member = tarfile.TarInfo("dev.mbox")
        member.size = len(data)
        tar.addfile(member, io.BytesIO(data))
    return file.getvalue()


def zip_file(data: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as stored:
        stored.writestr("dev.mbox", data)
    return file.getvalue()


@pytest.mark.parametrize(("pack", "what"), [
    (tar_file, "a tar file"),
    (zip_file, "a zip file"),
    (lambda data: gzip.compress(gzip.compress(data)), "compressed twice"),
], ids=["tar", "zip", "gzip twice"])  # fmt: skip
def test_file_of_files_is_refused_though_from_lines_are_in_it(
    pack: Callable[[bytes], bytes], what: str, tmp_path: Path
) -> None:
    data = pack(b"".join(LINE + head(n) + b"text\n\n" for n in range(3)))
    with pytest.raises(
        ArchiveError, match=rf"archive\.mbox: it is not an mbox but {what}; convert it"
    ):
        from_file(data, tmp_path)


def test_no_mail_can_say_that_its_archive_is_a_file_of_files() -> None:
    first = LINE + head(1)
    data = first + b"x" * (257 - len(first)) + b"ustar\n\n" + LINE + head(2)
    assert data[257:262] == b"ustar"
    assert len(split(data)) == 2


def test_overlong_message_is_cut_and_the_next_one_survives() -> None:
    second = LINE + head(2) + b"y\n"
    data = LINE + head(1) + b"x" * 9_000 + b"\n\n" + second
    found = list(split_mbox(data, "plain", 5_000))
    assert [(m.truncated, m.length) for m in found] == [(True, 5_000), (False, len(second))]


def test_byte_order_mark_hides_no_message() -> None:
    data = b"\xef\xbb\xbf" + LINE + head(1) + b"x\n\n" + LINE + head(2)
    first, second = split(data)
    assert (first.offset, first.suspicious, second.suspicious) == (3, False, False)


def test_from_line_begins_a_line() -> None:
    data = LINE + head(1) + (b"x" * 200 + LINE + b"a: b\n") * 20
    assert [(raw.offset, raw.length) for raw in split(data)] == [(0, len(data))]


@pytest.mark.parametrize("compress", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_memory_stays_small_for_any_length_of_message(
    compress: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    path = tmp_path / "archive"
    path.write_bytes(compress(LINE + head(1) + b"x\n" * (12 << 20) + b"\n" + LINE + head(2)))
    tracemalloc.start()
    try:
        with unpacked(path) as data:
            found = [(raw.length, raw.truncated) for raw in split_mbox(data, "plain", 5_000)]
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert found == [(5_000, True), (len(LINE + head(2).removesuffix(b"\n")), False)]
    assert peak < 8 * BUFFER


def test_archive_may_be_left_before_its_end(tmp_path: Path) -> None:
    path = tmp_path / "archive"
    path.write_bytes((LINE + head(1) + b"x\n\n") * 3)
    messages = split_archive(path, "plain")
    assert isinstance(messages, Generator)
    assert next(messages).offset == 0
    messages.close()  # closing fails if the mapping is still in use


TEXT = st.lists(
    st.sampled_from(
        [b"From ", b">From ", b">>From x\n", b"\n", b"\r\n", b"text\n", b"a: b\n", GIT, LINE, b"\0"]
    )
    | st.binary(max_size=30),
    max_size=12,
).map(b"".join)


def mboxrd_quoted(body: bytes) -> bytes:
    return b"\n".join(
        b">" + line if line.lstrip(b">").startswith(b"From ") else line
        for line in body.split(b"\n")
    )


@settings(max_examples=150)
@given(bodies=st.lists(TEXT, min_size=1, max_size=5))
def test_splitting_quoted_messages_gives_them_back(bodies: list[bytes]) -> None:
    messages = [head(number) + body for number, body in enumerate(bodies)]
    data = b"".join(
        LINE + head(number) + mboxrd_quoted(body) + (b"\n" if body.endswith(b"\n") else b"\n\n")
        for number, body in enumerate(bodies)
    )
    found = split(data, "mboxrd")
    ended = [m if m.endswith(b"\n") else m + b"\n" for m in messages]
    # A blank line with CRLF counts as the separator's line end.
    assert [m.raw.rstrip(b"\r\n") for m in found] == [m.rstrip(b"\r\n") for m in ended]
    assert [m.offset for m in found] == [data.find(head(n)) - len(LINE) for n in range(len(bodies))]


LOCALISED = b"From ana en example.org  Mon Jan %d 10:00:00 2026\n"
PUBLIC_INBOX = b"From mboxrd@z Thu Jan  1 00:00:00 1970\n"
PLAIN_PIPERMAIL = b"From jo@example.org  Mon Jan 05 10:00:00 2026\nFrom: jo@example.org (Jo Doe)\n"
DATED = b"Date: Mon, 5 Jan 2026 10:00:00 +0000\nMessage-ID: <%d@example.org>\n\nx\n\n"


def texts(text: bytes) -> bytes:
    return archive(PEOPLE, [*TEXTS, text])


DIALECT_CASES: dict[str, tuple[bytes, str | None]] = {
    "pipermail": (archive(PIPERMAIL, TEXTS), "pipermail"),
    "localised pipermail": (archive(LOCALISED, TEXTS), "pipermail"),
    "pipermail that hides no address": (
        b"".join(PLAIN_PIPERMAIL + DATED % n for n in range(4)),
        "pipermail",
    ),
    "pipermail that began to hide addresses": (
        b"".join(PLAIN_PIPERMAIL + DATED % n for n in range(4)) + archive(PIPERMAIL, TEXTS),
        "pipermail",
    ),
    "postgresql.org": (archive(PG, TEXTS, between=b""), "pg"),
    "a month of postgresql.org that ends with blank lines": (archive(PG, TEXTS), "pg"),
    "public-inbox": (b"".join(PUBLIC_INBOX + head(n) + b"x\n\n" for n in range(4)), "mboxrd"),
    "a quoted line": (texts(b"He said:\n\n>From here on.\nYes.\n"), "mboxo"),
    "a quoted line in a quote": (texts(b"> He said:\n>>From here on.\n> Yes.\n"), "mboxrd"),
    "a twice quoted line": (texts(b"He said:\n\n>>From here on.\nYes.\n"), "mboxrd"),
    "a reply to a line with From": (texts(b">He said:\n>From here on.\n>Yes.\n"), None),
    "a line that is not quoted": (
        texts(b"He said:\n\nFrom here on.\n\n>From here on.\nYes.\n"),
        "plain",
    ),
    "an unknown writer that leaves no blank lines": (archive(PEOPLE, TEXTS, between=b""), "pg"),
    "nothing that tells": (archive(PEOPLE, TEXTS), None),
    "patches": (b"".join(GIT_LINE + head(n) + b"x\n\n" for n in range(4)), None),
    "UUCP": (PEOPLE % 1 + b">From jo Mon Jan  5 10:00:00 1996 remote from a\n" + head(1), None),
    "nothing": (b"", None),
}


@pytest.mark.parametrize("crlf", [False, True], ids=["LF", "CRLF"])
@pytest.mark.parametrize("name", DIALECT_CASES)
def test_dialect_is_detected_by_its_writer(name: str, crlf: bool) -> None:
    data, dialect = DIALECT_CASES[name]
    assert find_dialect(data.replace(b"\n", b"\r\n") if crlf else data) == dialect


def test_only_a_sample_is_read_to_find_the_dialect() -> None:
    long = PEOPLE % 1 + head(1) + b"x\n" * (SAMPLE // 2) + b"\n"
    assert find_dialect(long + texts(b"He said:\n\n>From here on.\nYes.\n")) is None


@pytest.mark.parametrize(("setting", "found", "wrong"), [
    ("plain", "pipermail", True),
    ("plain", "mboxrd", True),
    ("mboxo", "mboxrd", True),
    ("mboxrd", "plain", True),
    ("plain", "plain", False),
    ("pipermail", "", False),
    ("mboxrd", "mboxo", False),
    ("pg", "plain", False),
])  # fmt: skip
def test_setting_contradicts_archive_that_differs(setting: str, found: str, wrong: bool) -> None:
    assert contradicts(setting, found) == wrong
