"""Whether a multipart message is still open at a place, by its outermost boundary."""

from mmap import mmap

MAX_LINE = 80  # bytes; a boundary has at most 70 (RFC 2046 section 5.1.1)


def follows_closing_delimiter(data: bytes | mmap, boundary: bytes | None, offset: int) -> bool:
    """Return whether the line in front of `offset` closes a multipart of this boundary."""
    if boundary is None:
        return False
    line = data[max(0, offset - MAX_LINE) : offset].rstrip(b"\r\n").rpartition(b"\n")[2]
    return line == b"--" + boundary + b"--"


def is_inside_multipart(
    data: bytes | mmap, boundary: bytes | None, message: range, limit: int
) -> bool:
    """Return whether a multipart is closed behind a message and in front of `limit`, not within.

    `message` is where it stands if it ends at the candidate in question. A message that was cut
    off stays open; a copy of it behind it names the boundary first.
    """
    if boundary is None or data.rfind(b"\n--" + boundary + b"--", message.start, message.stop) >= 0:
        return False
    found = data.find(boundary, message.stop, limit)
    while found >= 0 and data[found - 3 : found] == b"\n--":
        end = found + len(boundary)
        if data[end : end + 2] == b"--":
            return True
        found = data.find(boundary, end, limit)
    return False
