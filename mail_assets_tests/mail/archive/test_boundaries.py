"""From_ lines that start a message: real writers, forgeries, attached archives."""

from collections.abc import Sequence

import pytest

from mail_assets.mail.archive.mbox import DIALECTS, RawMessage, extract_message, split_mbox
from mail_assets_tests.mail.corpora import reported
from mail_assets_tests.mail.mails import GIT_LINE, head

FORGED_LINE = b"From bob@example.org Tue Jan  6 10:00:00 2026\n"
FORGED_HEAD = b"From: Bob <bob@example.org>\nSubject: I resign\n"
IDS = b"Message-ID: <forged@example.org>\nDate: Tue, 6 Jan 2026 10:00:00 +0000\n"
FORGED = FORGED_LINE + FORGED_HEAD + IDS + b"\nForged.\n"


def split(data: bytes, dialect: str = "plain") -> list[RawMessage]:
    return list(split_mbox(data, dialect))


def archive(line: bytes, bodies: Sequence[bytes], between: bytes = b"\n") -> bytes:
    """An archive of one writer; its From_ line has %d for the day. Each body is a message."""
    return (
        between.join((line % (n % 19 + 10)) + head(n) + body for n, body in enumerate(bodies))
        + between
    )


PEOPLE = b"From ann%d@example.org Mon Jan 05 10:00:00 2026\n"
PG = b"From dev-owner+archive@lists.example.org Tue Jan %d 10:00:00 2026\n"
PIPERMAIL = b"From ann at example.org  Mon Jan %d 10:00:00 2026\n"
TEXTS = [b"text %d\n" % n for n in range(12)]


def with_forged(text: bytes) -> list[bytes]:
    return [*TEXTS[:6], text, *TEXTS[6:]]


@pytest.mark.parametrize("dialect", ["plain", "mboxo", "mboxrd"])
def test_from_line_without_a_blank_line_above_is_text(dialect: str) -> None:
    found = split(archive(PEOPLE, with_forged(b"He wrote:\n" + FORGED)), dialect)
    assert len(found) == 13
    assert b"Forged." in found[6].raw
    assert not any(one.suspicious for one in found)


@pytest.mark.parametrize(("dialect", "line"), [("pg", PG), ("pipermail", PIPERMAIL)])
def test_odd_line_without_a_blank_line_is_text(dialect: str, line: bytes) -> None:
    found = split(archive(line, with_forged(b"He wrote:\n" + FORGED), between=b""), dialect)
    assert len(found) == 13
    assert b"Forged." in found[6].raw


@pytest.mark.parametrize(("dialect", "line"), [("pg", PG), ("pipermail", PIPERMAIL)])
def test_odd_line_after_a_blank_line_is_suspicious(dialect: str, line: bytes) -> None:
    found = split(archive(line, with_forged(b"He wrote:\n\n" + FORGED)), dialect)
    assert [one.suspicious for one in found] == [n == 7 for n in range(14)]


def test_other_sender_is_suspicious_if_one_program_writes() -> None:
    bodies = [*TEXTS, *TEXTS, b"He wrote:\n\n" + FORGED]
    assert [one.suspicious for one in split(archive(PG, bodies))] == [n == 25 for n in range(26)]


@pytest.mark.parametrize("fields", [IDS.splitlines(True)[0], IDS.splitlines(True)[1], b""])
@pytest.mark.parametrize(("dialect", "line"), [("pg", PG), ("pipermail", PIPERMAIL)])
def test_message_without_id_or_date_is_suspicious(dialect: str, line: bytes, fields: bytes) -> None:
    forged = line % 17 + FORGED_HEAD + fields + b"\nForged.\n"
    found = split(archive(line, with_forged(b"He wrote:\n" + forged)), dialect)
    assert [one.suspicious for one in found] == [n == 7 for n in range(14)]


def test_real_writers_own_rare_lines_are_kept() -> None:
    """postgresql.org writes `From nobody` for a message without envelope sender."""
    rare = b"From nobody Tue Jan  6 10:00:00 2026\n" + head(99) + b"x\n"
    assert len(split(archive(PG, with_forged(b"text\n" + rare), between=b""), "pg")) == 14


RELAYED = b"Received: from a.example.org by b.example.org; Mon, 5 Jan 2026 10:00:00 +0000\n"


@pytest.mark.parametrize("dialect", ["plain", "mboxo", "mboxrd"])
def test_message_after_one_without_line_end_is_kept(dialect: str) -> None:
    """Mailman 2 and mutt add one line end to each message, also if it already has one."""
    data = b"\n".join(PEOPLE % n + RELAYED + head(n) + b"text" for n in range(2))
    found = split(data, dialect)
    assert [one.suspicious for one in found] == [False, True]


def test_message_after_a_closing_delimiter_is_kept() -> None:
    multipart = b'Content-Type: multipart/mixed;\n boundary="b=1"\n'
    body = b"--b=1\n\ntext\n--b=1--"
    data = b"\n".join(PEOPLE % n + multipart + head(n) + body for n in range(3))
    assert len(split(data, "mboxo")) == 3


def test_archive_without_blank_lines_is_split_and_flagged() -> None:
    found = split(archive(PEOPLE, TEXTS, between=b""))
    assert len(found) == 12
    assert [one.suspicious for one in found] == [n > 0 for n in range(12)]


ATTACHED = PEOPLE % 50 + head(50) + b"attached\n\n" + PEOPLE % 51 + head(51) + b"attached\n\n"


@pytest.mark.parametrize("dialect", ["plain", "pg"])
def test_attached_archive_is_part_of_its_message(dialect: str) -> None:
    carrier = (
        PEOPLE % 1
        + b'Content-Type: multipart/mixed; boundary="b1"\n'
        + head(1)
        + b"--b1\n\nsee there\n--b1\nContent-Type: application/mbox\n\n"
        + ATTACHED
        + b"--b1--\n"
    )
    data = PEOPLE % 0 + head(0) + b"x\n\n" + carrier + b"\n" + PEOPLE % 2 + head(2) + b"y\n\n"
    found = split(data, dialect)
    assert len(found) == 3
    assert found[1].raw.count(b"attached") == 2


def test_truncated_message_swallows_no_other() -> None:
    whole = b'Content-Type: multipart/mixed; boundary="b1"\n' + head(1) + b"--b1\n\nx\n--b1--\n"
    cut = whole.removesuffix(b"--b1--\n")
    data = PEOPLE % 1 + cut + b"\n" + PEOPLE % 2 + whole + b"\n" + PEOPLE % 3 + head(3)
    assert len(split(data)) == 3


FORMS = {
    "Google Takeout": b"From 1790000000000000000@xxx Mon Jan 05 10:00:00 +0000 2026\n",
    "Google Takeout, negative": b"From -4123456789012345678@xxx Mon Jan 05 10:00:00 +0000 2026\n",
    "Google Takeout, no host": b"From -4123456789 Mon Jan 05 10:00:00 +0000 2026\n",
    "Thunderbird": b"From - Mon Jan 05 10:00:00 2026\n",
    "Thunderbird's exports": b"From \n",
    "Thunderbird's exports, a dash": b"From -\n",
    "Usenet of Google Groups": b"From -4123456789012345678\n",
    "Google Takeout, no date": b"From 1790000000000000000@xxx\n",
    "an envelope without a date": b"From jo@example.org\n",
    "Eudora": b"From ???@??? Mon Jan 05 10:00:00 2026\n",
    "public-inbox": b"From mboxrd@z Thu Jan  1 00:00:00 1970\n",
    "Python": b"From MAILER-DAEMON Mon Jan  5 10:00:00 2026\n",
    "a day without a time": b"From MAILER-DAEMON Thu Jan 01 1970\n",
    "a day as in a header": b"From nobody 1 Jan 1970\n",
    "a day in numbers": b"From nobody 1970-01-01\n",
    "Python, without a date": b"From MAILER-DAEMON\n",
    "localised pipermail": b"From ana en example.org  Mon Jan  5 10:00:00 2026\n",
    "an envelope without a sender": b"From  Mon Jan  5 10:00:00 2026\n",
    "UUCP": b"From host!jo Mon Jan  5 10:00:00 1996 remote from host\n",
    "a named zone": b"From jo@example.org Mon Jan  5 10:00:00 CET 2026\n",
    "a date as in a header": b"From jo@example.org Mon, 5 Jan 2026 10:00:00 +0000\n",
    "git format-patch": GIT_LINE,
}


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("end", [b"\n", b"\r\n"], ids=["LF", "CRLF"])
@pytest.mark.parametrize("form", FORMS)
def test_archive_of_any_writer_is_split(form: str, end: bytes, dialect: str) -> None:
    data = b"".join(FORMS[form] + head(n) + b"text\n\n" for n in range(4)).replace(b"\n", end)
    found = split(data, dialect)
    assert len(found) == 4
    assert not any(one.suspicious for one in found)
    assert {one.from_line for one in found} == {FORMS[form].strip(b"\n")}


@pytest.mark.parametrize("end", [b"\n", b"\r\n"], ids=["LF", "CRLF"])
def test_uucp_lines_above_a_header_belong_to_it(end: bytes) -> None:
    relays = (
        b">From jo Mon Jan  5 09:58 EST 1987 remote from pier\n>From uucp Mon Jan  5 09:59 1987\n"
    )
    line = b"From uucp Mon Jan  5 10:00:00 1987\n"
    data = b"".join(line + relays + head(n) + b"text\n\n" for n in range(3)).replace(b"\n", end)
    found = split(data)
    assert [one.raw.startswith(b">From jo") for one in found] == [True] * 3
    assert not any(one.suspicious for one in found)


@pytest.mark.parametrize("form", [
    "Thunderbird's exports", "Usenet of Google Groups", "an envelope without a date",
    "a day without a time", "a day in numbers", "Python, without a date", "git format-patch",
])  # fmt: skip
def test_rare_forms_start_no_message_in_other_archives(form: str) -> None:
    forged = FORMS[form] + FORGED_HEAD + IDS + b"\nForged.\n"
    assert len(split(archive(PEOPLE, with_forged(b"See:\n\n" + forged)))) == 13


def test_patch_before_other_mail_is_no_archive_of_patches() -> None:
    found = split(GIT_LINE + head(1) + b"x\n\n" + PEOPLE % 2 + head(2) + GIT_LINE + head(3))
    assert [one.suspicious for one in found] == [True, False]
    assert found[1].from_line == (PEOPLE % 2).strip()


def test_pseudo_message_of_pine_is_left_out() -> None:
    own = (
        b"From MAILER-DAEMON Mon Jan  5 10:00:00 2026\nDate: 05 Jan 2026 10:00:00 +0000\n"
        b"From: Mail System Internal Data <MAILER-DAEMON@example.org>\n"
        b"Subject: DON'T DELETE THIS MESSAGE -- FOLDER INTERNAL DATA\n"
        b"X-IMAP: 1767607200 0000000002\nStatus: RO\n\nThis text is part of the format.\n\n"
    )
    found = split(own + archive(PEOPLE, TEXTS))
    assert len(found) == 12
    assert found[0].offset == len(own)


def mboxcl(bodies: Sequence[bytes]) -> bytes:
    """An archive without quoting: each message has its length."""
    return b"".join(
        PEOPLE % n + b"Content-Length: %d\n" % len(body) + head(n) + body + b"\n"
        for n, body in enumerate(bodies)
    )


def test_content_length_to_the_next_message_is_trusted() -> None:
    found = split(mboxcl(with_forged(b"He wrote:\n\n" + FORGED)))
    assert len(found) == 13
    assert b"Forged." in found[6].raw


def test_content_length_of_a_single_message_swallows_no_other() -> None:
    others = archive(PEOPLE, TEXTS)
    own = PEOPLE % 1 + b"Content-Length: %d\n" % (len(others) + 3) + head(1) + b"x\n\n"
    assert len(split(own + others)) == 13


# --- folders written by several programs --------------------------------------------------------

MOZILLA = b"X-Mozilla-Status: 0001\nX-Mozilla-Status2: 00000000\n"


def folder(*messages: str) -> bytes:
    """A folder of messages in the given FORMS; after `+`, with the fields of Thunderbird."""
    written = []
    for number, name in enumerate(messages):
        form = name.removeprefix("+")
        line = ACCOUNT if form == "of an account" else FORMS[form]
        line = line % number if b"%d" in line else line
        fields = MOZILLA if form != name else b""
        written.append(line + fields + head(number) + b"text\n\n")
    return b"".join(written)


FORMS["people"] = PEOPLE
FORMS["ISO date"] = b"From jo@example.org 2026-01-05 10:00:00 +0100\n"
FORMS["no weekday"] = b"From jo@example.org 5 Jan 2026 10:00\n"
FORMS["hour of one digit"] = b"From jo@example.org Mon Jan  5 9:00:00 2026\n"
FORMS["late"] = b"From jo@example.org Mon Jan  5 10:00:00 2026\n\n"
ACCOUNT = b"From \nX-Account-Key: account1\nX-UIDL: UID1-2\n" + MOZILLA
FORMS["localised date"] = b"From jo@example.org lun. janv.  5 10:00:00 2026\n"

OLD, NEW = "+Thunderbird", "+Thunderbird's exports"


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r\r\n", b"\r\r\r\n", b"\r"])
@pytest.mark.parametrize("messages", [
    (OLD, OLD, NEW, NEW, NEW),
    (OLD, NEW, OLD, NEW, OLD),
    (OLD,) * 30 + (NEW,) + (OLD,) * 30,
    (NEW, OLD, NEW, OLD),
    ("people", "people", NEW),
    ("people", "people", "an envelope without a date"),
    ("people", "Google Takeout, no date", "Google Takeout, no date", "people"),
    ("public-inbox", "public-inbox", "a date as in a header", "a date as in a header"),
    ("Eudora", "Eudora", "Thunderbird's exports", "Thunderbird's exports", "Eudora"),
    ("people", "ISO date", "people", "ISO date", "people"),
    ("Python", "Usenet of Google Groups", "Usenet of Google Groups", "UUCP"),
    ("people", "localised date", "localised date", "hour of one digit", "no weekday"),
    ("ISO date", "ISO date"),
    ("no weekday", "people", "no weekday"),
    ("people", "late", "late", "people"),
    ("people", "people", "late"),
    ("late", "late"),
    ("people", "of an account", "people"),
])  # fmt: skip
def test_folder_of_several_programs_is_split(messages: tuple[str, ...], end: bytes) -> None:
    data = folder(*messages).replace(b"\n", end)
    found = split(data)
    assert len(found) == len(messages)
    assert [one.raw for one in found] == [
        one.raw.replace(b"\n", b"\n" if end == b"\r" else b"\r\n" if len(end) > 1 else end)
        for one in split(folder(*messages))
    ]
    last = data[found[-1].offset :][: found[-1].length]
    assert extract_message(last, "plain") == found[-1].raw


def test_mail_of_another_program_is_suspicious() -> None:
    found = split(folder(*["people"] * 9, "an envelope without a date", NEW))
    assert [one.suspicious for one in found] == [False] * 9 + [True, False]


def test_thunderbird_line_needs_no_blank_line_above() -> None:
    data = folder(OLD, OLD, NEW, NEW).replace(b"text\n\n", b"text\n")
    assert len(split(data)) == 4


PROSE = {
    "a word": b"From\nthe start: this is prose.\n",
    "a header in prose": b"From \nTo: jo@example.org\nSubject: x\n\nsee above\n",
    "a quoted header": b"From jo@example.org\nSent: Monday 5 January 2026 10:00\nTo: y\n",
    "an appointment": b"From 10:00 to 11:00\nWhere: room 5\nDate: Monday\n",
    "times": b"From jo at 10:00\nNote: bring the Message-ID: <x@y>\n",
    "a header with text in it": b"From \nDate: x\nMessage-ID: <x@y>\nand so on\n\nend\n",
    "a line and a blank one": b"From jo@example.org Mon Jan  5 10:00:00 2026\n\nDate: x\n\ny\n",
    "a log": b"From 2026-01-05 10:00:00 host\nkernel: Date: x\n",
}


@pytest.mark.parametrize("prose", PROSE)
@pytest.mark.parametrize("times", [1, 6])
def test_prose_in_a_folder_starts_no_message(prose: str, times: int) -> None:
    bodies = with_forged(b"text\n\n" + (PROSE[prose] + b"\n") * times)
    assert len(split(archive(PEOPLE, bodies))) == 13


@pytest.mark.parametrize("junk", [
    b"\0", b"\0" * 9, b"\0" * (200 << 10), b"\n" + b"\0" * 64, b"\0" * 64 + b"\n", b"\x1a",
    b"\n\x1a", b"\n\xef\xbb\xbf", b"\xef\xbb\xbf",
])  # fmt: skip
def test_junk_in_front_of_a_from_line_hides_no_message(junk: bytes) -> None:
    one, two = PEOPLE % 1 + head(1) + b"one\n", PEOPLE % 2 + head(2) + b"two\n"
    found = split(one + junk + two + junk.replace(b"\xef\xbb\xbf", b""))
    assert [message.raw.rstrip(b"\n\0") for message in found] == [
        head(1) + b"one",
        head(2) + b"two",
    ]
    assert not any(message.suspicious for message in found)


@pytest.mark.parametrize("junk", [b"\0" * 5_000, b"\r\n\0\n"])
def test_junk_in_front_of_an_archive_is_no_message(junk: bytes) -> None:
    assert len(split(junk + folder("people", "people"))) == 2


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("R01-thunderbird-upgraded-folder", 5),
        ("R02-thunderbird-upgraded-deleted", 5),  # one message is deleted
        ("R37-nul-run-before-from-line", 2),
        ("R38-crcrlf", 2),
    ],
)
def test_reported_folder_is_split(name: str, count: int) -> None:
    assert len(split(reported(f"{name}.mbox").read_bytes())) == count
