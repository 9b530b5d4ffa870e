"""Hostile mail: results are bounded, and flags name the omissions."""

from pathlib import Path

import pytest

from mail_assets.mail.archive.mbox import MAX_MESSAGE, split_archive
from mail_assets.mail.body.segments import new_text_spans
from mail_assets.mail.message.addresses import MAX_ADDRESSES
from mail_assets.mail.message.attachments import MAX_PATCH_TEXT
from mail_assets.mail.message.body import MAX_BODY
from mail_assets.mail.message.ids import MAX_REFERENCES
from mail_assets.mail.message.message import Message
from mail_assets.mail.message.mime import MAX_PARTS
from mail_assets.mail.message.parse import parse_message
from mail_assets.mail.message.subjects import MAX_SUBJECT
from mail_assets.text.chunk_sizes import ChunkSizes
from mail_assets.text.chunking import chunk_body
from mail_assets.text.identifiers import (
    MAX_IDENTIFIERS,
    MAX_LENGTH,
    find_identifiers,
    list_patch_names,
)
from mail_assets_tests.mail.hostile import CASES
from mail_assets_tests.mail.invariants import check_message, check_patches, check_segments
from mail_assets_tests.text.minilm import minilm

TOKENIZER = minilm()
SIZES = ChunkSizes(target=200, max_tokens=254, min_tokens=30, overlap=30, max_chunks=8)

#: Case -> the flags that it sets; TEXT_CAPPED names those with text_capped alone.
FLAGS = {
    "multipart nested 1,000 deep": {"too_deep"},
    "message/rfc822 nested 20,000 deep": {"too_deep"},
    "200,000 parts": {"too_many_parts"},
    "1,900 HTML parts of 50 KB": {"text_capped"},
    "10 MB of lines like a boundary": {"no_boundary", "text_capped"},
    "gzip bomb of 110 MB": {"text_capped", "truncated"},
    "gzip bomb of lines": {"text_capped", "truncated"},
    "50,000 recipients": {"headers_capped"},
    "100 KB of quotes in From": {"headers_capped"},
    "100,000 brackets in addresses": {"headers_capped"},
    "50,000 encoded words": {"headers_capped"},
    "100,000 header fields": {"addresses_capped", "headers_capped"},
    "dates that never are one": {"date_repaired"},
    "50,000 Received fields": {"headers_capped"},
    "1 MB of References": {"headers_capped", "references_capped"},
    "500,000 folded lines of Subject": {"headers_capped"},
    "20,000 pieces of a file name": {"headers_capped"},
    "8 MB of lines in two charsets": {"charset_guessed", "text_capped"},
    "8 MB of damaged UTF-8 on a line": {"charset_guessed", "text_capped"},
    "8 MB of UTF-8 cut in the middle": {"charset_guessed", "text_capped"},
    "messages in base64 in one another": {"too_deep"},
    "multiparts in base64 in one another": {"too_deep"},
}
TEXT_CAPPED = {
    "1 MB of scissors", "2 MB of parameters in an event",
    "2 MB of commands in enriched text",
    "a digest of 950 mails",
    "10 MB of uuencoded files in the text",
    "10 MB of uuencoded files, never begun",
    "10 MB of BinHex, never ended", "5 MB of & in HTML", "10 MB of < in HTML",
    "5 MB of div, nested", "5 MB of lists, nested", "5 MB of items in nested lists",
    "5 MB of links, never closed", "5 MB of b and a, never closed", "5 MB of formatting, crossed",
    "5 MB of paragraphs in formatting",
    "5 MB of tables, nested", "a table of 500,000 cells",
    "5 MB of text misplaced in a table",
    "comments, never closed", "CDATA, never closed", "100,000 quotes, nested", "50 MB on a line",
    "50 MB of quoted-printable", "50 MB of base64", "20 MB of uuencode", "2 MB of flowed lines",
    "6 MB of combining marks", "1,900 bombs of zstd", "a patch of 50 MB",
}  # fmt: skip


def read(name: str, folder: Path) -> Message:
    path = folder / "archive"
    path.write_bytes(CASES[name]())
    [raw] = split_archive(path, "plain")
    assert len(raw.raw) <= MAX_MESSAGE
    return parse_message(raw, month="2026-01", dialect="plain")


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_hostile_mail_gives_bounded_rows_and_chunks(name: str, tmp_path: Path) -> None:
    found = read(name, tmp_path)
    check_message(found)
    flags = FLAGS.get(name, {"text_capped"} if name in TEXT_CAPPED else set())
    assert {*found.flags} - {"no_text"} == flags
    assert found.body_text or "no_text" in found.flags or name == "1 MB of blank lines"
    assert len(found.body_text) <= MAX_BODY
    assert len(found.subject) <= MAX_SUBJECT
    assert max(map(len, (found.to, found.cc, found.reply_to))) <= MAX_ADDRESSES
    assert max(map(len, (found.references, found.in_reply_to))) <= MAX_REFERENCES
    assert len(found.attachments) <= MAX_PARTS
    assert sum(map(len, found.patch_texts)) <= MAX_PATCH_TEXT
    parts = check_segments(found.body_text, found.attached_texts)
    check_patches(found, parts)
    spans = new_text_spans(found.body_text, parts)
    cut = chunk_body(found.body_text, spans, found.subject, TOKENIZER, SIZES)
    assert len(cut.chunks) <= SIZES.max_chunks
    assert all(one.tokens <= SIZES.max_tokens for one in cut.chunks)
    names = find_identifiers(found.body_text, list_patch_names(found.patch_texts))
    assert len(names) <= MAX_IDENTIFIERS
    assert all(len(name) <= MAX_LENGTH for name in names)
