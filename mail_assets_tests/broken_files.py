"""Damage to files, as by a disk or another program."""

from pathlib import Path


def truncate(path: Path) -> None:
    """Truncate a file to half of its size."""
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def overwrite(path: Path) -> None:
    """Replace all bytes of a file."""
    path.write_bytes(b"\xff" * path.stat().st_size)


def flip(path: Path) -> None:
    """Change one byte in the middle of a file."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0x55
    path.write_bytes(content)
