"""Whole messages: fields, body, attachments, content hash and flags."""

import base64
import gzip
import unicodedata
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mail_assets.mail.archive.mbox import MAX_MESSAGE, RawMessage, split_archive
from mail_assets.mail.message import parse as module
from mail_assets.mail.message.addresses import Address
from mail_assets.mail.message.body import MAX_BODY, SEPARATOR
from mail_assets.mail.message.message import FLAGS, Message
from mail_assets.mail.message.parse import UnreadableMessageError, parse_message
from mail_assets_tests.mail.invariants import check_message
from mail_assets_tests.mail.mails import HEAD, multipart, raw_message


def read(raw: bytes, from_line: bytes = b"", dialect: str = "pg", charset: str = "") -> Message:
    message = raw_message(raw, from_line)
    return parse_message(message, month="2026-01", dialect=dialect, charset=charset)


def nested(depth: int) -> bytes:
    tops = (f"Content-Type: multipart/mixed; boundary=b{n}\n\n--b{n}\n" for n in range(depth))
    return "".join(tops).encode()


def ids(count: int) -> bytes:
    return b" ".join(b"<%d@x>" % number for number in range(count))


def test_every_field_of_a_message_is_read() -> None:
    found = read(HEAD + b"\nbody\n")
    assert (found.message_id, found.subject, found.subject_base) == (
        "1@example.org",
        "Re: [HACKERS] fix x",
        "fix x",
    )
    assert (found.from_name, found.from_email) == ("Jo Doe", "jo@example.org")
    assert found.to == (("", "hackers@lists.example.org"), ("Ann", "ann@example.org"))
    assert (found.cc, found.reply_to) == ((("", "bo@example.org"),), ())
    assert found.sent_at == datetime(2026, 1, 5, 14, 18, 12, tzinfo=UTC)
    assert (found.date_source, found.date_raw) == ("date", "Mon, 5 Jan 2026 15:18:12 +0100")
    assert found.in_reply_to == ("0@example.org",)
    assert found.references == ("00@example.org", "0@example.org")
    assert found.list_id == "hackers.lists.example.org"
    assert (found.body_text, found.body_kind) == ("body\n", "plain")
    assert (found.attachments, found.flags) == ((), ())


@pytest.mark.parametrize(("raw", "flag"), [
    (HEAD.replace(b"Message-ID", b"X-Id") + b"\nx", "generated_id"),
    (HEAD.replace(b"Date", b"X-Date") + b"\nx", "date_repaired"),
    (HEAD.replace(b"Doe <", b"Doe via L <") + b"Reply-To: a@b.org\n\nx", "munged_from"),
    (HEAD.replace(b"fix x", b"x" * 3_000) + b"\nx", "headers_capped"),
    (HEAD + b"X: " + b"x" * (1 << 20) + b"\n\nx", "headers_capped"),
    (HEAD + (b"To: " + b"a@b.org," * 6_000 + b"\n") * 2 + b"\n", "addresses_capped"),
    (HEAD + b"References: " + ids(2_000) + b"\n\n", "references_capped"),
    (HEAD + b"Content-Type: multipart/mixed\n\nx", "no_boundary"),
    (HEAD + multipart("mixed", *[b"\na"] * 2_001), "too_many_parts"),
    (HEAD + nested(60), "too_deep"),
    (HEAD + b"\n" + b"x\n" * 2_000_000, "text_capped"),
    (HEAD + multipart("encrypted", b"Content-Type: application/pgp-encrypted\n\n1\n"), "encrypted"),
    (b"no headers", "no_headers"),
    (HEAD + b"\nn\xe9", "charset_guessed"),
    (HEAD.replace(b"Jo Doe", b"J\xf6 Doe") + b"\nx", "charset_guessed"),
])  # fmt: skip
def test_every_repair_leaves_its_flag(raw: bytes, flag: str) -> None:
    found = read(raw)
    assert flag in found.flags
    assert set(found.flags) <= FLAGS.keys()
    assert list(found.flags) == sorted(found.flags)


def test_marks_of_the_splitter_become_flags() -> None:
    raw = RawMessage(0, 9, b"From a@b Mon Jan  5 15:18:12 2026", b"Subject: s\n\nx", True, True)
    found = parse_message(raw, month="2026-01", dialect="pg")
    assert {"truncated", "suspicious"} <= set(found.flags)
    assert found.date_source == "from_line"
    harmless = raw._replace(truncated=False, suspicious=False)
    assert parse_message(harmless, month="2026-01", dialect="pg").flags == (
        "date_repaired",
        "generated_id",
    )


def test_rewritten_author_is_restored_with_reply_to() -> None:
    raw = (
        b"From: Some Org via Announce <announce-noreply@lists.example.org>\n"
        b"Reply-To: Some Org <press@example.com>\n\nx"
    )
    found = read(raw)
    assert (found.from_name, found.from_email) == ("Some Org", "press@example.com")
    assert found.reply_to == (("Some Org", "press@example.com"),)


def test_obfuscated_addresses_are_restored_in_pipermail_only() -> None:
    raw = b"From: jo at example.org (Jo)\n\nx"
    assert read(raw, dialect="pipermail").from_email == "jo@example.org"
    assert read(raw, dialect="pg").from_email == ""


def test_raw_8_bit_headers_are_read_by_the_charset_of_the_body() -> None:
    raw = "Subject: Привет\nContent-Type: text/plain; charset=koi8-r\n\nx".encode("koi8-r")
    assert read(raw).subject == "Привет"


UNLABELLED = "From: Иван <ivan@example.org>\nSubject: Ошибка\n\nСбой ядра\n".encode("koi8-r")


def test_unlabelled_mail_uses_the_charset_of_its_list() -> None:
    found = read(UNLABELLED, charset="koi8-r")
    assert (found.from_name, found.subject, found.body_text) == ("Иван", "Ошибка", "Сбой ядра\n")
    assert "charset_guessed" in found.flags
    assert "charset_guessed" in read(UNLABELLED).flags


def test_id_and_hash_ignore_the_charset_of_the_list() -> None:
    guessed, usual = read(UNLABELLED), read(UNLABELLED, charset="koi8-r")
    assert guessed.message_id == usual.message_id
    assert guessed.content_hash == usual.content_hash


@pytest.mark.parametrize(
    ("mark", "charset", "text"),
    [
        (" на ", "koi8-r", "напишите мне"),
        (" ＠ ", "euc-jp", "連絡は田中まで"),
        ("在", "gb2312", "请写信到"),
        ("於", "big5", "請寫信到"),
        (" στο ", "iso8859-7", "γράψτε μου"),
        (" at ", "windows-1252", "à bientôt"),
    ],
)
def test_pipermail_at_mark_shows_the_charset_of_the_list(
    mark: str, charset: str, text: str
) -> None:
    raw = f"From: jo{mark}example.org (Jo)\nSubject: {text}\n\n{text}\n".encode(charset)
    found = read(raw, dialect="pipermail")
    assert (found.from_email, found.subject, found.body_text) == (
        "jo@example.org",
        text,
        f"{text}\n",
    )
    assert "charset_guessed" in found.flags


def test_pipermail_of_ascii_has_no_charset_to_be_guessed() -> None:
    raw = "From: jo на example.org (Jo)\nSubject: s\n\ntext\n".encode("koi8-r")
    assert "charset_guessed" not in read(raw, dialect="pipermail").flags


def test_texts_of_a_message_are_stored_composed() -> None:
    name = unicodedata.normalize("NFD", "Zoé Élégant")
    text = unicodedata.normalize("NFD", "la présidente\n")
    raw = (
        f"From: {name} <zoe@example.org>\nTo: {name} <list@example.org>\nSubject: Re: {text}"
        f"Message-ID: <1@example.org>\n"
    ).encode()
    part = f"Content-Disposition: attachment; filename={name}.txt\n\nx".encode()
    found = read(raw + multipart("mixed", f"\n{text}".encode(), part))
    assert (found.from_name, found.to[0].name) == ("Zoé Élégant", "Zoé Élégant")
    assert (found.subject, found.subject_base) == ("Re: la présidente", "la présidente")
    assert found.body_text.strip() == "la présidente"
    assert [one.name for one in found.attachments] == ["Zoé Élégant.txt"]


def test_attached_text_keeps_its_place_when_composed() -> None:
    own, inner = (unicodedata.normalize("NFD", text) for text in ("réunion", "été"))
    sender = unicodedata.normalize("NFD", "From: Zoé\n\n")
    part = f"Content-Type: message/rfc822\n\n{sender}{inner}\n"
    found = read(HEAD + multipart("mixed", f"\n{own}\n".encode(), part.encode()))
    [(start, text_start)] = found.attached_texts
    assert found.body_text[:start].strip() == "réunion"
    assert found.body_text[start:text_start] == f"{SEPARATOR}From: Zoé\n\n"
    assert found.body_text[text_start:].strip() == "été"


def test_text_that_grows_in_nfc_stays_within_the_limit() -> None:
    found = read(HEAD + b"\n" + ("\ufb2c" * 10 + "\n").encode() * (MAX_BODY // 11))
    assert len(found.body_text) == MAX_BODY
    assert found.flags == ("text_capped",)


def test_vietnamese_of_windows_1258_is_stored_composed() -> None:
    text = "cơ sở dữ liệu"
    data = unicodedata.normalize("NFD", text).replace("o\u031b", "ơ").replace("u\u031b", "ư")
    head = b"Content-Type: text/plain; charset=windows-1258\n\n"
    data = data.replace("e\u0323\u0302", "ê\u0323")
    assert read(HEAD + head + data.encode("cp1258")).body_text == text


def test_ids_and_hashes_are_not_normalised() -> None:
    raw = "Subject: réunion\n\nété\n"
    sent, composed = read(unicodedata.normalize("NFD", raw).encode()), read(raw.encode())
    assert sent.body_text == composed.body_text
    assert sent.message_id != composed.message_id
    assert sent.content_hash != composed.content_hash


def test_generated_id_is_the_same_in_every_copy() -> None:
    raw = b"From: jo@example.org\nDate: Mon, 5 Jan 2026 15:18:12 +0100\nSubject: a b\n\nx\n"
    copy = raw.replace(b"Subject: a b", b"Received: x\nSubject: a\n b").replace(b"\n", b"\r\n")
    made = {read(raw).message_id, read(copy + b"\r\n").message_id}
    assert len(made) == 1
    assert read(raw.replace(b"x\n", b"y\n")).message_id not in made


@pytest.mark.parametrize(
    ("raw", "reason"),
    [(b"", "empty"), (b"\n \r\n", "empty"), (b"x" * (MAX_MESSAGE + 1), f"{MAX_MESSAGE + 1} bytes")],
    ids=["nothing", "blank", "too long"],
)
def test_unreadable_bytes_have_a_reason(raw: bytes, reason: str) -> None:
    with pytest.raises(UnreadableMessageError, match=reason) as error:
        read(raw)
    assert reason in error.value.reason


def test_unforeseen_error_makes_one_message_unreadable(monkeypatch: pytest.MonkeyPatch) -> None:
    def exhausted(*_: object) -> None:
        raise MemoryError("no room")

    monkeypatch.setattr(module, "_parse", exhausted)
    with pytest.raises(UnreadableMessageError, match="MemoryError: no room"):
        read(HEAD + b"\nx")


@pytest.mark.parametrize("options", [("January", "pg"), ("2026-01", "mbx")])
def test_wrong_call_is_no_unreadable_message(options: tuple[str, str]) -> None:
    with pytest.raises(ValueError, match=r"January|mbx") as error:
        parse_message(raw_message(b"Subject: s\n\nx"), month=options[0], dialect=options[1])
    assert not isinstance(error.value, UnreadableMessageError)


PIECES = st.sampled_from([
    b"\n", b"\n\n", b"\r\n", b"--b1", b"--b1--", b"\0", b"=?utf-7?q?+2AA-?=", b"<", b">", b'"',
    b"(", b"Subject: ", b"From: ", b"Date: ", b"Message-ID: ", b"References: ", b"Content-Type: ",
    b"multipart/mixed; boundary=b1", b"message/rfc822", b"text/html; charset=utf-7", b"\xff",
    b"Content-Transfer-Encoding: base64",
    b"Content-Disposition: attachment; filename*=utf-16''%00%d8",
])  # fmt: skip


@settings(max_examples=200)
@given(st.lists(PIECES | st.binary(max_size=12), max_size=30).map(b"".join))
def test_any_bytes_parse_without_an_unforeseen_error(raw: bytes) -> None:
    check_message(module._parse(raw_message(raw), "2026-01", "pipermail"))


def test_compressed_month_reads_back_message_by_message(tmp_path: Path) -> None:
    line = b"From a@b Mon Jan  5 15:18:12 2026\n"
    path = tmp_path / "x.202601"
    path.write_bytes(gzip.compress((line + HEAD + b"\nx\n\n") * 2))
    found = [
        parse_message(raw, month="2026-01", dialect="plain") for raw in split_archive(path, "plain")
    ]
    assert [one.body_text for one in found] == ["x\n", "x\n"]
    assert len({one.content_hash for one in found}) == 1


def test_names_and_subjects_lose_what_a_page_obeys() -> None:
    turned = "\u202egpj.exe\u202c \u2066x\u2069\u2028y\u0007 \u200f\U000e0041"
    field = f"=?utf-8?b?{base64.b64encode(turned.encode()).decode()}?=".encode()
    raw = (
        b"From: %b <jo@example.org>\nTo: %b <ann@example.org>\nSubject: Re: %b\n" % (*(field,) * 3,)
        + b"Content-Type: text/plain; charset=utf-8\n\n"
        + turned.encode()
    )
    found = parse_message(raw_message(raw), month="2026-01", dialect="plain")
    assert (found.subject, found.subject_base) == ("Re: gpj.exe x y", "gpj.exe x y")
    assert found.from_name == "gpj.exe x y"
    assert found.to == (Address("gpj.exe x y", "ann@example.org"),)
    assert "\u202egpj" in found.body_text
