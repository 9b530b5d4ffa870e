"""Files that hold other files, or mail in another format than mbox: known by their first bytes.

A file in a zip or tar file may be stored as it is, so its From_ lines would be found, but not the
first, and a member's name would be taken for mail.
"""

from mmap import mmap

_BEGINNINGS = (
    (0, b"PK\x03\x04", "a zip file"),
    # POSIX.1-1988 and later: behind the first member's name, size and sum
    (257, b"ustar", "a tar file"),
    (0, b"7z\xbc\xaf\x27\x1c", "a 7z file"),
    (0, b"Rar!\x1a\x07", "a rar file"),
    (0, b"\x1f\x9d", "a file of compress (.Z)"),
    (0, b"\x1f\x8b", "compressed twice"),
    (0, b"!BDN", "a store of Outlook (.pst)"),
    (0, b"BABYL OPTIONS:", "a Babyl file (rmail)"),
    (0, b"\x01\x01\x01\x01\n", "a file of MMDF"),
)


def find_container(data: bytes | mmap) -> str:
    """Name what a file is that does not begin with a From_ line, "" where it is none of those."""
    return next(
        (name for at, magic, name in _BEGINNINGS if data[at : at + len(magic)] == magic), ""
    )
