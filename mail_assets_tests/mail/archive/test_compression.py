"""Compressed archives, and reading single messages of them."""

import bz2
import gzip
import hashlib
import lzma
import subprocess
import sys
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import zstandard

from mail_assets.mail.archive import compression
from mail_assets.mail.archive.compression import ArchiveError, open_archive
from mail_assets.mail.archive.mbox import read_range, split_archive, split_mbox
from mail_assets_tests.cases import cases
from mail_assets_tests.mail.mails import LINE, head

COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "zstd": zstandard.ZstdCompressor().compress,
}
MANY = b"".join(
    LINE + head(n) + hashlib.sha512(b"%d" % n).hexdigest().encode() * 40 + b"\n\n"
    for n in range(50)
)


@pytest.mark.parametrize("kind", ["plain", *COMPRESS])
def test_compression_is_known_by_content_and_changes_nothing(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "no-suffix"
    path.write_bytes(COMPRESS[kind](MANY) if kind in COMPRESS else MANY)
    found = list(split_archive(path, "plain"))
    assert found == list(split_mbox(MANY, "plain"))
    with open_archive(path) as archive:
        assert archive.read() == MANY
    for message in (found[0], found[20], found[-1]):
        end = message.offset + message.length
        assert read_range(path, message.offset, message.length) == MANY[message.offset : end]


@pytest.mark.parametrize("kind", COMPRESS)
@pytest.mark.parametrize("padding", [b"", b"\0" * 8])
def test_concatenated_streams_are_one_archive(kind: str, padding: bytes, tmp_path: Path) -> None:
    path = tmp_path / "archive"
    middle = len(MANY) // 2
    streams = COMPRESS[kind](MANY[:middle]), COMPRESS[kind](MANY[middle:]), b""
    path.write_bytes(padding.join(streams))
    assert list(split_archive(path, "plain")) == list(split_mbox(MANY, "plain"))


def overwrite(data: bytes) -> bytes:
    middle = len(data) // 2
    return data[:middle] + b"\xff" * 60 + data[middle + 60 :]


@pytest.mark.parametrize("kind", COMPRESS)
@cases("damage", {
    "junk behind": lambda data: data + b"junk" * 10,
    "a letter behind": lambda data: data + b"j",
    "half of it": lambda data: data[: len(data) // 2],
    "almost all of it": lambda data: data[: int(len(data) * 0.99)],
    "other bytes in it": overwrite,
})  # fmt: skip
def test_damaged_archive_names_file_and_compression(
    kind: str, damage: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    path = tmp_path / "hackers.202601"
    path.write_bytes(damage(COMPRESS[kind](MANY)))
    with pytest.raises(ArchiveError, match=rf"hackers\.202601: {kind} data is damaged or cut off"):
        list(split_archive(path, "plain"))


@pytest.mark.parametrize("kind", COMPRESS)
def test_bomb_is_refused_before_it_is_unpacked(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "hackers.202601"
    bomb = COMPRESS[kind](LINE + head(1) + b"x" * (8 << 20))
    path.write_bytes(bomb)
    assert len(list(split_archive(path, "plain"))) == 1  # small enough to be harmless
    monkeypatch.setattr(compression, "MIN_BOMB_BYTES", 1 << 20)
    with pytest.raises(ArchiveError, match=rf"hackers\.202601: {kind} .* decompression bomb"):
        list(split_archive(path, "plain"))
    mails = [
        LINE + head(n) + hashlib.sha512(b"%d" % n).digest().hex().encode() for n in range(6_000)
    ]
    path.write_bytes(COMPRESS[kind](b"\n".join(mails)))
    assert len(list(split_archive(path, "plain"))) == len(mails)


def repeated(kind: str, size: int) -> bytes:
    """Compressed zero bytes, made with little memory."""
    makers: dict[str, Callable[[], Any]] = {
        "gzip": partial(zlib.compressobj, wbits=zlib.MAX_WBITS | 16),
        "bzip2": bz2.BZ2Compressor,
        "xz": partial(lzma.LZMACompressor, preset=0),
        "zstd": zstandard.ZstdCompressor(level=19).compressobj,
    }
    packer = makers[kind]()
    piece = bytes(1 << 20)
    packed = b"".join(packer.compress(piece) for _ in range(size >> 20))
    return bytes(packed + packer.flush())


@pytest.mark.parametrize("kind", COMPRESS)
def test_bomb_takes_little_memory(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "bomb"
    path.write_bytes(repeated(kind, 96 << 20))
    code = (
        "import sys\n"
        "from pathlib import Path\n"
        "from mail_assets.mail.archive.compression import open_archive\n"
        # ru_maxrss starts with the memory of the parent process
        "def peak():\n"
        "    text = Path('/proc/self/status').read_text()\n"
        "    return int(text.partition('VmHWM:')[2].split()[0])\n"
        "before = peak()\n"
        "with open_archive(Path(sys.argv[1])) as file:\n"
        "    size = sum(map(len, iter(lambda: file.read(1 << 16), b'')))\n"
        "print(size, (peak() - before) >> 10)\n"
    )
    command = [sys.executable, "-c", code, str(path)]
    size, mebibytes = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout.split()
    assert int(size) == 96 << 20
    assert int(mebibytes) < 48


def test_xz_that_asks_for_much_memory_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "hackers.202601"
    data = bytearray(lzma.compress(MANY))
    # the block's header has the size of the dictionary in one byte, and a checksum
    header = 12
    size = (data[header] + 1) * 4
    data[header + 4] = 34  # 512 MiB (xz file format, 5.3.1)
    data[header + size - 4 : header + size] = zlib.crc32(data[header : header + size - 4]).to_bytes(
        4, "little"
    )
    path.write_bytes(data)
    with pytest.raises(ArchiveError, match=r"hackers\.202601: xz data is damaged .*emory"):
        list(split_archive(path, "plain"))


@pytest.mark.parametrize("kind", COMPRESS)
def test_archive_that_does_not_fit_on_the_disk_says_so(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "hackers.202601"
    path.write_bytes(COMPRESS[kind](MANY))
    monkeypatch.setattr(compression, "RESERVE", 1 << 60)
    with pytest.raises(ArchiveError, match=r"hackers\.202601: .*fits on the disk of /.*make room"):
        list(split_archive(path, "plain"))


@pytest.mark.parametrize("kind", ["plain", "gzip"])
def test_reading_past_the_end_is_refused(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "archive"
    path.write_bytes(gzip.compress(MANY) if kind == "gzip" else MANY)
    with pytest.raises(ArchiveError, match=f"offset {len(MANY)}"):
        read_range(path, len(MANY), 1)
