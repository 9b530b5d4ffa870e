"""Whole messages: fields, body, content hash and flags; authors of rewritten From fields; lists."""

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
from mail_assets_tests.cases import cases
from mail_assets_tests.mail.invariants import check_message
from mail_assets_tests.mail.mails import HEAD, multipart, raw_message, read_mail


def nested(depth: int) -> bytes:
    tops = (f"Content-Type: multipart/mixed; boundary=b{n}\n\n--b{n}\n" for n in range(depth))
    return "".join(tops).encode()


def ids(count: int) -> bytes:
    return b" ".join(b"<%d@x>" % number for number in range(count))


def test_every_field_of_a_message_is_read() -> None:
    found = read_mail(HEAD + b"\nbody\n")
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
    found = read_mail(raw)
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
        b"List-Id: <announce.lists.example.org>\n"
        b"Reply-To: Some Org <press@example.com>\n\nx"
    )
    found = read_mail(raw)
    assert (found.from_name, found.from_email) == ("Some Org", "press@example.com")
    assert found.reply_to == (("Some Org", "press@example.com"),)


def test_rest_of_a_mail_that_pipermail_split_has_no_sender() -> None:
    raw = b"From: bogus at does.not.exist.com ()\nSubject: No subject\n\n here I learnt of it.\n"
    found = read_mail(raw, dialect="pipermail")
    assert (found.from_name, found.from_email, found.subject) == ("", "", "")
    assert "suspicious" in found.flags
    assert read_mail(raw, dialect="plain").subject == "No subject"


def test_obfuscated_addresses_are_restored_in_pipermail_only() -> None:
    raw = b"From: jo at example.org (Jo)\n\nx"
    assert read_mail(raw, dialect="pipermail").from_email == "jo@example.org"
    assert read_mail(raw, dialect="pg").from_email == ""


def test_raw_8_bit_headers_are_read_by_the_charset_of_the_body() -> None:
    raw = "Subject: Привет\nContent-Type: text/plain; charset=koi8-r\n\nx".encode("koi8-r")
    assert read_mail(raw).subject == "Привет"


UNLABELLED = "From: Иван <ivan@example.org>\nSubject: Ошибка\n\nСбой ядра\n".encode("koi8-r")


def test_unlabelled_mail_uses_the_charset_of_its_list() -> None:
    found = read_mail(UNLABELLED, charset="koi8-r")
    assert (found.from_name, found.subject, found.body_text) == ("Иван", "Ошибка", "Сбой ядра\n")
    assert "charset_guessed" in found.flags
    assert "charset_guessed" in read_mail(UNLABELLED).flags


def test_id_and_hash_ignore_the_charset_of_the_list() -> None:
    guessed, usual = read_mail(UNLABELLED), read_mail(UNLABELLED, charset="koi8-r")
    assert guessed.message_id == usual.message_id
    assert guessed.content_hash == usual.content_hash


@pytest.mark.parametrize(("mark", "charset", "text"), [
    (" на ", "koi8-r", "напишите мне"),
    (" ＠ ", "euc-jp", "連絡は田中まで"),
    ("在", "gb2312", "请写信到"),
    ("於", "big5", "請寫信到"),
    (" στο ", "iso8859-7", "γράψτε μου"),
    (" at ", "windows-1252", "à bientôt"),
])  # fmt: skip
def test_pipermail_at_mark_shows_charset_of_list(mark: str, charset: str, text: str) -> None:
    raw = f"From: jo{mark}example.org (Jo)\nSubject: {text}\n\n{text}\n".encode(charset)
    found = read_mail(raw, dialect="pipermail")
    assert (found.from_email, found.subject, found.body_text) == (
        "jo@example.org",
        text,
        f"{text}\n",
    )
    assert "charset_guessed" in found.flags


def test_pipermail_of_ascii_has_no_charset_to_be_guessed() -> None:
    raw = "From: jo на example.org (Jo)\nSubject: s\n\ntext\n".encode("koi8-r")
    assert "charset_guessed" not in read_mail(raw, dialect="pipermail").flags


def test_texts_of_a_message_are_stored_composed() -> None:
    name = unicodedata.normalize("NFD", "Zoé Élégant")
    text = unicodedata.normalize("NFD", "la présidente\n")
    raw = (
        f"From: {name} <zoe@example.org>\nTo: {name} <list@example.org>\nSubject: Re: {text}"
        f"Message-ID: <1@example.org>\n"
    ).encode()
    part = f"Content-Disposition: attachment; filename={name}.txt\n\nx".encode()
    found = read_mail(raw + multipart("mixed", f"\n{text}".encode(), part))
    assert (found.from_name, found.to[0].name) == ("Zoé Élégant", "Zoé Élégant")
    assert (found.subject, found.subject_base) == ("Re: la présidente", "la présidente")
    assert found.body_text.strip() == "la présidente"
    assert [one.name for one in found.attachments] == ["Zoé Élégant.txt"]


def test_attached_text_keeps_its_place_when_composed() -> None:
    own, inner = (unicodedata.normalize("NFD", text) for text in ("réunion", "été"))
    sender = unicodedata.normalize("NFD", "From: Zoé\n\n")
    part = f"Content-Type: message/rfc822\n\n{sender}{inner}\n"
    found = read_mail(HEAD + multipart("mixed", f"\n{own}\n".encode(), part.encode()))
    [(start, text_start)] = found.attached_texts
    assert found.body_text[:start].strip() == "réunion"
    assert found.body_text[start:text_start] == f"{SEPARATOR}From: Zoé\n\n"
    assert found.body_text[text_start:].strip() == "été"


def test_text_that_grows_in_nfc_stays_within_the_limit() -> None:
    found = read_mail(HEAD + b"\n" + ("\ufb2c" * 10 + "\n").encode() * (MAX_BODY // 11))
    assert len(found.body_text) == MAX_BODY
    assert found.flags == ("text_capped",)


def test_vietnamese_of_windows_1258_is_stored_composed() -> None:
    text = "cơ sở dữ liệu"
    data = unicodedata.normalize("NFD", text).replace("o\u031b", "ơ").replace("u\u031b", "ư")
    head = b"Content-Type: text/plain; charset=windows-1258\n\n"
    data = data.replace("e\u0323\u0302", "ê\u0323")
    assert read_mail(HEAD + head + data.encode("cp1258")).body_text == text


def test_ids_and_hashes_are_not_normalised() -> None:
    raw = "Subject: réunion\n\nété\n"
    sent, composed = read_mail(unicodedata.normalize("NFD", raw).encode()), read_mail(raw.encode())
    assert sent.body_text == composed.body_text
    assert sent.message_id != composed.message_id
    assert sent.content_hash != composed.content_hash


def test_generated_id_is_the_same_in_every_copy() -> None:
    raw = b"From: jo@example.org\nDate: Mon, 5 Jan 2026 15:18:12 +0100\nSubject: a b\n\nx\n"
    copy = raw.replace(b"Subject: a b", b"Received: x\nSubject: a\n b").replace(b"\n", b"\r\n")
    made = {read_mail(raw).message_id, read_mail(copy + b"\r\n").message_id}
    assert len(made) == 1
    assert read_mail(raw.replace(b"x\n", b"y\n")).message_id not in made


@pytest.mark.parametrize(
    ("raw", "reason"),
    [(b"", "empty"), (b"\n \r\n", "empty"), (b"x" * (MAX_MESSAGE + 1), f"{MAX_MESSAGE + 1} bytes")],
    ids=["nothing", "blank", "too long"],
)
def test_unreadable_bytes_have_a_reason(raw: bytes, reason: str) -> None:
    with pytest.raises(UnreadableMessageError, match=reason) as error:
        read_mail(raw)
    assert reason in error.value.reason


def test_unforeseen_error_makes_one_message_unreadable(monkeypatch: pytest.MonkeyPatch) -> None:
    def exhausted(*_: object) -> None:
        raise MemoryError("no room")

    monkeypatch.setattr(module, "_parse", exhausted)
    with pytest.raises(UnreadableMessageError, match="MemoryError: no room"):
        read_mail(HEAD + b"\nx")


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


def test_names_and_subjects_lose_control_characters() -> None:
    turned = "\u202egpj.exe\u202c \u2066x\u2069\u2028y\u0007 \u200f\U000e0041"
    field = f"=?utf-8?b?{base64.b64encode(turned.encode()).decode()}?=".encode()
    raw = (
        b"From: %b <jo@example.org>\nTo: %b <ann@example.org>\nSubject: Re: %b\n" % (*(field,) * 3,)
        + b"Content-Type: text/plain; charset=utf-8\n\n"
        + turned.encode()
    )
    found = read_mail(raw, dialect="plain")
    assert (found.subject, found.subject_base) == ("Re: gpj.exe x y", "gpj.exe x y")
    assert found.from_name == "gpj.exe x y"
    assert found.to == (Address("gpj.exe x y", "ann@example.org"),)
    assert "\u202egpj" in found.body_text


LIST = "List-Id: Dev list <dev.lists.example.org>\nTo: dev@lists.example.org"
GROUP = "Mailing-List: list dev@groups.example.org; contact dev-owner@groups.example.org"


def read_authors(header: str, body: str = "") -> Message:
    head = header.encode() + b"\nMessage-ID: <1@x>\nDate: Mon, 5 Jan 2026 15:18:12 +0000\n"
    return read_mail(head + body.encode() if body else head + b"\nx")


@cases("sender, others, name, email", {
    "plain": ("Jo Doe <jo@example.com>", LIST, "Jo Doe", "jo@example.com"),
    "a copy to oneself": ("Jo Doe <jo@example.com>",
                          "Reply-To: ann@example.com\nCc: Jo Doe <jo@example.com>", "Jo Doe",
                          "jo@example.com"),
    "a surname": ("Carlo Via Bassi <carlo@example.com>", LIST, "Carlo Via Bassi",
                  "carlo@example.com"),
    "a list writes to itself": (
        "Dev list <dev@lists.example.org>",
        LIST,
        "Dev list",
        "dev@lists.example.org",
    ),
    "a list writes without a name": ("dev@lists.example.org", LIST, "", "dev@lists.example.org"),
    "named via": ("via <v@example.com>", LIST, "via", "v@example.com"),
    "a bounce": ("bounce+jo=example.com@lists.example.org", LIST, "",
                 "bounce+jo=example.com@lists.example.org"),
    "=": ("jo=doe.org@example.com", LIST, "", "jo=doe.org@example.com"),
})  # fmt: skip
def test_ordinary_mail_has_its_sender_for_author(
    sender: str, others: str, name: str, email: str
) -> None:
    found = read_authors(f"From: {sender}\n{others}")
    assert (found.from_name, found.from_email) == (name, email)
    assert not {"munged_from", "author_uncertain"} & set(found.flags)


@cases("sender, others", {
    "original From": ("Eve <eve@evil.example.net>", "X-Original-From: Jo Doe <jo@example.com>"),
    "an address inside the address": ("Jo Doe <jo=40example.com@evil.example.net>", ""),
    "answers": ("Jo Doe via Dev <eve@evil.example.net>", "Reply-To: Jo Doe <jo@example.com>"),
    "copies": ("Jo Doe via Dev <eve@evil.example.net>", "Cc: Jo Doe <jo@example.com>"),
    "original sender": ("Jo Doe via Dev <eve@evil.example.net>",
                        "X-Original-Sender: jo@example.com\nAuthor: Jo Doe <jo@example.com>"),
    "an address in the name": ('"Jo Doe <jo@example.com> via Dev" <eve@evil.example.net>', ""),
    "the address of another list": (
        "Jo Doe <club@evil.example.net>",
        "List-Id: <dev.lists.example.org>\nX-BeenThere: club@evil.example.net\n"
        "Reply-To: Jo Doe <jo@example.com>\nX-Original-From: Jo Doe <jo@example.com>",
    ),
    "LISTSERV of another host": ("Jo Doe <0000012ab34c-dmarc-request@evil.example.net>",
                                 "Reply-To: Jo Doe <jo@example.com>"),
})  # fmt: skip
@pytest.mark.parametrize("fields", [LIST, "To: dev@lists.example.org"])
def test_sender_of_another_host_speaks_for_nobody(sender: str, others: str, fields: str) -> None:
    found = read_authors(f"From: {sender}\n{fields}\n{others}")
    assert found.from_email.endswith("@evil.example.net")


@cases("sender, others", {
    "Mailman, answers to the author": (
        "Jo Doe via Dev <dev@lists.example.org>",
        f"{LIST}\nReply-To: Jo Doe <jo@example.com>",
    ),
    "Mailman, answers to both": (
        "Jo Doe via Dev <dev@lists.example.org>",
        f"{LIST}\nReply-To: The list <dev@lists.example.org>, jo@example.com",
    ),
    "Mailman, answers to the list": (
        "Jo Doe via Dev <dev@lists.example.org>",
        f"{LIST}\nReply-To: dev@lists.example.org\nCc: Ann <a@x.org>, Jo Doe <jo@example.com>",
    ),
    "Mailman, in Spanish": ("Jo Doe vía Dev <dev@lists.example.org>",
                            f"{LIST}\nCc: Jo Doe <jo@example.com>"),
    "Mailman, in Japanese": (
        '"Jo Doe (Dev 経由)" <dev@lists.example.org>',
        f"{LIST}\nCc: Jo Doe <jo@example.com>",
    ),
    "Google Groups": (
        "\"'Jo Doe' via Dev\" <dev@groups.example.org>",
        f"{GROUP}\nX-Original-Sender: jo@example.com\nReply-To: dev@groups.example.org",
    ),
    "Google Groups, original From": (
        "\"'Jo Doe' via Dev\" <dev@groups.example.org>",
        f"{GROUP}\nX-Original-From: Jo Doe <jo@example.com>\nReply-To: a@x.org, b@x.org",
    ),
    "groups.io": ("Jo Doe via groups.io <jo=example.com@groups.io>",
                  "List-Id: <dev.groups.io>\nReply-To: dev@groups.io"),
    "groups.io, without words": (
        "Jo Doe <jo=example.com@groups.io>",
        "List-Id: <main.dev.groups.io>",
    ),
    "the IETF": ("Jo Doe <jo=40example.com@dmarc.example.org>", LIST),
    "Sympa": ('"Jo Doe" (via dev Mailing List) <dev@lists.example.org>',
              f"{LIST}\nReply-To: Jo Doe <jo@example.com>"),
    "Sympa, name and email": ('"Jo Doe" (jo@example.com) <dev@lists.example.org>', LIST),
    "Sympa, name, email and list": (
        '"Jo Doe" (jo@example.com via dev Mailing List) <dev@lists.example.org>',
        LIST,
    ),
    "Sympa, an encoded comment": (
        '"Jo Doe" (=?utf-8?q?jo=40example=2Ecom?=) <dev@lists.example.org>',
        LIST,
    ),
    "Sympa, on behalf of a name": (
        '"Dev" (on behalf of Jo Doe) <dev@lists.example.org>',
        f"{LIST}\nReply-To: Jo Doe <jo@example.com>",
    ),
    "an address in the name": ('"Jo Doe <jo@example.com> via Dev" <dev@lists.example.org>', LIST),
    "Yahoo Groups": ('"Jo Doe jo@example.com [dev]" <dev@groups.example.org>', GROUP),
    "LISTSERV": ("Jo Doe <0000012ab34c-dmarc-request@lists.example.org>",
                 f"{LIST}\nReply-To: Jo Doe <jo@example.com>"),
    "the list's address under a person's name": (
        "Jo Doe <dev@lists.example.org>",
        f"{LIST}\nCc: Jo Doe <jo@example.com>",
    ),
    "the list's address under a person's name, answers to the author": (
        "Jo Doe <dev@lists.example.org>",
        f"{LIST}\nReply-To: jo@example.com",
    ),
    "words between the author and the list in any language": (
        "Jo Doe über Dev <dev@lists.example.org>",
        f"{LIST}\nReply-To: Jo Doe <jo@example.com>",
    ),
    "RFC 9057": ("Jo Doe <dev@lists.example.org>", f"{LIST}\nAuthor: Jo Doe <jo@example.com>"),
})  # fmt: skip
def test_author_of_a_rewritten_from_is_found(sender: str, others: str) -> None:
    found = read_authors(f"From: {sender}\n{others}")
    assert (found.from_name, found.from_email) == ("Jo Doe", "jo@example.com")
    assert "munged_from" in found.flags
    assert "author_uncertain" not in found.flags


@cases("sender, others, email", {
    "a gateway that sends answers to the list of List-Post": (
        '"Jo Doe via GitHub" <git@example.org>',
        "List-Post: <mailto:dev@lists.example.org>\nTo: commits@lists.example.org\n"
        "Reply-To: dev@lists.example.org",
        "git@example.org",
    ),
    "to the list of List-Id": (
        '"Jo Doe (via GitHub)" <git@example.org>',
        "List-Id: <dev.arrow.example.org>\nReply-To: dev@arrow.example.org",
        "git@example.org",
    ),
    "to the list in To": ("Jo Doe via GitHub <git@example.org>",
                          "To: dev@lists.example.org\nReply-To: dev@lists.example.org",
                          "git@example.org"),
    "the list under the author's name": (
        "Jo Doe via Dev <dev@lists.example.org>",
        f"{LIST}\nReply-To: Jo Doe <dev@lists.example.org>",
        "",
    ),
    "a list known by To alone": (
        "Jo Doe via Dev <dev@lists.example.org>",
        "To: dev@lists.example.org",
        "",
    ),
    "answers to two others": (
        "Jo Doe via Dev <dev@lists.example.org>",
        f"{LIST}\nReply-To: ann@example.com, bob@example.com",
        "",
    ),
    "a person's name": ("Jo Doe <dev@lists.example.org>", LIST, ""),
    "LISTSERV": ("Jo Doe <0000012ab34c-dmarc-request@lists.example.org>", LIST, ""),
})  # fmt: skip
def test_unknown_author_is_not_guessed(sender: str, others: str, email: str) -> None:
    found = read_authors(f"From: {sender}\n{others}")
    assert (found.from_name, found.from_email) == ("Jo Doe", email)
    assert "author_uncertain" in found.flags


def test_name_that_a_list_damaged_is_that_of_reply_to() -> None:
    found = read_authors(
        f"From: Jo D\ufffd\ufffd via Dev <dev@lists.example.org>\n{LIST}\n"
        "Reply-To: Jo D\u00f6\u00e9 <jo@example.com>"
    )
    assert (found.from_name, found.from_email) == ("Jo D\u00f6\u00e9", "jo@example.com")


def test_list_on_behalf_of_an_address_has_its_author() -> None:
    found = read_authors(
        f'From: "Dev" (on behalf of jo@example.com) <dev@lists.example.org>\n{LIST}'
    )
    assert (found.from_name, found.from_email) == ("", "jo@example.com")


@pytest.mark.parametrize("enclosed", ["Jo Doe <jo@example.com>", "Ann Roe <ann@example.com>"])
def test_wrapped_mail_has_the_author_of_the_enclosed(enclosed: str) -> None:
    found = read_authors(
        f"From: Jo Doe via Dev <dev@lists.example.org>\n{LIST}",
        f"Content-Type: message/rfc822\n\nFrom: {enclosed}\nSubject: x\n\nx",
    )
    is_same = enclosed.startswith("Jo")
    assert found.from_email == ("jo@example.com" if is_same else "")
    assert ("author_uncertain" in found.flags) != is_same


@pytest.mark.parametrize(("field", "list_id"), [
    (b"List-Id: <a.example.org>", "a.example.org"),
    (b"List-Id: a.example.org", "a.example.org"),
    (b"List-Id: The list a. <a@example.org>", "a.example.org"),
    (b"List-Id: The list of a a.example.org", "a.example.org"),
    (b"List-Id: A <a.\n example.org>", "a.example.org"),
    (b"X-Mailing-List: a@vger.example.org", "a.vger.example.org"),
    (b"Sender: owner-a@example.org", "a.example.org"),
    (b"Sender: a-owner+M123@example.org", "a.example.org"),
    (b"X-Mailing-List: a\nSender: owner-b@example.org", "b.example.org"),
    (b"Sender: jo@example.org", ""),
    (b"X: y", ""),
])  # fmt: skip
def test_list_is_found(field: bytes, list_id: str) -> None:
    assert read_mail(field + b"\n\nx").list_id == list_id
