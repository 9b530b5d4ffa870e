"""The parser's fast paths, each compared with its slow path, for any message."""

from mail_assets.mail.message import content_hash, dates, headers, ids
from mail_assets.mail.message.body import select_body
from mail_assets.mail.message.headers import decode_value, parse_header_block, unfold
from mail_assets.mail.message.mime import parse_mime


def check_short_ways(raw: bytes) -> None:
    """Check that fast and slow paths agree on the header, its values and its ids."""
    if headers._FIRST_LINE.match(raw):
        assert headers._find_end(raw, 0, len(raw)) == find_end_slowly(raw)
    fields, _, _ = parse_header_block(raw, 0, len(raw))
    check_hashed_body(raw)
    for value in (value for values in fields.values() for value in values):
        text = decode_value(value)
        assert content_hash._squeezed(value) == " ".join(text.split()).encode()
        assert text == headers._decode(unfold(value), "")
        assert ids.find_ids(text) == find_ids_slowly(text)
        quick = dates._canonical(text)
        assert quick is None or quick == dates._read_any(text)


def find_end_slowly(raw: bytes) -> tuple[int, int]:
    """Find a blank line first, then text before it."""
    blank = headers._BLOCK_END.search(raw)
    text = headers._find_text(raw, 0, blank.start() if blank else len(raw))
    if text is not None:
        return text, text
    return blank.span() if blank else (len(raw), len(raw))


def check_hashed_body(raw: bytes) -> None:
    """Check that text with plain bytes, or decoded before, is decoded to the same text."""
    tree = parse_mime(raw)
    read = content_hash._body(tree, select_body(tree, "iso-8859-2"))
    assert read.rstrip() == content_hash._body(tree, None).rstrip()
    body = raw[tree.body_start :]
    for part in tree.parts:
        if part.start == tree.body_start and content_hash._is_plain(part, body):
            assert content_hash._decoded(part, body).rstrip() == body.rstrip()


def find_ids_slowly(text: str) -> list[str]:
    """Find ids, and remove invisible characters from each."""
    found = map(ids._drop_unseen, ids._ANGLE.findall(text))
    return [ids._short(name) for name in found if name]
