"""Header blocks, also late, broken or in other charsets; decoded values and parameters."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mail_assets.mail.message import headers
from mail_assets.mail.message.headers import (
    MAX_ABOVE,
    MAX_BLOCK,
    MAX_VALUE,
    NO_HEADER,
    decode_field,
    decode_fields,
    decode_subject,
    decode_value,
    first_value,
    parse_header_block,
    parse_parameters,
    read_beginning,
)
from mail_assets.mail.message.message import Message
from mail_assets_tests.mail.mails import HEAD, read_mail
from mail_assets_tests.mail.message.values import HOSTILE_VALUES, VALUES


def block(raw: bytes) -> tuple[dict[str, list[bytes]], bytes]:
    headers, body, _ = parse_header_block(raw, 0, len(raw))
    return headers, raw[body:]


@pytest.mark.parametrize(("raw", "subject", "body"), [
    (b"Subject: s\n\nbody", "s", b"body"),
    (b"Subject: s\r\n\r\nbody", "s", b"body"),
    (b"SUBJECT : s\n\nbody", "s", b"body"),
    (b"Subject:\n s\n\nbody", "s", b"body"),
    (b"Subject: a\r\n\tb\r\n c\r\n\r\nbody", "a b c", b"body"),
    (b"Subject: only", "only", b""),
    (b"Subject: s\n", "s", b""),
    (b" lead: x\nSubject: y\n\nz", "y", b"z"),
    (b">From a Mon Jan 5\nSubject: y\n\nz", "y", b"z"),
    (b"\nSubject: not a field\n", "", b"Subject: not a field\n"),
    (b"\r\nbody", "", b"body"),
    (b"no headers at all\nSubject: x\n\ny", "", b"no headers at all\nSubject: x\n\ny"),
    (b"X: y\nSubject: s\nnot a field\nTo: x\n\nb", "s", b"b"),
    (b"", "", b""),
])  # fmt: skip
def test_block_ends_at_its_blank_line(raw: bytes, subject: str, body: bytes) -> None:
    headers, rest = block(raw)
    assert (decode_field(headers, "subject"), rest) == (subject, body)


def test_repeated_fields_stand_in_order() -> None:
    headers, _ = block(b"References: <a>\nX: y\nreferences: <b>\n\n")
    assert decode_fields(headers, "references") == ["<a>", "<b>"]
    assert first_value(headers, "to") == b""


@pytest.mark.parametrize(
    "raw", [b"Subject: " + b"x" * (MAX_VALUE + 1), b"X: y\n" * (MAX_BLOCK // 5 + 1) + b"Subject: s"]
)
def test_oversized_blocks_are_cut_with_a_flag(raw: bytes) -> None:
    headers, _, cut = parse_header_block(raw, 0, len(raw))
    assert cut
    assert len(first_value(headers, "subject")) <= MAX_VALUE


@settings(max_examples=200)
@given(VALUES)
def test_any_bytes_have_a_body_after_their_header_block(raw: bytes) -> None:
    headers, body, _ = parse_header_block(raw, 0, len(raw))
    assert 0 <= body <= len(raw)
    assert not headers or body > 0


LINES = [b"To: a", b"TO : b", b"subject:c", b" d", b"\te: f", b"Date:", b"X: y", b"", b"to:\r"]
EVERY_FIELD = re.compile(
    rb"^(" + headers._KEPT + rb")[ \t]*:[ \t]*([^\n]*(?:\n[ \t][^\n]*)*)", re.I | re.M
)


@settings(max_examples=200)
@given(st.lists(st.sampled_from(LINES), min_size=1, max_size=10))
def test_fields_are_those_that_begin_a_line(lines: list[bytes]) -> None:
    raw = b"From: x\n" + b"\n".join(lines)
    found, _, _ = parse_header_block(raw, 0, len(raw))
    end = re.search(rb"\n\r?\n", raw)
    expected: dict[str, list[bytes]] = {}
    for field in EVERY_FIELD.finditer(raw, 0, end.start() if end else len(raw)):
        expected.setdefault(field[1].lower().decode(), []).append(field[2])
    assert found == expected


@pytest.mark.parametrize(("raw", "names", "body"), [
    (b"Subject: s\nText at once.\nMore\n\nthe rest", ["subject"],
     b"Text at once.\nMore\n\nthe rest"),
    (b"Subject: s\r\nText at once.\r\n\r\nrest", ["subject"], b"Text at once.\r\n\r\nrest"),
    (b"Subject: s\nText, and that is all", ["subject"], b"Text, and that is all"),
    (b"Subject: s\nTo: a@example.org\n", ["subject", "to"], b""),
    # folded without a space: no text, since a field is close below
    (b"To: a@example.org,\nb@example.org\nSubject: s\n\nbody", ["to", "subject"], b"body"),
    (b"To: a\n__\n <b@example.org>\nX-Y: z\n\nbody", ["to"], b"body"),
    (b"From: x\nto\n d\nTo: a@example.org\n\nbody", ["from", "to"], b"body"),
    (b">From x\nSubject: s\n>From y\nTo: a@example.org\n\nbody", ["subject", "to"], b"body"),
])  # fmt: skip
def test_line_that_can_be_no_field_ends_header(raw: bytes, names: list[str], body: bytes) -> None:
    headers, start, _ = parse_header_block(raw, 0, len(raw))
    assert list(headers) == names
    assert raw[start:] == body


@pytest.mark.parametrize(("value", "expected"), [
    (b"plain", "plain"),
    (b"=?utf-8?b?0KPQt9C9?= =?utf-8?b?0LDQ?=\r\n =?utf-8?b?udGC0LU=?= !", "Узнайте !"),
    (b'"=?iso-8859-1?q?J=F6rg?=" <j@example.org>', "Jörg <j@example.org>"),
    (b"=?utf-8?Q?a_b=3F?=", "a b?"),
    (b"x =?utf-8?q?y?= z", "x y z"),
    (b"=?utf-8?q?a?= =?iso-8859-1?q?b?=", "ab"),
    (b"=?nope?q?a=80?= =?y?q?b?=", "a€b"),
    (b"=?utf-8*en?q?=C3=A9?=", "é"),
    (b"=?utf-8?b?w6k?=", "é"),
    (b"=?utf-8?q?regularizaci=F3n?=", "regularización"),
    (b"=?iso-8859-1?q?why??= x", "why? x"),
    (b"=?utf-8?q?open =?utf-8?q?a?=", "=?utf-8?q?open a"),
    (b"name==?utf-8?q?x?=", "name=x"),
    (b"=?utf-8?b?!!!?=", ""),
    (b"=?utf-8?x?abc?=", "=?utf-8?x?abc?="),
    (b"wins \xa37,000", "wins £7,000"),
    ("wins £".encode(), "wins £"),
    (b"a\0b\r\n c", "ab c"),
    (b"=?utf-8?q?line=0Abreak=0D?=", "line break"),
    (b"=?iso-2022-jp?b?GyRCRnxLXBsoQg==?=", "日本"),
])  # fmt: skip
def test_values_are_decoded_to_one_line(value: bytes, expected: str) -> None:
    assert decode_value(value) == expected


@pytest.mark.parametrize(("value", "expected"), [
    (b"=?utf-8?b?W8OJXQ==?= =?utf-8?q?=3D=3Fiso-8859-1=3Fq=3FF=3DFCr=3F=3D_x?=", "[É]Für x"),
    (b"=?utf-8?q?=3D=3Fiso-8859-1=3Fq=3FF=3DFCr=3F=3D_x?=", "Für x"),
    (b"=?utf-8?q?what_=3D=3F_means?=", "what =? means"),
    (b"plain", "plain"),
    (b"[dev]?==?utf-8?q?F=C3=BCr crane?=", "[dev] Für crane"),
    (b"Re: [dev] =?utf-8?q?=3F=3D=3D=3Futf-8=3Fq=3F_F=C3=BCr=3F=3D=3D=3Futf-8=3Fq=3F_x?=",
     "Re: [dev]   Für x"),
    (b"why?==?x", "why?==?x"),
    (b"=?utf-8?q?a?==?utf-8?q?b?=", "ab"),
])  # fmt: skip
def test_subject_that_was_encoded_again_is_decoded_twice(value: bytes, expected: str) -> None:
    assert decode_subject({"subject": [value]}) == expected


@pytest.mark.parametrize("gap", [b"\n ", b"\r\n ", b"\r\n\t", b" "])
@pytest.mark.parametrize("word", [
    b"=?gb18030?#B?zfXA8c/O?=", b"=?gb18030?B#?zfXA8c/O?=", b"=?gb18030#?B?zfXA8c/O?=",
    b"=?gb18030?B?zfXA#8c/O?=",
])  # fmt: skip
def test_word_that_is_folded_within_is_decoded(word: bytes, gap: bytes) -> None:
    assert decode_value(word.replace(b"#", gap)) == "王礼衔"


@settings(max_examples=200)
@given(VALUES)
def test_any_value_decodes_to_one_clean_line(value: bytes) -> None:
    found = decode_value(value)
    assert not set(found) & set("\0\r\n")
    assert found.encode().decode() == found


@pytest.mark.parametrize("value", HOSTILE_VALUES)
def test_hostile_values_stay_within_the_limit(value: bytes) -> None:
    assert len(decode_value(value[:MAX_VALUE])) <= MAX_VALUE


@settings(max_examples=200)
@given(
    st.lists(
        st.sampled_from(
            [b"a", b" ", b"\t", b"=", b"?", b"\0", b"\x1b$B", b"\x1c", b"\xc3\xb6", b"\r"]
        )
        | st.binary(max_size=3),
        max_size=8,
    ).map(b"".join)
)
def test_plain_value_equals_its_decoding(value: bytes) -> None:
    assert decode_value(value) == headers._decode(headers.unfold(value), "")


@pytest.mark.parametrize(("value", "expected"), [
    (b"text/plain; charset=utf-8", {"charset": "utf-8"}),
    (b"text/plain charset=us-ascii", {"charset": "us-ascii"}),
    (b'a/b; Name="a \\"b\\"; c.txt" ; x=1', {"name": 'a "b"; c.txt', "x": "1"}),
    (b'a/b; name="never closed.txt', {"name": "never closed.txt"}),
    (b"a/b; name*=utf-8'de'%e2%82%ac.txt", {"name": "€.txt"}),
    (b"a/b; name*0*=utf-8''%e2%82%ac; name*1=\".patch\"", {"name": "€.patch"}),
    (b"a/b; name*0*=utf-8''%e2%82; name*1*=utf-8''%ac.txt", {"name": "€.txt"}),
    (b"a/b; name*0*=utf-8''Jo; name*1*=O''Doe", {"name": "JoO''Doe"}),
    (b"a/b; name==?utf-8?q?x?=", {"name": "x"}),
    (b'a/b; name*1="b"; name*0="a"', {"name": "ab"}),
    (b'a/b; name="=?utf-8?b?4oKs?=.txt"', {"name": "€.txt"}),
    (b"a/b; name=a\r\n b", {"name": "a b"}),
    (b"", {}),
    (b"a/b", {}),
    (b"; = ;;", {}),
])  # fmt: skip
def test_parameters_are_read(value: bytes, expected: dict[str, str]) -> None:
    assert parse_parameters(value) == expected


@settings(max_examples=200)
@given(VALUES)
def test_any_parameter_is_one_clean_line(value: bytes) -> None:
    for found in parse_parameters(value).values():
        assert not set(found) & set("\0\r\n")
        assert found.encode().decode() == found


@pytest.mark.parametrize("value", HOSTILE_VALUES)
def test_hostile_parameters_stay_within_the_limit(value: bytes) -> None:
    assert sum(map(len, parse_parameters(value).values())) <= MAX_VALUE


SHORT = (
    b"From: Ann Roe <ann@example.org>\nSubject: tide table\nDate: Mon, 5 Jan 2026 15:18:12 +0000\n"
)
MAIL = SHORT + b"Message-ID: <m1@example.org>\nMIME-Version: 1.0\n\nbody words\n"
WIDE = "From: Ann Rœ <ann@example.org>\r\nSubject: Flügel\r\n\r\nKörper\r\n"


def read(raw: bytes) -> Message:
    return read_mail(raw, dialect="plain")


def known(message: Message) -> tuple[str, str, str, str, str]:
    return (
        message.from_email,
        message.subject,
        message.message_id,
        f"{message.sent_at:%d %H:%M}",
        message.body_text.strip(),
    )


EXPECTED = ("ann@example.org", "tide table", "m1@example.org", "05 15:18", "body words")


@pytest.mark.parametrize("above", [
    b"\xef\xbb\xbf",
    b"\xc3\xaf\xc2\xbb\xc2\xbf",
    b"\n",
    b"\r\n\r\n\n",
    b" " * 80 + b"\n",
    b"\t\n \n",
    b"   ",
    b"\0" * 500,
    b"\0\0\n",
    b"\xef\xbb\xbf\r\n",
    b"Microsoft Mail Internet Headers Version 2.0\n",
    b"Microsoft Mail Internet Headers Version 2.0\r\n\r\n",
    b"Exported by Harbor Archiver 3.1\nDo not edit this file\n\n",
    b"1234      \n",
    b" Aug 22 15:03:38 2008\n",
    b"15:03:38 2008\n",
    b"example.org Mon Jan  5 15:18:12 2026\n",
    b"From ann@example.org Mon Jan  5 15:18:12 2026\n",
    b"From - Mon Jan  5 15:18:12 2026\nFrom ann@example.org Mon Jan  5 15:18:12 2026\n",
    b">From ann@example.org Mon Jan  5 15:18:12 2026\n",
    b"From ann@example.org Mon Jan  5 15:18:12 2026\n\n",
    b"HTTP/1.1 200 OK\nDate: Tue, 6 Jan 2026 10:00:00 GMT\nContent-Type: message/rfc822\n\n",
    b"Content-Type: message/rfc822\nContent-Length: 300\n\n",
    b"-----BEGIN PRIVACY-ENHANCED MESSAGE-----\nProc-Type: 4,CLEAR\n\n",
    b"X-Exported: yes\nX-Folder: Harbor\n\n",
    NO_HEADER,
    NO_HEADER + b"\xef\xbb\xbf",
])  # fmt: skip
def test_header_is_found_below_other_lines(above: bytes) -> None:
    found = read(above + MAIL)
    assert known(found) == EXPECTED
    assert "no_headers" not in found.flags


@pytest.mark.parametrize("above", [b"\n", b"\xef\xbb\xbf", b"\0\0", b"1234\n", NO_HEADER])
def test_late_header_may_be_short(above: bytes) -> None:
    found = read(above + SHORT + b"\nwords\n")
    assert (found.from_email, found.body_text) == ("ann@example.org", "words\n")
    assert "header_repaired" in found.flags


@pytest.mark.parametrize("at", range(1, 5))
@pytest.mark.parametrize("break_", [b"\n", b"\r\n", b"\n\n", b" \n"])
def test_blank_line_in_a_header_does_not_end_it(at: int, break_: bytes) -> None:
    lines = MAIL.splitlines(keepends=True)
    broken = b"".join([*lines[:at], break_, *lines[at:]])
    if at < 4:
        assert known(read(broken)) == EXPECTED


@pytest.mark.parametrize("raw", [
    b"Received: from a by b; Mon, 5 Jan 2026 15:18:13 +0000\nTo: r@example.org\n\n" + MAIL,
    MAIL.replace(b"MIME-V", b"\nContent-Type: text/plain\nMIME-V"),
    MAIL.replace(b"MIME-V", b"\nContent-Type: text/plain\nContent-Transfer-Encoding: 7bit\nV"),
    b"\n" + MAIL.replace(b"Date", b"\nDate").replace(b"MIME-V", b"X-Y: z\n\nMIME-V", 0),
    MAIL.replace(b"\n", b"\n\n"),
    MAIL.replace(b"\n", b"\r\n\r\n"),
    MAIL.replace(b"\n", b"\r"),
    b"\r" + MAIL.replace(b"\n", b"\r"),
    MAIL.replace(b"\n", b"\r") + b"\n",
    MAIL.replace(b"\n", b"\r\r\n"),
    MAIL.replace(b"\n", b"\r\r\r\n"),
    *(MAIL.decode().encode(codec) for codec in ("utf-16", "utf-16-le", "utf-16-be", "utf-32")),
    NO_HEADER + MAIL.decode().encode("utf-16") + b"\n",
    b"%d\n%b<?xml version='1.0'?><plist></plist>" % (len(MAIL), MAIL),
])  # fmt: skip
def test_header_is_read_through_breaks_and_line_ends(raw: bytes) -> None:
    found = read(raw)
    assert known(found) == EXPECTED
    assert "header_repaired" in found.flags


@pytest.mark.parametrize("codec", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("label", ["", "iso-8859-1", "utf-16", "koi8-r"])
def test_wide_file_is_read_whatever_its_label_says(codec: str, label: str) -> None:
    text = WIDE
    if label:
        text = text.replace("\r\n\r\n", f"\r\nContent-Type: text/plain; charset={label}\r\n\r\n")
    found = read(text.encode(codec))
    assert (found.from_name, found.subject, found.body_text) == ("Ann Rœ", "Flügel", "Körper\n")


QUOTED = b"From: Bo <bo@example.org>\nDate: Sun, 4 Jan 2026 10:00:00 +0000\nSubject: old\n"


@pytest.mark.parametrize(("head", "text"), [
    (HEAD, QUOTED + b"\nas he wrote\n"),
    (HEAD, b"\n\n" + QUOTED + b"Message-ID: <old@example.org>\n\nas he wrote\n"),
    (HEAD, b"To: bo@example.org\nReferences: none\n\nwords\n"),
    (SHORT, QUOTED + b"Message-ID: <old@example.org>\n\nas he wrote\n"),
    (SHORT, b"Message-ID: and then prose\n"),
    (SHORT, b"Message-ID: <x>\nReferences: <y>\nprose at once\n\nmore\n"),
    (HEAD, b"Content-Type: text/html\n\nis what the server sends\n"),
    (HEAD + b"Content-Type: text/plain\n", b"MIME-Version: 1.0\nContent-Type: a/b\n\nwords\n"),
    (b"From: a@example.org\n", b"Subject: one\nand prose\n"),
])  # fmt: skip
def test_header_that_a_body_shows_stays_text(head: bytes, text: bytes) -> None:
    found = read(head + b"\n" + text)
    assert found.body_text.lstrip("\n") == text.decode().lstrip("\n")
    assert "header_repaired" not in found.flags


@pytest.mark.parametrize("raw", [
    b"no header at all\nSubject: x\n\ny",
    b"Hello Jo,\nsee this mail:\n\n" + QUOTED + b"\nas he wrote\n",
    b"word\n" * 10 + MAIL,
    b"\n" * (MAX_ABOVE + 1) + b"words " + MAIL,
    b"Q: a\n\nB: c\n\nD: e\n\nF: g\n\nH: i\n\n",
])  # fmt: skip
def test_text_without_a_header_stays_text(raw: bytes) -> None:
    found = read(raw)
    assert {"no_headers"} <= {*found.flags}
    assert "header_repaired" not in found.flags


def test_attached_message_may_begin_late() -> None:
    part = (
        b"Content-Type: message/rfc822\n\n\nFrom ann@example.org Mon Jan  5 15:18:12 2026\n" + MAIL
    )
    raw = HEAD + b"Content-Type: multipart/mixed; boundary=b\n\n--b\n" + part + b"\n--b--\n"
    assert "Subject: tide table\n\nbody words" in read(raw).body_text


@settings(max_examples=200)
@given(
    st.lists(
        st.sampled_from([b"\n", b"\r", b"\0", b"\xef\xbb\xbf", b"\xff\xfe", b"12\n", b"To: a\n"])
        | st.sampled_from([SHORT, b"Message-ID: <a>\n", b"word\n", b" x", b"<?xml ", NO_HEADER]),
        max_size=8,
    ).map(b"".join)
)
def test_any_bytes_have_a_body_within_their_source(raw: bytes) -> None:
    found = read_beginning(raw)
    assert 0 <= found.body <= len(found.source)
    if found.repaired:
        assert len(found.headers) >= 1


@pytest.mark.parametrize(
    "unit",
    [b"\n", b"\0", b"a:\n\n", b"From: a\n\n", b"\xef\xbb\xbf", b" ", b" \n", b"To: a\n\nb: c\n\n"],
)
def test_lines_without_end_are_read_once(unit: bytes) -> None:
    raw = unit * (2_000_000 // len(unit)) + MAIL
    assert read_beginning(raw).body <= len(raw)
