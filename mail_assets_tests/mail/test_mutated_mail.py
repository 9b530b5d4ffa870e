"""Mutated hand-written mail is read from the archive to chunks and names without errors."""

from hypothesis import given, settings
from hypothesis import strategies as st

from mail_assets.mail.archive.mbox import DIALECTS, split_mbox
from mail_assets.mail.message.parse import UnreadableMessageError, parse_message
from mail_assets_tests.mail.invariants import check_message, check_texts
from mail_assets_tests.mail.mails import GIT_LINE, HEAD, HTML, LINE, PATCH, PLAIN, multipart, named
from mail_assets_tests.mail.short_ways import check_short_ways

ANSWER = """\
On Mon, 5 Jan 2026, Ann <ann@example.org> wrote:
> The plan for _bt_search() is wrong.

It reads src/backend/nbtree.c twice, see below. Nothing else. Grüße, 漢字。

EXPLAIN SELECT a
  FROM t;
 Sort  (cost=1.10..2.20 rows=3 width=4)
   ->  Seq Scan on t  (cost=0.00..1.00 rows=3)

| barred
| barred
| barred
-----Original Message-----
From: Ann
Sent: Monday
-- \nJo
_______________________________________________
hackers mailing list
https://lists.example.org/hackers
""".encode()
ARCHIVE = b"\n".join(
    [
        LINE + HEAD + b"Content-Type: text/plain; charset=utf-8; format=flowed\n\n" + ANSWER,
        LINE
        + HEAD.replace(b"<1@", b"<2@")
        + multipart(
            "mixed",
            multipart("alternative", PLAIN, HTML, boundary="b2"),
            named("text/x-diff", "x.patch", PATCH),
            b"Content-Type: message/rfc822\n\n" + HEAD + b"\ninner\n",
        ),
        LINE
        + b"Subject: =?utf-8?b?R3LDvMOfZQ==?=\nFrom: jo at example.org (Jo)\n"
        + b"Content-Transfer-Encoding: quoted-printable\n\n=47r=FC=DFe\n\n"
        + GIT_LINE
        + b"From: Jo\nSubject: [PATCH] y\n\n---\n"
        + PATCH
        + b"-- \n2.40\n",
        LINE
        + b"Message-ID: <3@example.org>\nContent-Type: text/html\n\n"
        + b'<p>new</p><blockquote type="cite">old</blockquote>\n',
    ]
)
PIECES = st.sampled_from(
    [
        b"\n", b"\n\n", b"\r\n", b"\0", b"\xff", b"\xe2\x80\xa8", b"\x1b$B", b"> ", b">From ",
        b"| ", b"-- \n", b"--b1\n", b"--b1--", b"--b2\n", b"@@ -1,9 +1,9 @@\n", b"*" * 15 + b"\n",
        b"x" * 3_000, b"a_b/c.d(e) " * 40, b"a_" * 150, b"word " * 300, b"=?utf-7?q?+2AA-?=",
        b"<", b'"', b"(",
        b"charset=utf-16", b"Content-Type: message/rfc822\n",
        b"Content-Transfer-Encoding: base64\n",
        b"\nOn 5 Jan 2026 X wrote:\n", b"\nFrom: A\nSent: B\nTo: C\n", b"=\n", b"<blockquote>",
        LINE, GIT_LINE, PATCH, "漢字。".encode() * 200, "\U0001f44d".encode(),
    ]
)  # fmt: skip
EDITS = st.lists(
    st.tuples(st.integers(0, len(ARCHIVE)), st.integers(0, 60), PIECES | st.binary(max_size=8)),
    max_size=12,
)


@settings(max_examples=200)
@given(edits=EDITS, dialect=st.sampled_from(DIALECTS))
def test_mutated_archive_is_read_to_its_end(
    edits: list[tuple[int, int, bytes]], dialect: str
) -> None:
    data = ARCHIVE
    for at, cut, new in edits:
        data = data[:at] + new + data[at + cut :]
    data = LINE + HEAD + b"\nfirst\n\n" + data  # so that it remains an mbox after any cut
    found = list(split_mbox(data, dialect))
    ends = [raw.offset + raw.length for raw in found]
    assert [raw.offset for raw in found] == sorted({raw.offset for raw in found})
    assert all(end <= raw.offset for end, raw in zip(ends, found[1:], strict=False))
    assert len(data) - 2 <= ends[-1] <= len(data)
    reasons = set()
    for raw in found:
        check_short_ways(raw.raw)
        try:
            message = parse_message(raw, month="2026-01", dialect=dialect)
        except UnreadableMessageError as error:
            reasons.add(error.reason)
            continue
        check_message(message)
        check_texts(message)
    assert reasons <= {"the message is empty"}


def test_archive_to_be_mutated_has_the_intended_messages() -> None:
    found = [
        parse_message(raw, month="2026-01", dialect="plain") for raw in split_mbox(ARCHIVE, "plain")
    ]
    assert [one.body_kind for one in found] == ["plain", "plain", "plain", "html"]
    assert [len(one.attachments) for one in found] == [0, 2, 0, 0]
    assert found[2].subject == "Grüße"
    assert found[2].body_text.startswith("Grüße\n\nFrom 0123")
    assert found[3].body_text == "new\n\n> old"
