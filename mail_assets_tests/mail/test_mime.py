"""MIME structure, transfer encodings and flowed text."""

import base64
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mail_assets.mail.mime import MAX_DEPTH, MAX_PARTS, MAX_TEXT, content, parse, text_of, unflow


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


def contents(raw: bytes) -> list[tuple[str, bytes]]:
    return [(part.type, content(raw, part)) for part in parse(raw).parts]


PLAIN = b"Content-Type: text/plain\n\nplain"
HTML = b"Content-Type: text/html\n\n<p>html"


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b"Subject: s\n\nbody", [("text/plain", b"body")]),
        (PLAIN, [("text/plain", b"plain")]),
        (multipart(PLAIN, HTML), [("text/plain", b"plain"), ("text/html", b"<p>html")]),
        (multipart(b"\nno headers"), [("text/plain", b"no headers")]),
        (multipart(), []),
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
        (
            b"Content-Type: multipart/mixed; boundary*0=b; boundary*1=1\n\n--b1\n\nx\n--b1--\n",
            [("text/plain", b"x")],
        ),
    ],
)
def test_leaf_parts_are_found(raw: bytes, expected: list[tuple[str, bytes]]) -> None:
    assert contents(raw) == expected
    with_crlf = raw.replace(b"\n", b"\r\n")
    assert contents(with_crlf) == [(k, d.replace(b"\n", b"\r\n")) for k, d in expected]


@pytest.mark.parametrize(
    ("raw", "flag"),
    [
        (b"Content-Type: multipart/mixed\n\nx", "no_boundary"),
        (b"Content-Type: multipart/mixed; boundary=b\n\nx", "no_boundary"),
        (b"just text", "no_headers"),
        (
            b"Content-Type: multipart/mixed; boundary=x\n\n" + b"--x\n\na\n" * 2_001,
            "too_many_parts",
        ),
        (b"Subject: " + b"x" * 100_000, "headers_capped"),
    ],
)
def test_faults_are_named_and_text_is_kept(raw: bytes, flag: str) -> None:
    tree = parse(raw)
    assert flag in tree.flags
    assert 1 <= len(tree.parts) <= MAX_PARTS


def test_alternatives_are_grouped_by_their_outermost_multipart() -> None:
    inner = multipart(HTML, kind=b"alternative", boundary=b"b3")
    related = multipart(inner, kind=b"related", boundary=b"b2")
    raw = multipart(multipart(PLAIN, related, kind=b"alternative", boundary=b"b4"), PLAIN)
    assert [part.group for part in parse(raw).parts] == [1, 1, 0]


@pytest.mark.parametrize(
    ("encoding", "data", "expected"),
    [
        (b"quoted-printable", b"na=EFve=\n! =XX", b"na\xefve! =XX"),
        (b"QUOTED-PRINTABLE ", b"=41", b"A"),
        (b"base64", b"aGVs\nbG8=", b"hello"),
        (b"base64;", b"aGVs*bG8", b"hello"),
        (b"base64", b"a", b""),
        (b"base64", b"aGk\x00=x", b"hi"),
        (b"7-bit", b"=41", b"=41"),
        (b"text/html", b"=41", b"=41"),
        (b"", b"=41", b"=41"),
        (b"x-uuencode", b"begin 644 a.txt\n#0V%T\n`\nend\n", b"Cat"),
        (b"x-uuencode", b"no such thing", b"no such thing"),
    ],
)
def test_transfer_encodings_are_undone_as_far_as_they_hold(
    encoding: bytes, data: bytes, expected: bytes
) -> None:
    raw = b"Content-Transfer-Encoding: " + encoding + b"\n\n" + data
    assert contents(raw)[0][1] == expected


@pytest.mark.parametrize(
    ("head", "filename"),
    [
        (b"Content-Disposition: attachment; filename=a.txt", "a.txt"),
        (b"Content-Type: text/plain; name=b.txt", "b.txt"),
        (b"Content-Type: a/b; name=b\nContent-Disposition: inline; filename=a", "a"),
        (b"Content-Disposition: attachment; filename*=utf-8''%E2%82%AC.txt", "€.txt"),
        (b"Content-Disposition: attachment; filename=" + b"x" * 900, "x" * 255),
        (b"Content-Disposition: attachment", ""),
    ],
)
def test_file_names_are_found(head: bytes, filename: str) -> None:
    assert parse(head + b"\n\nx").parts[0].filename == filename


@pytest.mark.parametrize(
    ("text", "delsp", "expected"),
    [
        ("a \nb", False, "a b"),
        ("ab \ncd", True, "abcd"),
        ("> q \n> r\nnew", False, "> q r\nnew"),
        (">> q \n> r", False, ">> q \n> r"),
        (">q", False, "> q"),
        (">", False, ">"),
        (" >not a quote", False, ">not a quote"),
        (" From here", False, "From here"),
        ("a \n-- \nsig", False, "a \n-- \nsig"),
        ("-- \nsig \nmore", False, "-- \nsig more"),
        ("> -- \n> sig", False, "> -- \n> sig"),
        ("para \n\nnext", False, "para \n\nnext"),
        ("a\n", False, "a\n"),
        ("a ", False, "a "),
        ("", False, ""),
    ],
)
def test_flowed_text_becomes_logical_lines(text: str, delsp: bool, expected: str) -> None:
    assert unflow(text, delsp=delsp) == expected


def test_text_is_decoded_unflowed_and_cut_at_the_limit() -> None:
    raw = b"Content-Type: text/plain; charset=latin1; format=flowed\n\n\x93a \nb\x94\n"
    assert text_of(raw, parse(raw).parts[0]) == ("“a b”\n", False)
    raw = b"Content-Type: text/plain; charset=utf-8\n\n" + "é\n".encode() * MAX_TEXT
    text, capped = text_of(raw, parse(raw).parts[0])
    assert capped
    assert len(text) == MAX_TEXT
    assert set(text) == set("é\n")


def test_an_html_part_without_a_charset_is_read_by_its_own_meta_tag() -> None:
    raw = b'Content-Type: text/html\n\n<meta charset="koi8-r">' + "Привет".encode("koi8-r")
    assert text_of(raw, parse(raw).parts[0])[0].endswith("Привет")


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
    tree = parse(raw)
    assert len(tree.parts) <= MAX_PARTS
    assert sum(len(text_of(raw, part)[0]) for part in tree.parts[:5]) <= 5 * (MAX_TEXT + MAX_DEPTH)


PIECES = [
    b"Content-Type: ",
    b"multipart/mixed",
    b"; boundary=b",
    b"\n",
    b"\n\n",
    b"--b",
    b"--b--",
    b"message/rfc822",
    b"text/plain",
    b"Content-Transfer-Encoding: base64",
    b"aGk=",
    b"\r\n",
]


@settings(deadline=None, max_examples=200, derandomize=True)
@given(st.lists(st.sampled_from(PIECES) | st.binary(max_size=10), max_size=40).map(b"".join))
def test_any_bytes_give_parts_inside_the_message(raw: bytes) -> None:
    for part in parse(raw).parts:
        assert 0 <= part.start <= part.end <= len(raw)
        text, _ = text_of(raw, part)
        assert "\0" not in text


@settings(deadline=None, max_examples=100, derandomize=True)
@given(st.lists(st.binary(max_size=100), max_size=6))
def test_parts_come_back_from_a_multipart(bodies: list[bytes]) -> None:
    parts = [b"Content-Transfer-Encoding: base64\n\n" + base64.b64encode(body) for body in bodies]
    assert [data for _, data in contents(multipart(*parts))] == bodies


@settings(deadline=None, max_examples=100, derandomize=True)
@given(st.text("ab >\n-", max_size=60))
def test_unflowing_loses_no_letter(text: str) -> None:
    assert [c for c in unflow(text) if c in "ab-"] == [c for c in text if c in "ab-"]


def test_strange_real_messages_give_parts() -> None:
    folder = Path(__file__).resolve().parents[2] / "../shared/corpora/torture"
    files = [path for path in folder.rglob("*") if path.is_file()]
    if not files:
        pytest.skip(f"the strange messages are not here: {folder}")
    for path in files:
        raw = path.read_bytes()
        for part in parse(raw).parts:
            text_of(raw, part)
