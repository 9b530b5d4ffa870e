"""Copies of a message have the same hash; similar messages have other hashes."""

import base64
import quopri

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mail_assets.mail.message.content_hash import MAX_RENDERINGS, find_lossy_copies
from mail_assets_tests.mail.mails import HEAD, read_mail

NOTICE = """\
-------------- next part --------------
A non-text attachment was scrubbed...
Name: not available
Type: application/pgp-signature
Size: 189 bytes
Desc: Questa parte del messaggio =?ISO-8859-1?Q?=E8?= firmata
Url : http://lists.example.org/pipermail/hackers/attachments/20030104/8ea3013d/attachment.pgp
"""
TEXT = st.text(st.sampled_from("ab ?\nçé漢\ufffd"), max_size=40)


def digest(body: str, dialect: str = "pipermail") -> str:
    return hash_raw(HEAD + b"\n" + body.encode(), dialect)


def hash_raw(raw: bytes, dialect: str) -> str:
    return read_mail(raw, dialect=dialect).content_hash


def lossy(*bodies: str) -> list[bool]:
    found = find_lossy_copies((HEAD + b"\n" + body.encode() for body in bodies), "pipermail")
    return [digest(body) in found for body in bodies]


FOLDED = HEAD + b"Content-Type: text/plain\n\nbody\n\nmore\n"


@pytest.mark.parametrize("copy", [
    FOLDED.replace(b"\n", b"\r\n"),
    FOLDED + b"\n\n",
    FOLDED.replace(b" <0@example.org>\nList", b"\n\t<0@example.org>\nList"),
    FOLDED.replace(b"Subject: ", b"Subject:\n "),
    FOLDED.replace(b"List-Id: Hackers", b"List-Id: Other"),
    b"Received: by x\nX-Spam: no\nList-Unsubscribe: <x>\n" + FOLDED,
    FOLDED.replace(b"Subject: Re:", b"subject:   Re:"),
    FOLDED.replace(b"Jo Doe", b"Jo"),
    FOLDED.replace(b"To: hackers", b"To: users"),
    FOLDED.replace(b"Cc: bo", b"Cc: co"),
    FOLDED.replace(b"text/plain", b"text/plain; charset=utf-8; format=flowed"),
    FOLDED.replace(b"text/plain", b"text/plain\nContent-Transfer-Encoding: quoted-printable"),
])  # fmt: skip
def test_content_hash_is_the_same_for_faithful_copies(copy: bytes) -> None:
    assert copy != FOLDED
    assert read_mail(copy).content_hash == read_mail(FOLDED).content_hash
    assert (
        read_mail(copy, from_line=b"From nobody now").content_hash == read_mail(FOLDED).content_hash
    )


RAW = (
    b"From: =?utf-8?q?Jo_D=C3=B6?= <Jo@example.org>\nTo: harbor@lists.example.org\n"
    b"Date: Mon, 05 Jan 2026 15:18:12 +0000\nSubject: =?utf-8?q?caf=C3=A9?= and\n more\n"
    b"Message-ID: <1@example.org>\nIn-Reply-To: <0@example.org>\n"
    b"References: <00@example.org>\n <0@example.org>\nMIME-Version: 1.0\n"
)
TEXT_OF_IT = "Un café, s'il vous plaît.\n\nFrom here on = all is plain.\n"


@pytest.mark.parametrize(("header", "body", "dialect"), [
    (b"Content-Type: text/plain; charset=utf-8\n", TEXT_OF_IT.encode(), "mboxrd"),
    (b"Content-Type: text/plain; charset=latin-1\n", TEXT_OF_IT.encode("latin-1"), "plain"),
    (b"Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: base64\n",
     base64.encodebytes(TEXT_OF_IT.encode()), "plain"),
    (b"Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: quoted-printable\n",
     quopri.encodestring(TEXT_OF_IT.encode()), "pg"),
])  # fmt: skip
def test_every_archivers_copy_has_one_hash(header: bytes, body: bytes, dialect: str) -> None:
    pipermail = (
        b"From: jo at example.org (=?utf-8?q?Jo_D=C3=B6?=)\n"
        b"Date: Mon, 05 Jan 2026 15:18:12 +0000\nSubject: caf\xc3\xa9 and more\n"
        b"In-Reply-To: <0@example.org>\nReferences: <00@example.org> <0@example.org>\n"
        b"Message-ID: <1@example.org>\n\n"
        + TEXT_OF_IT.replace("\nFrom ", "\n>From ").encode()
        + b"\n"
    )
    raw = RAW + header + b"\n" + body
    expected = hash_raw(pipermail, "pipermail")
    assert hash_raw(raw, dialect) == expected


@given(st.text(st.sampled_from("ab >F\nromé漢\x1b\r\0="), max_size=60))
def test_plain_text_hashes_as_decoded_text(text: str) -> None:
    plain = HEAD + b"\n" + text.encode()
    coded = HEAD + b"Content-Transfer-Encoding: base64\n\n" + base64.b64encode(text.encode())
    hashes = {hash_raw(raw, "plain") for raw in (plain, coded)}
    assert len(hashes) == 1


@pytest.mark.parametrize(("old", "new"), [
    (b"jo@example.org", b"jo@example.com"),
    (b"15:18:12", b"15:18:13"),
    (b"fix x", b"fix y"),
    (b"<1@example.org>", b"<2@example.org>"),
    (b"In-Reply-To: <0", b"In-Reply-To: <9"),
    (b"<00@example.org>", b"<99@example.org>"),
    (b"text/plain", b"text/html"),
    (b"body", b"Body"),
    (b"body\n\nmore", b"body\nmore"),
])  # fmt: skip
def test_content_hash_changes_with_the_content(old: bytes, new: bytes) -> None:
    assert old in FOLDED
    assert read_mail(FOLDED.replace(old, new)).content_hash != read_mail(FOLDED).content_hash


@pytest.mark.parametrize(("old", "new"), [
    ("Name: not available", "Name: signature.asc"),
    ("=?ISO-8859-1?Q?=E8?= firmata", "è\n\tfirmata"),
    ("Url : http://lists.example.org", "URL: <"),
    ("attachment.pgp", "attachment-0002.sig>"),
])  # fmt: skip
def test_scrubbed_attachment_may_get_another_name(old: str, new: str) -> None:
    body = f"text\n{NOTICE}"
    assert old in body
    assert digest(body.replace(old, new)) == digest(body)
    assert digest(body.replace(old, new), "plain") != digest(body, "plain")


@pytest.mark.parametrize(("old", "new"), [
    ("text", "Text"),
    ("application/pgp-signature", "text/plain"),
    ("189", "188"),
    ("20030104", "20030105"),
    ("8ea3013d", "8ea3013e"),
    ("A non-text attachment was scrubbed...\n", ""),
    ("Desc:", "\nDesc:"),
])  # fmt: skip
def test_other_fields_of_a_scrubbed_attachment_count(old: str, new: str) -> None:
    body = f"text\n{NOTICE}"
    assert old in body
    assert digest(body.replace(old, new)) != digest(body)


def test_name_outside_of_a_notice_counts() -> None:
    assert digest("Name: a\nSize: 1\n") != digest("Name: b\nSize: 1\n")


@pytest.mark.parametrize(("bodies", "expected"), [
    (["Fran?ois", "François"], [True, False]),
    (["François", "Fran??ois"], [False, True]),
    (["Fran?ois", "François", "Fran?ois"], [True, False, True]),
    (["Fran?ois est l?", "François est l?", "François est là"], [True, True, False]),
    (["what?", "what??"], [False, False]),
    (["what?", "what!"], [False, False]),
    (["Fran?ois", "Francois"], [False, False]),
    (["Fran?ois, why?", "François, why"], [False, False]),
    (["é?", "?"], [False, False]),
    (["漢字", "??"], [False, True]),
    (["漢字", "????"], [False, True]),
    (["漢字", "???????"], [False, False]),
    (["é ?", "? é"], [False, False]),
    (["é", "è"], [False, False]),
    (["same?", "same?"], [False, False]),
    (["jo at example.org", "jo@example.org"], [True, False]),
    (["jo@example.org", "jo en example.org", "jo at example.org"], [False, True, True]),
    (["Ren? <jo at example.org>", "René <jo@example.org>"], [True, False]),
    (["jo at example.org, sam@example.org", "jo@example.org, sam at example.org"], [False] * 2),
    (["jo at home", "jo@home"], [False, False]),
])  # fmt: skip
def test_copy_with_question_marks_for_letters_is_lossy(
    bodies: list[str], expected: list[bool]
) -> None:
    assert lossy(*bodies) == expected


def test_message_under_another_id_is_no_copy() -> None:
    raw = HEAD + "\nFrançois".encode()
    other = HEAD.replace(b"<1@", b"<2@") + b"\nFran?ois"
    assert not find_lossy_copies([raw, other], "pipermail")


@settings(max_examples=200)
@given(body=TEXT)
def test_copy_with_question_marks_is_the_lossy_one(body: str) -> None:
    written = body.encode("ascii", "replace").decode()
    assert lossy(written, body) == [written.rstrip("\n") != body.rstrip("\n"), False]


@settings(max_examples=200)
@given(bodies=st.lists(TEXT, min_size=1, max_size=6))
def test_one_copy_of_every_message_is_kept(bodies: list[str]) -> None:
    marks = lossy(*bodies)
    assert not all(marks)
    kept = {digest(body) for body, is_lossy in zip(bodies, marks, strict=True) if not is_lossy}
    assert kept.isdisjoint(
        digest(body) for body, is_lossy in zip(bodies, marks, strict=True) if is_lossy
    )
    assert lossy(*reversed(bodies)) == marks[::-1]


def test_number_of_compared_renderings_is_limited() -> None:
    others = ["?" * count for count in range(10, MAX_RENDERINGS + 10)]
    assert lossy(*others, "?", "é") == [False] * (MAX_RENDERINGS + 2)
    assert lossy(*others[2:], "?", "é") == [False] * (MAX_RENDERINGS - 2) + [True, False]
