"""MIME structure: the leaf parts of a message, and files inside its text."""

import base64
import binascii

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mail_assets.mail.message import mime
from mail_assets.mail.message.mime import MAX_DEPTH, MAX_PARTS, parse_mime
from mail_assets.mail.message.part_text import MAX_TEXT, decode_part, decode_part_text
from mail_assets_tests.mail.mails import read_mail


def multipart(*parts: bytes, kind: bytes = b"mixed", boundary: bytes = b"b1") -> bytes:
    inner = b"".join(b"--" + boundary + b"\n" + part + b"\n" for part in parts)
    return (
        b"Content-Type: multipart/"
        + kind
        + b'; boundary="'
        + boundary
        + b'"\n\npreamble\n'
        + inner
        + b"--"
        + boundary
        + b"--\nepilogue\n"
    )


def headless(*parts: bytes, above: bytes = b"") -> bytes:
    return b"From: a@x.org\n\n" + above + multipart(*parts).partition(b"preamble\n")[2]


def contents(raw: bytes) -> list[tuple[str, bytes]]:
    return [(part.type, decode_part(part)) for part in parse_mime(raw).parts]


PLAIN = b"Content-Type: text/plain\n\nplain"
HTML = b"Content-Type: text/html\n\n<p>html"
PLAIN_PART, HTML_PART = ("text/plain", b"plain"), ("text/html", b"<p>html")


def encoded_multipart(*parts: bytes) -> bytes:
    head, body = multipart(*parts).split(b"\n\n", 1)
    return head + b"\nContent-Transfer-Encoding: base64\n\n" + base64.encodebytes(body)


@pytest.mark.parametrize(("raw", "expected"), [
    (b"Subject: s\n\nbody", [("text/plain", b"body")]),
    (PLAIN, [("text/plain", b"plain")]),
    (multipart(PLAIN, HTML), [("text/plain", b"plain"), ("text/html", b"<p>html")]),
    (multipart(b"\nno headers"), [("text/plain", b"no headers")]),
    (multipart().replace(b"preamble\n", b""), []),
    (multipart(PLAIN).replace(b"--b1--\nepilogue\n", b""), [("text/plain", b"plain\n")]),
    (multipart(PLAIN).replace(b"--b1\n", b"--b1 \t\n"), [("text/plain", b"plain")]),
    (
        multipart(multipart(PLAIN, boundary=b"b10"), HTML),
        [("text/plain", b"plain"), ("text/html", b"<p>html")],
    ),
    (multipart(b"Content-Type: text/plain\n\na --b1 b"), [("text/plain", b"a --b1 b")]),
    (b"Content-Type: TEXT/X-Diff; charset=x\n\nd", [("text/x-diff", b"d")]),
    (b"Content-Type: text\n\nd", [("text/plain", b"d")]),
    (b"Content-Type: text/plain charset=utf-8\n\nd", [("text/plain", b"d")]),
    (
        multipart(b"\n" + PLAIN, kind=b"digest"),
        [("message/rfc822", PLAIN), ("text/plain", b"plain")],
    ),
    (
        b"Content-Type: message/rfc822\n\n" + multipart(PLAIN, HTML),
        [
            ("message/rfc822", multipart(PLAIN, HTML)),
            ("text/plain", b"plain"),
            ("text/html", b"<p>html"),
        ],
    ),
    (b"Content-Type: multipart/mixed; boundary*0=b; boundary*1=1\n\n--b1\n\nx\n--b1--\n",
     [("text/plain", b"x")]),
])  # fmt: skip
def test_leaf_parts_are_found(raw: bytes, expected: list[tuple[str, bytes]]) -> None:
    assert contents(raw) == expected
    with_crlf = raw.replace(b"\n", b"\r\n")
    assert contents(with_crlf) == [(k, d.replace(b"\n", b"\r\n")) for k, d in expected]


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        # junk after the boundary
        (multipart(PLAIN, HTML).replace(b"--b1\n", b"--b1 junk\n"), [PLAIN_PART, HTML_PART]),
        (multipart(PLAIN).replace(b"--b1--\n", b"--b1-- junk\n"), [PLAIN_PART]),
        # a nested boundary that looks like the end of the outer one
        (multipart(multipart(PLAIN, boundary=b"b1--1"), HTML), [PLAIN_PART, HTML_PART]),
        # the boundary is not declared, or is a different one
        (multipart(PLAIN, HTML).replace(b'; boundary="b1"', b""), [PLAIN_PART, HTML_PART]),
        (multipart(PLAIN, HTML).replace(b'"b1"', b'"other"'), [PLAIN_PART, HTML_PART]),
        # an archive kept no Content-Type
        (headless(PLAIN, HTML), [PLAIN_PART, HTML_PART]),
        (headless(PLAIN, above=b"This is a multi-part message in MIME format.\n"), [PLAIN_PART]),
        # text, and only the end of a multipart
        (multipart(), [("text/plain", b"preamble\n--b1--\nepilogue\n")]),
        # a multipart with an encoding, against RFC 2045 section 6.4; the encoding can be false
        (encoded_multipart(PLAIN, HTML), [PLAIN_PART, HTML_PART]),
        (
            b"Content-Transfer-Encoding: quoted-printable\n" + multipart(PLAIN, HTML),
            [PLAIN_PART, HTML_PART],
        ),
    ],
)
def test_body_is_found_in_spite_of_a_faulty_multipart(
    raw: bytes, expected: list[tuple[str, bytes]]
) -> None:
    assert contents(raw) == expected


@pytest.mark.parametrize("raw", [
    headless(PLAIN, above=b"My mail program sends this:\n"),
    headless(PLAIN).partition(b"\n--b1--")[0],
    b"Content-Type: text/plain\n" + headless(PLAIN),
])  # fmt: skip
def test_multipart_that_somebody_shows_stays_text(raw: bytes) -> None:
    assert contents(raw) == [("text/plain", raw.partition(b"\n\n")[2])]


def test_encoded_containers_are_opened_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = encoded_multipart(PLAIN)
    monkeypatch.setattr(mime, "MAX_OPENED", 20)
    tree = parse_mime(raw)
    assert "too_deep" in tree.flags
    assert [part.type for part in tree.parts] == ["multipart/mixed"]


@pytest.mark.parametrize(("raw", "flag"), [
    (b"Content-Type: multipart/mixed\n\nx", "no_boundary"),
    (b"Content-Type: multipart/mixed; boundary=b\n\nx", "no_boundary"),
    (b"just text", "no_headers"),
    (b"Content-Type: multipart/mixed; boundary=x\n\n" + b"--x\n\na\n" * 2_001, "too_many_parts"),
    (b"Subject: " + b"x" * 100_000, "headers_capped"),
])  # fmt: skip
def test_faults_are_named_and_text_is_kept(raw: bytes, flag: str) -> None:
    tree = parse_mime(raw)
    assert flag in tree.flags
    assert 1 <= len(tree.parts) <= MAX_PARTS


@pytest.mark.parametrize("media", [b"text/x-d\0iff", b"\0text/plain", b"text\0/plain"])
def test_media_type_has_no_nul(media: bytes) -> None:
    [part] = parse_mime(b"Content-Type: " + media + b"; name=x\n\nx").parts
    assert "\0" not in part.type


def test_alternatives_are_grouped_by_their_outermost_multipart() -> None:
    inner = multipart(HTML, kind=b"alternative", boundary=b"b3")
    related = multipart(inner, kind=b"related", boundary=b"b2")
    raw = multipart(multipart(PLAIN, related, kind=b"alternative", boundary=b"b4"), PLAIN)
    assert [part.group for part in parse_mime(raw).parts] == [1, 1, 0]


@pytest.mark.parametrize(("head", "filename"), [
    (b"Content-Disposition: attachment; filename=a.txt", "a.txt"),
    (b"Content-Type: text/plain; name=b.txt", "b.txt"),
    (b"Content-Type: a/b; name=b\nContent-Disposition: inline; filename=a", "a"),
    (b"Content-Disposition: attachment; filename*=utf-8''%E2%82%AC.txt", "€.txt"),
    (b"Content-Disposition: attachment; filename=" + b"x" * 900, "x" * 255),
    (b"Content-Disposition: attachment", ""),
    (b"Content-Disposition: attachment; filename=../../etc/passwd", "passwd"),
    (b'Content-Disposition: attachment; filename="C:\\\\TEMP\\\\a.doc"', "a.doc"),
    (b"Content-Disposition: attachment; filename*=utf-8''a%1B%5B2J%0A.txt", "a[2J .txt"),
    (b"Content-Disposition: attachment; filename*=utf-8''a%E2%80%AEtxt.exe", "atxt.exe"),
    (b"Content-Disposition: attachment; filename=..", ""),
    (b"Content-Disposition: attachment; filename=/", ""),
])  # fmt: skip
def test_file_names_are_found(head: bytes, filename: str) -> None:
    assert parse_mime(head + b"\n\nx").parts[0].filename == filename


HOSTILE = {
    "messages in messages": b"Content-Type: message/rfc822\n\n" * 20_000 + b"\nhi",
    "multiparts in multiparts": b"".join(
        b'Content-Type: multipart/mixed; boundary="b%d"\n\n--b%d\n' % (i, i) for i in range(20_000)
    ),
    "one boundary all the way down": b"Content-Type: multipart/mixed; boundary=b\n\n--b\n" * 20_000,
    "200,000 parts": b"Content-Type: multipart/mixed; boundary=x\n\n" + b"--x\n\na\n" * 200_000,
    "no line starts": b"Content-Type: multipart/mixed; boundary=x\n\n" + b"a--x" * 500_000,
    "flowed without end": b"Content-Type: text/plain; format=flowed\n\n" + b"a \n" * 600_000,
    "quotes without end": b"Content-Type: text/plain; format=flowed\n\n" + b">" * 2_000_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_structures_end_in_few_parts(name: str) -> None:
    raw = HOSTILE[name]
    tree = parse_mime(raw)
    assert len(tree.parts) <= MAX_PARTS
    assert sum(len(decode_part_text(part)[0]) for part in tree.parts[:5]) <= 5 * (
        MAX_TEXT + MAX_DEPTH
    )


PIECES = [
    b"Content-Type: ", b"multipart/mixed", b"; boundary=b", b"\n", b"\n\n", b"--b", b"--b--",
    b"message/rfc822", b"text/plain", b"Content-Transfer-Encoding: base64", b"aGk=", b"\r\n",
]  # fmt: skip


@settings(max_examples=200)
@given(st.lists(st.sampled_from(PIECES) | st.binary(max_size=10), max_size=40).map(b"".join))
def test_any_bytes_give_parts_inside_the_message(raw: bytes) -> None:
    for part in parse_mime(raw).parts:
        assert 0 <= part.start <= part.end <= len(raw)
        text, _, _ = decode_part_text(part)
        assert "\0" not in text


@settings(max_examples=100)
@given(st.lists(st.binary(max_size=100), min_size=1, max_size=6))
def test_parts_come_back_from_a_multipart(bodies: list[bytes]) -> None:
    parts = [b"Content-Transfer-Encoding: base64\n\n" + base64.b64encode(body) for body in bodies]
    assert [data for _, data in contents(multipart(*parts))] == bodies


@pytest.mark.parametrize("boundary", [
    *["----=_NextPart_000_1", "----=_Part_0_123.456", "------------070109030", "_000_AB_", "-x"],
    *["=_abc?=", "b 1", "Apple-Mail=_1", "0__=1", "'q'"],
])  # fmt: skip
@pytest.mark.parametrize("declared", [
    *["", '; boundary="other"', "; boundary=3D", '; boundary="', "; boundary=cut-", "; charset=x"],
    "; BOUNDARY = ",
])  # fmt: skip
def test_lost_boundary_is_found_by_its_lines(boundary: str, declared: str) -> None:
    raw = multipart(PLAIN, HTML, boundary=boundary.encode())
    raw = raw.replace(f'; boundary="{boundary}"'.encode(), declared.encode())
    assert contents(raw) == [PLAIN_PART, HTML_PART]
    assert "no_boundary" in parse_mime(raw).flags


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        # parts without a header; the closing delimiter shows the boundary
        (b"Content-Type: multipart/mixed\n\n--x\n\nplain\n--x--\n", [PLAIN_PART]),
        (
            b"Content-Type: multipart/mixed\n\n--x\nMime-Version: 1.0\n\nplain\n--x\n\nb\n",
            [PLAIN_PART, ("text/plain", b"b\n")],
        ),
        # a line of dashes is no boundary
        (
            b"Content-Type: multipart/mixed\n\n--------\nContent-type: is a field\n",
            [("text/plain", b"--------\nContent-type: is a field\n")],
        ),
    ],
)
def test_undeclared_boundary_needs_evidence(raw: bytes, expected: list[tuple[str, bytes]]) -> None:
    assert contents(raw) == expected


BODY = multipart(PLAIN, HTML).partition(b"\n\n")[2]


@pytest.mark.parametrize(("types", "body", "expected"), [
    (["multipart/mixed; boundary=a", "multipart/mixed; boundary=b1"], BODY, 2),
    (["multipart/mixed; boundary=b1", "multipart/mixed; boundary=a"], BODY, 2),
    (["text/plain", 'multipart/mixed;\n\tboundary="b1"'], BODY, 2),
    (["text/plain; charset=us-ascii", "multipart/mixed"], BODY, 2),
    (["multipart/mixed", "text/html"], BODY, 2),
    (["multipart/mixed; boundary=a"] * 3 + ["multipart/mixed; boundary=b1"], BODY, 2),
    (["multipart/mixed; boundary=a", "text/html"], b"<p>html", 1),
    (["text/html", "text/plain"], b"<p>html", 1),
])  # fmt: skip
def test_confirmed_content_type_is_believed(types: list[str], body: bytes, expected: int) -> None:
    head = "".join(f"Content-Type: {one}\n" for one in types).encode()
    found = contents(head + b"\n" + body)
    assert found == ([PLAIN_PART, HTML_PART] if expected == 2 else [("text/html", b"<p>html")])


def test_messages_nested_too_deeply_are_flagged() -> None:
    nested = b"Content-Type: message/rfc822\n\nSubject: x\n" * (mime.MAX_DEPTH + 1)
    tree = parse_mime(nested + b"\nthe innermost words\n")
    assert tree.flags == {"too_deep"}
    assert len(tree.attached) == mime.MAX_DEPTH


@pytest.mark.parametrize(("number", "types"), [("1", 2), ('"1"', 2), ("2", 1)])
def test_first_part_of_a_split_message_is_opened(number: str, types: int) -> None:
    head = f'Content-Type: message/partial; id="a@b"; number={number}; total=2\n\n'
    tree = parse_mime(head.encode() + b"Subject: pumps\n\nthe first words\n")
    assert len(tree.parts) == types
    assert [part.type for part in tree.parts][-1:] == [
        "text/plain" if types == 2 else "message/partial"
    ]


@pytest.mark.parametrize("line_end", [b"\n", b"\r\n"])
def test_text_below_an_inner_multipart_of_equal_boundary(line_end: bytes) -> None:
    raw = multipart(multipart(PLAIN, HTML, kind=b"alternative"), b"Content-Type: text/plain\n\nend")
    raw = raw.replace(b"\n", line_end)
    found = contents(raw)
    assert PLAIN_PART in found
    assert ("text/plain", b"end") in found
    assert not [one for one in found if b"epilogue" in one[1]]


def test_quoted_delimiter_below_the_last_part_begins_none() -> None:
    raw = multipart(PLAIN) + b"\n--b1\nis the boundary\n--b1--\n"
    assert contents(raw) == [PLAIN_PART]


DATA = bytes(range(256)) * 3


def uuencoded(name: str, data: bytes = DATA, end: str = "`\nend\n") -> bytes:
    lines = b"".join(binascii.b2a_uu(data[at : at + 45]) for at in range(0, len(data), 45))
    return f"begin 644 {name}\n".encode() + lines + end.encode()


def yencoded(name: str, data: bytes = DATA) -> bytes:
    special = (0, 10, 13, 61)
    shifted = [(byte + 42) % 256 for byte in data]
    code = b"".join(b"=%c" % ((c + 64) % 256) if c in special else b"%c" % c for c in shifted)
    lines, at = [], 0
    while at < len(code):
        stop = at + 100 + code.startswith(b"=", at + 99)
        lines.append(code[at:stop])
        at = stop
    head = b"=ybegin line=100 size=%d name=%s\n" % (len(data), name.encode())
    return head + b"\n".join(lines) + b"\n=yend size=%d\n" % len(data)


@pytest.mark.parametrize(("block", "name", "data"), [
    (uuencoded("a.bin"), "a.bin", DATA),
    (uuencoded("a.bin", b"hi"), "a.bin", b"hi"),
    (uuencoded("a.bin", end=""), "a.bin", DATA),
    (uuencoded("a.bin").replace(b"\n", b"\r\n"), "a.bin", DATA),
    (uuencoded("../../etc/a b.bin"), "a b.bin", DATA),
    (yencoded("y.bin"), "y.bin", DATA),
])  # fmt: skip
def test_file_in_the_text_is_an_attachment(block: bytes, name: str, data: bytes) -> None:
    raw = b"Subject: s\n\nHere it is:\n\n" + block + b"\nThat was it.\n"
    found = read_mail(raw)
    assert found.body_text.split() == ["Here", "it", "is:", "That", "was", "it."]
    [attachment] = found.attachments
    assert (attachment.name, attachment.size) == (name, len(data))
    [part] = [part for part in parse_mime(raw).parts if part.filename]
    assert decode_part(part) == data


def test_binhex_stays_encoded() -> None:
    block = (
        b"(This file must be converted with BinHex 4.0)\n\n"
        b':$f*TEQKPH#jdCA0d,R0TG!"6594%8dP8)3#3!!!\n!!!!!:\n'
    )
    found = read_mail(b"Subject: s\n\nsee\n" + block + b"end\n")
    assert found.body_text == "see\nend\n"
    [attachment] = found.attachments
    assert (attachment.type, attachment.size) == ("application/mac-binhex40", len(block))


@pytest.mark.parametrize("text", [
    b"begin 644 words\nand then prose follows\n", b"begin 644 WORDS\nUPPER CASE PROSE\n\nMORE\n",
    b"We begin 644 x\n", b"begin 644\n", b"=ybegin\nx\n",
    b"(This file must be converted with BinHex 4.0)\nprose\n",
])  # fmt: skip
def test_words_that_only_look_like_a_file_stay(text: bytes) -> None:
    found = read_mail(b"Subject: s\n\n" + text)
    assert found.body_text == text.decode()
    assert found.attachments == ()
