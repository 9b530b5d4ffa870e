"""The patch-id of a diff, as git computes it: https://git-scm.com/docs/git-patch-id."""

import hashlib
import re

_SPACE = b" \t\r\n"
_HEX = re.compile(rb"(?:commit |From )?[0-9a-fA-F]{40}")
_HUNK_OLD = re.compile(rb"@@ -(?:\d{0,30},(\d{0,30})|(\d{0,30}))( \+)?")
_HUNK_NEW = re.compile(rb"(?:\d{0,30},(\d{0,30})|\d{0,30})")
_BINARY_LINES = (b"GIT binary patch", b"Binary files")
_MODULUS = 1 << 160


def patch_id(text: str) -> str:
    """Return what `git patch-id --stable` says of a text, "" if that is nothing.

    The sum of a SHA-1 for each file. Blanks, line numbers and the lines of the index do not count.
    """
    lines = text.encode(errors="surrogatepass").split(b"\n")
    if not lines[-1]:
        lines.pop()
    at, size, found = 0, 0, b""
    while at < len(lines) and not size:
        size, found, at = _read_one_id(lines, at)
    return found.hex() if size else ""


def _read_one_id(lines: list[bytes], at: int) -> tuple[int, bytes, int]:
    """Follow builtin/patch-id.c line by line: size of what was hashed, the id, the next line."""
    size = total = 0
    pieces: list[bytes] = []
    before = after = -1
    is_binary = False
    ids = b""
    while at < len(lines):
        line = lines[at].partition(b"\0")[0]
        at += 1
        if line.startswith(b"\\ ") and len(line) > 11:
            continue
        if _HEX.match(line):
            break
        if not size and not line.startswith(b"diff "):
            continue
        if before == -1:
            if line.startswith(_BINARY_LINES):
                is_binary, before = True, 0
                pieces.append(ids)
                total, pieces = _add(total, pieces), []
                continue
            if line.startswith(b"index "):
                old, dots, new = line[6:].partition(b"..")
                ids = old[:64] + new.split(b" ")[0][:64] if dots else ids
                continue
            if line.startswith(b"--- "):
                before = after = 1
            elif not line[:1].isalpha():
                break
        if is_binary:
            if line.startswith(b"diff "):
                is_binary, before = False, -1
            continue
        if before == 0 and after == 0:
            if line.startswith(b"@@ -"):
                before, after = _read_counts(line, before, after)
                continue
            if not line.startswith(b"diff "):
                break
            total, pieces = _add(total, pieces), []
            before = after = -1
        sign = line[:1]
        before -= sign in (b"-", b" ")
        after -= sign in (b"+", b" ")
        kept = line.translate(None, _SPACE)
        size += len(kept)
        pieces.append(kept)
    return size, _add(total, pieces).to_bytes(20, "little"), at


def _add(total: int, pieces: list[bytes]) -> int:
    digest = hashlib.sha1(b"".join(pieces), usedforsecurity=False).digest()
    return (total + int.from_bytes(digest, "little")) % _MODULUS


def _read_counts(line: bytes, before: int, after: int) -> tuple[int, int]:
    """Return how many lines of either file a hunk has; as git, also of a broken head."""
    old = _HUNK_OLD.match(line)
    if old is None:
        return before, after
    before = int(old[1] or 0) if old[1] is not None else 1
    if not (old[1] or old[2]) or not old[3]:
        return before, after
    new = _HUNK_NEW.match(line, old.end())
    return before, after if new is None else int(new[1] or 0) if new[1] is not None else 1
