"""Invariants of a message, its segments, chunks and names, for any bytes."""

from collections.abc import Sequence
from datetime import UTC
from itertools import compress, pairwise
from operator import xor

from mail_assets.mail.body.lines import Segment
from mail_assets.mail.body.segments import new_text_spans, segment_with_attached
from mail_assets.mail.message.body import PatchFile
from mail_assets.mail.message.message import FLAGS, Attachment, Message
from mail_assets.mail.patches.diff import read_diff
from mail_assets.mail.patches.patch import (
    MAX_CHANGELOG,
    MAX_DIGESTS,
    MAX_FILES,
    MAX_LINKS,
    MAX_PATCHES,
    MAX_TITLE,
)
from mail_assets.mail.patches.read import PatchMail, read_diffs
from mail_assets.text.chunk_sizes import ChunkSizes
from mail_assets.text.chunking import build_document, chunk_body
from mail_assets.text.identifiers import (
    MAX_IDENTIFIERS,
    MAX_LENGTH,
    find_identifiers,
    list_patch_names,
)
from mail_assets_tests.text.minilm import minilm

KINDS = {"text", "quote", "attribution", "signature", "footer", "patch"}
TOKENIZER = minilm()
SIZES = ChunkSizes(target=160, max_tokens=200, min_tokens=20, overlap=30)


def check_message(found: Message) -> None:
    """Check texts for characters that Postgres refuses, and the id, the date and the flags."""
    pending: list[object] = [*found]
    while pending:
        value = pending.pop()
        if isinstance(value, str):
            assert "\0" not in value
            assert value.encode().decode() == value  # no lone surrogate
        elif isinstance(value, tuple):
            pending.extend(value)
        elif isinstance(value, Attachment):
            pending.extend((value.name, value.type))
    assert "\r" not in found.body_text
    assert found.message_id
    assert found.sent_at.tzinfo is UTC
    assert set(found.flags) <= FLAGS.keys()
    assert list(found.flags) == sorted(found.flags)


def check_segments(body: str, attached: Sequence[tuple[int, int]] = ()) -> list[Segment]:
    """Check that segments cover the body, end at line ends, and differ in kind from the next."""
    parts = segment_with_attached(body, attached)
    assert [part.start for part in parts] == [0, *(part.end for part in parts)][: len(parts)]
    assert "".join(body[part.start : part.end] for part in parts) == body
    assert all(body[part.end - 1] == "\n" for part in parts[:-1])
    assert all(left.kind != right.kind for left, right in pairwise(parts))
    assert {part.kind for part in parts} <= KINDS
    return parts


def check_patches(found: Message, parts: list[Segment]) -> None:
    """Check that patches are read without errors, keep their limits, and can be stored."""
    attached = [PatchFile("x.patch", text) for text in found.patch_texts]
    mail = PatchMail(
        *(found.message_id, found.subject, found.from_name, found.from_email, found.sent_at),
        *(found.in_reply_to, found.body_text, parts, attached),
    )
    read = read_diffs(mail)
    assert len(read) <= MAX_PATCHES
    for one, diff in read:
        assert len(one.files) <= min(MAX_FILES, one.file_count)
        assert [*one.line_digests] == sorted({*one.line_digests})
        assert len(one.line_digests) <= MAX_DIGESTS
        assert len(one.links) <= MAX_LINKS
        assert len(one.changelog) <= MAX_CHANGELOG
        assert len(one.title) <= MAX_TITLE
        assert "\0" not in "".join([one.title, one.author_name, *(file.path for file in one.files)])
        again = read_diff(diff.as_git())
        if one.patch_id and not one.malformed:
            assert again.patch_id() == one.patch_id


def check_texts(found: Message) -> None:
    """Check the segments, chunks and identifiers of a message."""
    body, parts = found.body_text, check_segments(found.body_text, found.attached_texts)
    spans = new_text_spans(body, parts)
    cut = chunk_body(body, spans, found.subject, TOKENIZER, SIZES)
    cited, new = bytearray(len(body)), bytearray(len(body))
    for start, end in spans:
        new[start:end] = b"\1" * (end - start)
    for one in cut.chunks:
        assert one.text == "".join(body[start:end] for start, end in one.spans)
        seen = TOKENIZER.encode(build_document(found.subject, one.text), add_special_tokens=False)
        assert one.tokens == len(seen) <= SIZES.max_tokens
        for start, end in one.spans:
            assert all(new[start:end])
            cited[start:end] = b"\1" * (end - start)
    # Text without any token makes no chunk.
    if any(cited) and not cut.truncated:
        left = "".join(compress(body, map(xor, new, cited)))
        assert not left.strip()
    patches = [body[part.start : part.end] for part in parts if part.kind == "patch"]
    patches += found.patch_texts
    check_patches(found, parts)
    names = find_identifiers(f"{found.subject}\n{body}", list_patch_names(patches))
    assert names == sorted(set(names))
    assert len(names) <= MAX_IDENTIFIERS
    assert all(0 < len(name) <= MAX_LENGTH for name in names)
