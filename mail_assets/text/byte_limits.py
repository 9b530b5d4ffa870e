"""Limits in bytes for what goes into a full-text vector, so that PostgreSQL never refuses one.

A tsvector holds at most 1,048,575 bytes of lexemes and positions (PostgreSQL 18 manual, section
12.11). `to_tsvector` makes up to 3.1 bytes of each byte of text (hyphenated words: the whole and
its parts, each with positions); names take their own size. So all three together stay below
4 * (MAX_SUBJECT_BYTES + MAX_TEXT_BYTES) + MAX_NAMES_BYTES = 1,016,000 bytes.
"""

MAX_SUBJECT_BYTES = 4_000
MAX_TEXT_BYTES = 200_000
MAX_NAMES_BYTES = 200_000  # of all identifiers of a message


def cut_to_bytes(text: str, limit: int) -> str:
    """Return the beginning of a text that takes at most `limit` bytes in UTF-8."""
    if len(text) * 4 <= limit:
        return text
    return text.encode()[:limit].decode(errors="ignore")
