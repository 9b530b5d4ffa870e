"""Hostile mail: archives of one message, built by name.

Each call gives the same bytes. `test_hostile` has the expected results, `benchmarks.hostile`
measures the cost.
"""

import base64
import bz2
import gzip
from collections.abc import Callable

import zstandard

LINE = b"From a@example.org Mon Jan  5 15:18:12 2026\n"
HEAD = (
    b"From: a@example.org\nDate: Mon, 5 Jan 2026 15:18:12 +0000\n"
    b"Message-ID: <1@example.org>\nSubject: s\n"
)
HTML = b"Content-Type: text/html; charset=utf-8\n"
MB = 1 << 20


def _mail(body: bytes, *fields: bytes) -> bytes:
    names = {field.partition(b":")[0] for field in fields}
    head = [field for field in HEAD.splitlines() if field.partition(b":")[0] not in names]
    return LINE + b"\n".join([*head, *fields, b"", body, b""])


def _html(html: bytes) -> bytes:
    return _mail(html, HTML.rstrip())


def _parts(part: bytes, count: int, first: bytes = b"") -> bytes:
    return _mail(
        first + (b"--b\n" + part + b"\n") * count + b"--b--",
        b"Content-Type: multipart/mixed; boundary=b",
    )


def _nested(depth: int) -> bytes:
    inner = b"".join(
        b"Content-Type: multipart/mixed; boundary=b%d\n\n--b%d\n" % (level, level)
        for level in range(1, depth)
    )
    return _mail(b"--b0\n" + inner + b"\ntext", b"Content-Type: multipart/mixed; boundary=b0")


def _lines(line: bytes, size: int = MB) -> bytes:
    return _mail((line + b"\n") * (size // (len(line) + 1) - 1))


def _wrapped(media: bytes, first: bytes = b"", last: bytes = b"") -> bytes:
    """Containers in base64, 30 levels deep: 5 MB."""
    head = b"Content-Type: " + media + b"\nContent-Transfer-Encoding: base64"
    entity = b"Subject: s\n\n" + b"text\n" * 200
    for _ in range(30):
        body = base64.encodebytes(first + entity + last)
        entity = head + b"\n\n" + body
    return _mail(body, head)


_PATCH = b"--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n-int a;\n+int b;\n int c;\n"

_DIFF = b"Content-Type: text/x-diff\n\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n"

CASES: dict[str, Callable[[], bytes]] = {
    # structure
    "multipart nested 1,000 deep": lambda: _nested(1_000),
    "message/rfc822 nested 20,000 deep": lambda: _mail(
        b"Content-Type: message/rfc822\n\n" * 20_000, b"Content-Type: message/rfc822"
    ),
    "200,000 parts": lambda: _parts(b"\nx", 200_000),
    "1,900 HTML parts of 50 KB": lambda: _parts(HTML + b"\n" + b"<b><a>" * 8_500, 1_900),
    "10 MB of lines like a boundary": lambda: _mail(
        b"--bx\n" * (2 * MB), b"Content-Type: multipart/mixed; boundary=b"
    ),
    "gzip bomb of 110 MB": lambda: gzip.compress(_mail(b"x" * (110 * MB)), 1),
    "gzip bomb of lines": lambda: gzip.compress(_mail(b"word > word\n" * (9 * MB)), 1),
    # header
    "50,000 recipients": lambda: _mail(b"x", b"To: " + b"Jo Doe <jo@example.org>,\n " * 50_000),
    "100 KB of quotes in From": lambda: _mail(b"x", b"From: " + b'"' * 100_000),
    "100,000 brackets in addresses": lambda: _mail(
        b"x", b"From: " + b"(" * 100_000, b"To: " + b'"' * 100_001, b"Cc: " + b"<" * 100_000
    ),
    "50,000 encoded words": lambda: _mail(b"x", b"Subject: " + b"=?utf-8?q?=C3=A9?=\n " * 50_000),
    "100,000 header fields": lambda: _mail(b"x", *[b"To: jo@example.org"] * 100_000),
    "ids in signs that begin one": lambda: _mail(
        b"x",
        b"References: " + b"<" * 30_000 + b"from " * 6_000,
        b"In-Reply-To: " + b"from <" * 9_000,
    ),
    "dates that never are one": lambda: _mail(
        b"x", b"Date: " + b"1 " * 30_000, b"Received: " + b";" * 60_000
    ),
    "50,000 Received fields": lambda: _mail(b"x", *[b"Received: by x; 5 Jan 2026 1:02"] * 50_000),
    "1 MB of References": lambda: _mail(
        b"x", b"References: " + b"\n ".join(b"<%d@example.org>" % n for n in range(50_000))
    ),
    "500,000 folded lines of Subject": lambda: _mail(b"x", b"Subject: a" + b"\n x" * 500_000),
    "20,000 pieces of a file name": lambda: _mail(
        b"x",
        b"Content-Type: text/plain;"
        + b"".join(b"\n name*%d=x;" % piece for piece in range(20_000)),
    ),
    # HTML
    "5 MB of & in HTML": lambda: _html(b"&" * (5 * MB)),
    "10 MB of < in HTML": lambda: _html(b"<" * (10 * MB)),
    "100,000 div, nested": lambda: _html(b"<div>" * 100_000 + b"x"),
    "5 MB of div, nested": lambda: _html(b"<div>" * MB + b"x"),
    "5 MB of links, never closed": lambda: _html(b"<a href=x>y" * (MB // 2)),
    "5 MB of b and a, never closed": lambda: _html(b"<b><a>" * MB),
    "5 MB of formatting, crossed": lambda: _html(b"<b><i><u></b></i>" * (MB // 3)),
    "5 MB of paragraphs in formatting": lambda: _html(b"<font><p>" * (MB // 2)),
    "20,000 tables, nested": lambda: _html(b"<table><tr><td>" * 20_000 + b"x"),
    "5 MB of tables, nested": lambda: _html(b"<table><tr><td>" * (MB // 3) + b"x"),
    "a table of 500,000 cells": lambda: _html(
        b"<table>" + (b"<tr>" + b"<td>x" * 1_000) * 500 + b"</table>"
    ),
    "5 MB of text misplaced in a table": lambda: _html(b"<table>" + b"x<tr>" * MB),
    "comments, never closed": lambda: _html(b"<!-- x " * MB + b"y"),
    "CDATA, never closed": lambda: _html(b"<![CDATA[ x ]]" * (MB // 2) + b"y"),
    "200,000 attributes": lambda: _html(
        b"<p " + b"".join(b"a%d=b " % number for number in range(200_000)) + b">x"
    ),
    "100,000 quotes, nested": lambda: _html(b"<blockquote type=cite>" * 100_000 + b"x"),
    "5 MB of lists, nested": lambda: _html(b"<ul>a" * MB),
    "5 MB of items in nested lists": lambda: _html(b"<ol><li>a\n" * (MB // 2)),
    "1 MB of quotes, never ended": lambda: _html(b"<blockquote " * (MB // 12)),
    "1 MB of entities": lambda: _html(b"&#x41;&amp;&notanentity;" * (MB // 24)),
    "1 MB of svg and select": lambda: _html(b"<svg><select><option>" * (MB // 21) + b"x"),
    # text
    "60,000 characters on a line": lambda: _mail(b"x" * 60_000),
    "50 MB on a line": lambda: _mail(b"x" * (50 * MB)),
    "50 MB of quoted-printable": lambda: _mail(
        b"=C3=A9=\n" * (7 * MB), b"Content-Transfer-Encoding: quoted-printable"
    ),
    "50 MB of base64": lambda: _mail(
        base64.encodebytes(b"text of a line\n" * (2_500_000)), b"Content-Transfer-Encoding: base64"
    ),
    "50 MB of bad base64": lambda: _mail(
        b"====*A\n" * (7 * MB), b"Content-Transfer-Encoding: base64"
    ),
    "20 MB of uuencode": lambda: _mail(
        b"begin 644 x\n" + b"#0V%T\n" * (3 * MB), b"Content-Transfer-Encoding: x-uuencode"
    ),
    "2 MB of flowed lines": lambda: _mail(
        b">> word \n" * 230_000, b"Content-Type: text/plain; format=flowed"
    ),
    "2 MB of shifts in iso-2022-jp": lambda: _mail(
        b"\x1b$B\x1b(B" * (MB // 3), b"Content-Type: text/plain; charset=iso-2022-jp"
    ),
    "1 MB of characters of Windows in euc-jp": lambda: _mail(
        b"\xad\xa1a" * (MB // 3), b"Content-Type: text/plain; charset=euc-jp"
    ),
    "2 MB of utf-7": lambda: _mail(b"+AOk-" * 400_000, b"Content-Type: text/plain; charset=utf-7"),
    "100,000 quote levels": lambda: _mail(b">" * 100_000 + b" x"),
    "1 MB of quoted lines": lambda: _lines(b"> x"),
    "1 MB of blank lines": lambda: _lines(b""),
    "1 MB of bars": lambda: _lines(b"| x"),
    "1 MB of signatures": lambda: _lines(b"-- "),
    "1 MB of attributions": lambda: _lines(b"On 5 Jan 2026"),
    "1 MB of attributions, each whole": lambda: _lines(b"On 5 Jan 2026 X wrote:"),
    "1 MB of From and Sent": lambda: _lines(b"From: a\nSent: b\nTo: c"),
    "1 MB of rules": lambda: _lines(b"_" * 40),
    "1 MB of list names": lambda: _lines(b"x mailing list"),
    "1 MB of armour": lambda: _lines(b"-----BEGIN PGP SIGNATURE-----"),
    "1 MB of letters below a bar": lambda: _mail(b"| a\n\n" + b"x" * (MB - 64)),
    "1 MB of long lines below a bar": lambda: _mail(b"| a\n\n" + (b"x" * 900 + b"\n") * 1_100),
    "1 MB of at signs above a quote": lambda: _mail(b"<" + b"@" * (MB - 64) + b":\n> q"),
    "1 MB of mobile signatures": lambda: _lines(b"Sent from my x\n"),
    "1 MB of hunks": lambda: _lines(b"@@ -1,999999 +1,999999 @@"),
    "1 MB of wrapped hunk lines": lambda: _lines(b"@@ -1,9 +1,9 @@\n-" + b"y" * 70 + b"\nz\n-"),
    "1 MB of context hunks": lambda: _lines(b"*" * 15 + b"\n*** 1,999999 ****\n  x"),
    "1 MB of diff headers": lambda: _lines(b"Index: x"),
    "1 MB of binary patches": lambda: _lines(b"GIT binary patch\nliteral 1"),
    "1 MB of git headers": lambda: _lines(
        b"diff --git a/x b/x\nindex 1..2\nold mode 1\nnew mode 2"
    ),
    "1 MB of git names": lambda: _mail(b"diff --git " + b"a/x b/" * (MB // 6 - 40)),
    "1 MB of quotes in a git name": lambda: _mail(b'diff --git "' + b'\\"' * (MB // 2 - 40)),
    "1 MB of file names": lambda: _lines(b"--- a\n+++ b\n@@ -1 +1 @@\n-a\n+b"),
    "1 MB of fields of mail": lambda: _lines(
        b"\nFrom: a <a@b>\nSubject: [PATCH] x\n@@ -1 +1 @@\n-a"
    ),
    "1 MB of mailed patches": lambda: _lines(b"From " + b"a" * 40 + b" Mon Sep 17\n" + _PATCH),
    "1 MB of links": lambda: _lines(_PATCH + b"v1: https://a.example/a@b\n[1] v1 [1] [1]"),
    "1 MB of versions": lambda: _lines(_PATCH + b"v1 -> v1 -> v1\nChanges since v1 v1 v1:"),
    "1 MB of a link": lambda: _mail(_PATCH + b"v1: https://a/" + b"%40/@" * (MB // 5 - 90)),
    "1 MB of scissors": lambda: _lines(b"-- >8 --\nSubject: x") + _PATCH,
    "1 MB of normal diffs": lambda: _lines(b"1c1\n< a\n---\n> b"),
    "1 MB of names": lambda: _lines(b"a_b/c.d::e_f(g) "),
    "1 MB of name characters": lambda: _mail(b"a_" * (MB // 2 - 1)),
    "1 MB of dots": lambda: _mail(b"a." * (MB // 2 - 1)),
    "1 MB of at signs": lambda: _mail(b"a@" * (MB // 2 - 1)),
    "1 MB of hexadecimal": lambda: _mail(b"deadbeef1 " * (MB // 11)),
    "1 MB of SQL, never ended": lambda: _lines(b"select 1"),
    "1 MB of statements": lambda: _lines(b"select 1;"),
    "1 MB of table rows": lambda: _lines(b" a | b | c"),
    "1 MB of rows of two columns": lambda: _lines(b" a.c | 12"),
    "1 MB of log brackets": lambda: _mail(b"x]" * (MB // 2 - 1)),
    "1 MB of sentences": lambda: _mail(b"A b. " * (MB // 6)),
    "1 MB of spaces": lambda: _mail(b"x" + b" " * (MB - 9) + b"x"),
    "2 MB of Chinese": lambda: _mail("漢字。".encode() * 230_000),
    "6 MB of combining marks": lambda: _mail("a\u0301".encode() * (2 * MB)),
    "1 MB of control characters": lambda: _mail(b"\x01\x02\0\x7f" * (MB // 4)),
    # containers
    "messages in base64 in one another": lambda: _wrapped(b"message/rfc822"),
    "multiparts in base64 in one another": lambda: _wrapped(
        b"multipart/mixed; boundary=b", b"--b\n", b"--b--"
    ),
    "a digest of 950 mails": lambda: _mail(
        (b"--b\n\nSubject: s\n\n" + b"word\n" * 300 + b"\n") * 950 + b"--b--",
        b"Content-Type: multipart/digest; boundary=b",
    ),
    "10 MB of uuencoded files in the text": lambda: _lines(b"begin 644 x\n#0V%T\n`\nend", 10 * MB),
    "10 MB of uuencoded files, never begun": lambda: _lines(b"begin 644 x", 10 * MB),
    "a uuencoded file of 50 MB": lambda: _mail(
        b"begin 644 x\n" + (b"M" + b"!" * 60 + b"\n") * (50 * MB // 62)
    ),
    "10 MB of yEnc, never ended": lambda: _lines(b"=ybegin name=x\n" + b"=y=" * 40, 10 * MB),
    "10 MB of BinHex, never ended": lambda: _lines(
        b"(This file must be converted with BinHex 4.0)\n:" + b"!" * 60, 10 * MB
    ),
    "S/MIME of 5 million empty elements": lambda: _mail(
        base64.encodebytes(
            b"0\x80" + b"\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x07\x02\xa0\x80"
            b"0\x80\x02\x01\x01" + b"\x31\x80" * 5 * MB
        ),
        b"Content-Type: application/pkcs7-mime\nContent-Transfer-Encoding: base64",
    ),
    "2 MB of events": lambda: _mail(
        b"BEGIN:VEVENT\nSUMMARY:x\n" * (MB // 12), b"Content-Type: text/calendar"
    ),
    "2 MB of parameters in an event": lambda: _mail(
        b"BEGIN:VEVENT\nSUMMARY" + b';x="y"' * (MB // 3), b"Content-Type: text/calendar"
    ),
    "2 MB of commands in enriched text": lambda: _mail(
        b"<param><<<bold>" * (MB // 7), b"Content-Type: text/enriched"
    ),
    # charsets
    "8 MB of lines in two charsets": lambda: _mail(b"\xe9\n\xc3\xa9\n" * (8 * MB // 5)),
    "8 MB of damaged UTF-8 on a line": lambda: _mail(b"\xc3\xa9\xe9 " * (2 * MB)),
    "8 MB of UTF-8 cut in the middle": lambda: _mail(b"\xe4\xbd\n\xe4\xbd\xa0\n" * MB),
    # attachments
    "1,900 patches": lambda: _parts(_DIFF, 1_900),
    "1,900 patches below 1 MB that names commits": lambda: _parts(
        _DIFF, 1_900, b"--b\n\n" + b"See https://example.org/c/0123abc\n" * (MB // 34)
    ),
    "1,900 bombs of zstd": lambda: _parts(
        b"Content-Type: application/zstd; name=x.patch.zst\nContent-Transfer-Encoding: base64\n\n"
        + base64.encodebytes(zstandard.ZstdCompressor().compress(_PATCH * (MB // 3))),
        1_900,
    ),
    "1,900 bzip2 files of empty streams": lambda: _parts(
        b"Content-Type: application/x-bzip2\nContent-Transfer-Encoding: base64\n\n"
        + base64.encodebytes(bz2.compress(b"") * 200),
        1_900,
    ),
    "a patch of 50 MB": lambda: _parts(
        b"Content-Type: text/x-diff\n\n--- a/x\n+++ b/x\n" + b"@@ -1 +1 @@ f(\n-a\n+b\n" * (2 * MB),
        1,
    ),
}
