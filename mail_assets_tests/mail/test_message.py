"""Whole messages: fields, body, attachments, content hash and flags."""

import gzip
import hashlib
from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mail_assets.mail import message as module
from mail_assets.mail.mbox import MAX_MESSAGE, RawMessage, split
from mail_assets.mail.message import FLAGS, Message, Unreadable, parse, parse_message

CORPORA = Path(__file__).resolve().parents[2] / "../shared/corpora"

HEAD = b"""\
From: Jo Doe <jo@example.org>
To: hackers@lists.example.org, Ann <ann@example.org>
Cc: bo@example.org
Date: Mon, 5 Jan 2026 15:18:12 +0100
Subject: Re: [HACKERS] fix x
Message-ID: <1@example.org>
In-Reply-To: <0@example.org>
References: <00@example.org> <0@example.org>
List-Id: Hackers <Hackers.lists.example.org>
"""
PLAIN = b"Content-Type: text/plain; charset=utf-8\n\nplain\n"
HTML = b"Content-Type: text/html; charset=utf-8\n\n<p>rich</p>\n"
FOOTER = b"Content-Type: text/plain\n\nlist footer\n"
PATCH = b"--- a/x.c\n+++ b/x.c\n@@ -1 +1 @@\n-a\n+b\n"


NO_HTML = b"Your mail reader does not support HTML."


def read(raw: bytes, from_line: bytes = b"", dialect: str = "pg") -> Message:
    return parse_message(raw, month="2026-01", from_line=from_line, dialect=dialect)


def multipart(kind: str, *parts: bytes, boundary: str = "b1") -> bytes:
    inner = b"".join(f"--{boundary}\n".encode() + part + b"\n" for part in parts)
    top = f'Content-Type: multipart/{kind}; boundary="{boundary}"\n\n'.encode()
    return top + inner + f"--{boundary}--\n".encode()


def named(media: str, name: str, data: bytes, disposition: str = "attachment") -> bytes:
    top = f"Content-Type: {media}\nContent-Disposition: {disposition}; filename={name}\n\n"
    return top.encode() + data


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


@pytest.mark.parametrize(
    ("raw", "kind", "text", "names"),
    [
        (PLAIN, "plain", "plain\n", []),
        (HTML, "html", "rich", []),
        (b"\n", "none", "", []),
        (b"\r\n\r\na\r\nb\0\r\n", "plain", "\na\nb\n", []),
        (multipart("alternative", PLAIN, HTML), "plain", "plain\n", []),
        (multipart("alternative", HTML, PLAIN), "plain", "plain\n", []),
        (multipart("alternative", b"\n \n", HTML), "html", "rich", []),
        (multipart("alternative", b"\n" + NO_HTML, HTML), "html", "rich", []),
        (multipart("alternative", b"\n" + NO_HTML), "plain", NO_HTML.decode(), []),
        (multipart("mixed", PLAIN, FOOTER), "plain", "plain\nlist footer\n", []),
        (multipart("mixed", HTML, FOOTER), "html", "rich\nlist footer\n", []),
        (multipart("mixed", PLAIN, HTML), "plain", "plain\n", [""]),
        (
            multipart("mixed", multipart("alternative", PLAIN, HTML, boundary="b2"), FOOTER),
            "plain",
            "plain\nlist footer\n",
            [],
        ),
        (
            multipart("mixed", PLAIN, named("text/plain", "a.txt", b"t")),
            "plain",
            "plain\n",
            ["a.txt"],
        ),
        (multipart("mixed", named("text/plain", "a.txt", b"t", "inline")), "plain", "t", ["a.txt"]),
        (multipart("mixed", named("text/plain", "a.txt", b"t")), "none", "", ["a.txt"]),
        (
            multipart("mixed", PLAIN, named("image/png", "a.png", b"\x89")),
            "plain",
            "plain\n",
            ["a.png"],
        ),
        (
            multipart("signed", PLAIN, b"Content-Type: application/pgp-signature\n\nx"),
            "plain",
            "plain\n",
            [],
        ),
        (
            multipart("signed", PLAIN, named("application/pkcs7-signature", "smime.p7s", b"x")),
            "plain",
            "plain\n",
            [],
        ),
        (
            multipart("mixed", PLAIN, b"Content-Type: message/rfc822\n\nSubject: s\n\ninner"),
            "plain",
            "plain\n",
            ["message"],
        ),
        (
            multipart("mixed", b"Content-Type: message/rfc822\n\nSubject: s\n\ninner"),
            "plain",
            "inner",
            ["message"],
        ),
        (
            multipart("mixed", b"Content-Type: message/rfc822\n\nno headers"),
            "plain",
            "no headers",
            ["message"],
        ),
        (
            multipart("digest", b"\nSubject: a\n\none", b"\nSubject: b\n\ntwo"),
            "plain",
            "one\ntwo",
            ["message", "message"],
        ),
        (
            multipart("mixed", PLAIN, b"Content-Type: application/ms-tnef\n\nx"),
            "plain",
            "plain\n",
            ["winmail.dat"],
        ),
        (b"Content-Type: application/pgp; format=text\n\nsigned\n", "plain", "signed\n", []),
    ],
)
def test_body_and_attachments_are_told_apart(
    raw: bytes, kind: str, text: str, names: list[str]
) -> None:
    found = read(b"Subject: s\n" + raw)
    assert (found.body_kind, found.body_text) == (kind, text)
    assert [attachment.name for attachment in found.attachments] == names


def test_an_attachment_is_described_by_its_decoded_bytes() -> None:
    part = named("application/pdf", "a.pdf\nContent-Transfer-Encoding: base64", b"aGVsbG8=")
    (found,) = read(multipart("mixed", PLAIN, part)).attachments
    assert (found.name, found.type, found.size) == ("a.pdf", "application/pdf", 5)
    assert found.sha256 == hashlib.sha256(b"hello").hexdigest()
    assert (found.is_patch, found.text) == (False, "")


@pytest.mark.parametrize(
    ("media", "name", "data", "is_patch"),
    [
        ("text/x-diff", "x", PATCH, True),
        ("text/x-patch; charset=latin1", "x", PATCH, True),
        ("application/octet-stream", "v1-0001-x.patch", PATCH, True),
        ("text/plain", "x.DIFF", PATCH, True),
        ("text/plain", "x.txt", PATCH, True),
        ("text/plain", "x.txt", b"text\n\n*** a/x.c\tMon\n--- b/x.c\tTue\n", True),
        ("text/plain", "x.txt", b"Index: x.c\n====\n", False),
        ("text/plain", "notes.txt", b"--- \nno patch\n", False),
        ("application/gzip", "x.patch.gz", PATCH, False),
    ],
)
def test_patches_are_known_by_type_name_or_content(
    media: str, name: str, data: bytes, is_patch: bool
) -> None:
    (found,) = read(multipart("mixed", PLAIN, named(media, name, data))).attachments
    assert (found.is_patch, found.text) == (is_patch, data.decode() if is_patch else "")


def test_patch_text_is_cut_at_the_limit_of_the_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_PATCH_TEXT", len(PATCH) + 3)
    parts = [named("text/x-diff", "x", PATCH)] * 2
    found = read(multipart("mixed", PLAIN, *parts))
    assert [attachment.text for attachment in found.attachments] == [PATCH.decode(), "---"]
    assert found.flags == ("date_repaired", "generated_id", "text_capped")


@pytest.mark.parametrize(
    ("raw", "flag"),
    [
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
        (
            HEAD + multipart("encrypted", b"Content-Type: application/pgp-encrypted\n\n1\n"),
            "encrypted",
        ),
        (b"no headers", "no_headers"),
    ],
)
def test_every_repair_leaves_its_flag(raw: bytes, flag: str) -> None:
    found = read(raw)
    assert flag in found.flags
    assert set(found.flags) <= FLAGS.keys()
    assert list(found.flags) == sorted(found.flags)


def test_marks_of_the_splitter_become_flags() -> None:
    raw = RawMessage(0, 9, b"From a@b Mon Jan  5 15:18:12 2026", b"Subject: s\n\nx", True, True)
    found = parse(raw, month="2026-01")
    assert {"truncated", "suspicious"} <= set(found.flags)
    assert found.date_source == "from_line"
    assert parse(raw._replace(truncated=False, suspicious=False), month="2026-01").flags == (
        "date_repaired",
        "generated_id",
    )


@pytest.mark.parametrize(
    ("field", "list_id"),
    [
        (b"List-Id: <a.example.org>", "a.example.org"),
        (b"List-Id: a.example.org", "a.example.org"),
        (b"X-Mailing-List: a@vger.example.org", "a.vger.example.org"),
        (b"Sender: owner-a@example.org", "a.example.org"),
        (b"Sender: a-owner+M123@example.org", "a.example.org"),
        (b"Sender: jo@example.org", ""),
        (b"X: y", ""),
    ],
)
def test_the_list_is_found(field: bytes, list_id: str) -> None:
    assert read(field + b"\n\nx").list_id == list_id


def test_a_rewritten_author_is_restored_and_the_reply_address_kept() -> None:
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


def test_a_generated_id_is_the_same_in_every_copy() -> None:
    raw = b"From: jo@example.org\nDate: Mon, 5 Jan 2026 15:18:12 +0100\nSubject: a b\n\nx\n"
    copy = raw.replace(b"Subject: a b", b"Received: x\nSubject: a\n b").replace(b"\n", b"\r\n")
    made = {read(raw).message_id, read(copy + b"\r\n").message_id}
    assert len(made) == 1
    assert read(raw.replace(b"x\n", b"y\n")).message_id not in made


FOLDED = HEAD + b"Content-Type: text/plain\n\nbody\n\nmore\n"


@pytest.mark.parametrize(
    "copy",
    [
        FOLDED.replace(b"\n", b"\r\n"),
        FOLDED + b"\n\n",
        FOLDED.replace(b" <0@example.org>\nList", b"\n\t<0@example.org>\nList"),
        FOLDED.replace(b"Subject: ", b"Subject:\n "),
        FOLDED.replace(b"List-Id: Hackers", b"List-Id: Other"),
        b"Received: by x\nX-Spam: no\nList-Unsubscribe: <x>\n" + FOLDED,
        FOLDED.replace(b"Subject: Re:", b"subject:   Re:"),
    ],
)
def test_the_content_hash_is_the_same_for_faithful_copies(copy: bytes) -> None:
    assert copy != FOLDED
    assert read(copy).content_hash == read(FOLDED).content_hash
    assert read(copy, from_line=b"From nobody now").content_hash == read(FOLDED).content_hash


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"Jo Doe", b"Jo"),
        (b"jo@example.org", b"jo@example.com"),
        (b"To: hackers", b"To: users"),
        (b"Cc: bo", b"Cc: co"),
        (b"15:18:12", b"15:18:13"),
        (b"fix x", b"fix y"),
        (b"<1@example.org>", b"<2@example.org>"),
        (b"In-Reply-To: <0", b"In-Reply-To: <9"),
        (b"<00@example.org>", b"<99@example.org>"),
        (b"text/plain", b"text/html"),
        (b"body", b"Body"),
        (b"body\n\nmore", b"body\nmore"),
        (b"To: hackers", b"Cc: hackers"),
    ],
)
def test_the_content_hash_changes_with_what_the_message_says(old: bytes, new: bytes) -> None:
    assert old in FOLDED
    assert read(FOLDED.replace(old, new)).content_hash != read(FOLDED).content_hash


@pytest.mark.parametrize(
    ("raw", "reason"),
    [(b"", "empty"), (b"\n \r\n", "empty"), (b"x" * (MAX_MESSAGE + 1), f"{MAX_MESSAGE + 1} bytes")],
    ids=["nothing", "blank", "too long"],
)
def test_what_is_no_message_is_unreadable_for_a_reason(raw: bytes, reason: str) -> None:
    with pytest.raises(Unreadable, match=reason) as error:
        read(raw)
    assert reason in error.value.reason


def test_an_unforeseen_error_makes_one_message_unreadable(monkeypatch: pytest.MonkeyPatch) -> None:
    def exhausted(*_: object) -> None:
        raise MemoryError("no room")

    monkeypatch.setattr(module, "_parse", exhausted)
    with pytest.raises(Unreadable, match="MemoryError: no room"):
        read(HEAD + b"\nx")


@pytest.mark.parametrize("options", [("January", "pg"), ("2026-01", "mbx")])
def test_a_wrong_call_is_no_unreadable_message(options: tuple[str, str]) -> None:
    with pytest.raises(ValueError, match=r"January|mbx") as error:
        parse_message(b"Subject: s\n\nx", month=options[0], dialect=options[1])
    assert not isinstance(error.value, Unreadable)


def assert_fit_for_postgres(found: Message) -> None:
    texts: list[str] = []
    pending: list[object] = [getattr(found, field.name) for field in fields(found)]
    while pending:
        value = pending.pop()
        if isinstance(value, str):
            texts.append(value)
        elif isinstance(value, tuple):
            pending.extend(value)
        elif isinstance(value, module.Attachment):
            pending.extend((value.name, value.type, value.text))
    for text in texts:
        assert "\0" not in text
        assert text.encode().decode() == text
    assert "\r" not in found.body_text
    assert found.message_id
    assert found.sent_at.tzinfo is UTC
    assert set(found.flags) <= FLAGS.keys()


PIECES = st.sampled_from(
    [
        b"\n",
        b"\n\n",
        b"\r\n",
        b"--b1",
        b"--b1--",
        b"\0",
        b"=?utf-7?q?+2AA-?=",
        b"<",
        b">",
        b'"',
        b"(",
        b"Subject: ",
        b"From: ",
        b"Date: ",
        b"Message-ID: ",
        b"References: ",
        b"Content-Type: ",
        b"multipart/mixed; boundary=b1",
        b"message/rfc822",
        b"text/html; charset=utf-7",
        b"\xff",
        b"Content-Transfer-Encoding: base64",
        b"Content-Disposition: attachment; filename*=utf-16''%00%d8",
    ]
)


@settings(deadline=None, max_examples=200, derandomize=True)
@given(st.lists(PIECES | st.binary(max_size=12), max_size=30).map(b"".join))
def test_any_bytes_parse_without_an_unforeseen_error(raw: bytes) -> None:
    assert_fit_for_postgres(module._parse(raw, "2026-01", b"", "pipermail"))


WHOLE = HEAD + multipart(
    "mixed", multipart("alternative", PLAIN, HTML, boundary="b2"), named("text/x-diff", "x", PATCH)
)


@settings(deadline=None, max_examples=200, derandomize=True)
@given(
    st.lists(
        st.tuples(st.integers(0, len(WHOLE)), st.integers(0, 20), PIECES | st.binary(max_size=5)),
        min_size=1,
        max_size=6,
    )
)
def test_mutated_mail_parses_without_an_unforeseen_error(
    edits: list[tuple[int, int, bytes]],
) -> None:
    raw = WHOLE
    for at, cut, new in edits:
        raw = raw[:at] + new + raw[at + cut :]
    assert_fit_for_postgres(module._parse(raw, "2026-01", b"", "pg"))


HOSTILE = {
    "50,000 encoded words": b"Subject: " + b" ".join(b"=?utf-8?q?a%d?=" % i for i in range(50_000)),
    "50,000 addresses": b"To: " + b",".join(b"a%d@x.org" % i for i in range(50_000)),
    "500,000 folds": b"Subject: " + b"a\n " * 500_000,
    "brackets": b"From: "
    + b"(" * 100_000
    + b"\nTo: "
    + b'"' * 100_001
    + b"\nCc: "
    + b"<" * 100_000,
    "20,000 continuations": b"Content-Type: a/b"
    + b"".join(b";\n n*%d=x" % i for i in range(20_000)),
    "20,000 messages deep": b"Content-Type: message/rfc822\n\n" * 20_000,
    "200,000 parts": b"Content-Type: multipart/mixed; boundary=x\n\n" + b"--x\n\na\n" * 200_000,
    "ids": b"References: "
    + b"<" * 30_000
    + b"from " * 6_000
    + b"\nIn-Reply-To: "
    + b"from <" * 9_000,
    "dates": b"Date: " + b"1 " * 30_000 + b"\nReceived: " + b";" * 60_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_mail_parses_without_an_unforeseen_error(name: str) -> None:
    assert_fit_for_postgres(module._parse(HOSTILE[name] + b"\n\nx", "2026-01", b"", "pg"))


def test_strange_real_messages_parse_without_an_unforeseen_error() -> None:
    files = [path for path in (CORPORA / "torture").rglob("*") if path.is_file()]
    if not files:
        pytest.skip(f"the strange messages are not here: {CORPORA / 'torture'}")
    for path in files:
        assert_fit_for_postgres(module._parse(path.read_bytes(), "2010-01", b"", "plain"))


def real(name: str, dialect: str) -> list[Message]:
    files = sorted((CORPORA / "archives" / name).glob("*.gz"))
    if not files:
        pytest.skip(f"the real archives are not here: {CORPORA / 'archives' / name}")
    return [
        module._parse(raw.raw, f"{stamp[:4]}-{stamp[4:]}", raw.from_line, dialect)
        for path in files
        for stamp in [path.stem.rpartition(".")[2]]
        for raw in split(path, dialect)
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "dialect", "distinct"),
    [
        ("pgsql-todo", "plain", 1_593),
        ("twisted-python", "pipermail", 6_742),
        ("pgsql-announce", "pg", 14),
    ],
)
def test_real_archives_hold_as_many_distinct_ids_as_are_known(
    name: str, dialect: str, distinct: int
) -> None:
    found = real(name, dialect)
    for one in found:
        assert_fit_for_postgres(one)
    assert len({one.message_id for one in found}) == distinct
    assert all(one.date_source == "date" for one in found)


@pytest.mark.slow
def test_rendering_an_archive_anew_keeps_its_hashes_ids_and_texts() -> None:
    plain, anew = real("linux-man", "plain"), real("linux-man-pgstyle", "pg")
    by_hash = {one.content_hash: one for one in plain}
    same = [one for one in anew if one.content_hash in by_hash]
    # The renderer refolded a header inside a part in 3 messages and emptied a multipart in 1.
    assert len(anew) - len(same) == 4
    assert {one.message_id for one in anew} == {one.message_id for one in plain}
    for one in same:
        other = by_hash[one.content_hash]
        assert one.message_id == other.message_id
        assert one.body_text.rstrip("\n") == other.body_text.rstrip("\n")


def test_a_compressed_month_reads_back_message_by_message(tmp_path: Path) -> None:
    line = b"From a@b Mon Jan  5 15:18:12 2026\n"
    path = tmp_path / "x.202601"
    path.write_bytes(gzip.compress((line + HEAD + b"\nx\n\n") * 2))
    found = [parse(raw, month="2026-01", dialect="plain") for raw in split(path, "plain")]
    assert [one.body_text for one in found] == ["x\n", "x\n"]
    assert len({one.content_hash for one in found}) == 1
