"""Archives that pass the check, and content that is refused without leaving a file."""

import bz2
import gzip
import hashlib
import io
import lzma
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from mail_assets.mail.archive import compression
from mail_assets.mail.archive.compression import unpacked_path
from mail_assets.month import ListMonth, is_month
from mail_assets.sources.archive_file import save_archive, verify_archive
from mail_assets.sources.folder import FolderSource
from mail_assets.sources.source import SourceError
from mail_assets.sources.urls import fill_template, group_by_month, month_in_name

MONTH = ListMonth("pgsql-hackers", "2026-01")
CORPORA = Path(__file__).resolve().parents[2] / "../shared/corpora"
MBOX = b"".join(
    b"From ann@example.org Mon Jan 05 15:18:12 2026\nFrom: ann@example.org\nSubject: %d\n\n%s\n\n"
    % (number, hashlib.sha256(b"%d" % number).hexdigest().encode())
    for number in range(3000)
)
COMPRESSIONS: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": zstandard.ZstdCompressor().compress,
}
SQUEEZED = {kind: compress(MBOX) for kind, compress in COMPRESSIONS.items()}


def zipped(data: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("a.mbox", data)
    return buffer.getvalue()


@pytest.mark.parametrize("data", [
    pytest.param(MBOX, id="plain"),
    pytest.param(b"", id="empty"),
    pytest.param(b"\n \n", id="blank"),
    pytest.param(gzip.compress(b""), id="empty gzip"),
    pytest.param(b"\xef\xbb\xbf\r\n" + MBOX, id="mark and blank line"),
    pytest.param(b"a lost line\n" + MBOX, id="junk before the first From_ line"),
    pytest.param(gzip.compress(MBOX) + gzip.compress(MBOX), id="two gzip members"),
    *(pytest.param(data, id=kind) for kind, data in SQUEEZED.items()),
    *(pytest.param(data * 2, id=f"{kind} twice") for kind, data in SQUEEZED.items()),
])  # fmt: skip
def test_archive_in_any_compression_passes(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "archive"
    path.write_bytes(data)
    verify_archive(path)


@pytest.mark.parametrize(("data", "reason"), [
    (b"<!DOCTYPE html><html>Sign in</html>", "HTML page"),
    (b"\n\n  <html>\nFrom here on\n", "HTML page"),
    (gzip.compress(b"<HTML><body>Error 500</body></HTML>", mtime=0), "HTML page"),
    (b'{"error": "rate limited"}', "not an mbox"),
    (b"Not found\n", "not an mbox"),
    (zipped(b"x"), "not an mbox"),
    (gzip.compress(gzip.compress(MBOX, mtime=0), mtime=0), "not an mbox"),
])  # fmt: skip
def test_other_content_of_a_server_is_refused(tmp_path: Path, data: bytes, reason: str) -> None:
    path = tmp_path / "archive"
    path.write_bytes(data)
    with pytest.raises(SourceError, match=reason) as refusal:
        verify_archive(path)
    assert not refusal.value.retryable


@pytest.mark.parametrize("kind", SQUEEZED)
@given(share=st.floats(0.05, 0.999))
@settings(max_examples=25)
def test_stream_truncated_anywhere_is_refused(
    tmp_path_factory: pytest.TempPathFactory, kind: str, share: float
) -> None:
    data = SQUEEZED[kind]
    path = tmp_path_factory.mktemp("cut") / "archive"
    path.write_bytes(data[: min(int(len(data) * share), len(data) - 1)])
    with pytest.raises(SourceError):
        verify_archive(path)


@pytest.mark.parametrize(
    ("downloaded", "remedy"), [(True, "fetch the archive again, "), (False, "replace the file")]
)
@pytest.mark.parametrize("kind", SQUEEZED)
@pytest.mark.parametrize("cut", [True, False], ids=["cut", "junk behind"])
def test_damage_is_retryable_only_if_downloaded(
    tmp_path: Path, kind: str, cut: bool, downloaded: bool, remedy: str
) -> None:
    data = SQUEEZED[kind][:-200] if cut else SQUEEZED[kind] + b"junk"
    with pytest.raises(SourceError, match=rf"data is damaged or cut off .*; {remedy}") as refusal:
        save_archive([data], tmp_path / "archive", downloaded=downloaded)
    assert refusal.value.retryable is downloaded
    assert str(tmp_path) not in str(refusal.value)


@pytest.mark.parametrize("downloaded", [True, False])
def test_bomb_is_not_asked_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, downloaded: bool
) -> None:
    monkeypatch.setattr(compression, "MIN_BOMB_BYTES", 1 << 20)
    bomb = gzip.compress(MBOX[:200] + bytes(8 << 20))
    with pytest.raises(SourceError, match="decompression bomb; remove it") as refusal:
        save_archive([bomb], tmp_path / "archive", downloaded=downloaded)
    assert not refusal.value.retryable
    assert str(tmp_path) not in str(refusal.value)


def pieces(data: bytes, size: int = 1000) -> Iterator[bytes]:
    return (data[at : at + size] for at in range(0, len(data), size))


def test_saved_archive_is_whole_with_its_hash(tmp_path: Path) -> None:
    target = tmp_path / "stored"
    data = SQUEEZED["gz"]
    size, sha256 = save_archive(pieces(data), target)
    assert (size, sha256) == (len(data), hashlib.sha256(data).hexdigest())
    assert target.read_bytes() == data
    assert {*tmp_path.iterdir()} == {target, unpacked_path(target)}


@pytest.mark.parametrize(
    ("data", "limit"), [(SQUEEZED["gz"][:-9], None), (MBOX, len(MBOX) - 1), (b"<html>", None)]
)
def test_refused_archive_keeps_earlier_file(tmp_path: Path, data: bytes, limit: int | None) -> None:
    source = FolderSource("pgsql-hackers", str(tmp_path))
    target = tmp_path / "stored"
    target.write_bytes(b"earlier")
    with (
        pytest.raises(SourceError, match="list pgsql-hackers, month 2026-01: there is refused"),
        source.refusing(MONTH, "there"),
    ):
        save_archive(pieces(data), target, max_bytes=limit)
    assert target.read_bytes() == b"earlier"
    assert list(tmp_path.iterdir()) == [target]


def test_source_that_breaks_off_leaves_nothing(tmp_path: Path) -> None:
    def broken() -> Iterator[bytes]:
        yield MBOX
        raise ConnectionResetError

    with pytest.raises(ConnectionResetError):
        save_archive(broken(), tmp_path / "stored")
    assert list(tmp_path.iterdir()) == []


def test_every_real_archive_passes() -> None:
    archives = sorted((CORPORA / "archives").glob("*/*.gz"))
    if not archives:
        pytest.skip("the real archives of ../shared/corpora are not here")
    for archive in archives:
        verify_archive(archive)


MONTHS = st.builds(lambda y, m: f"{y:04d}-{m:02d}", st.integers(1970, 2099), st.integers(1, 12))
SUFFIXES = ["", ".mbox", ".txt", ".gz", ".bz2", ".xz", ".zst", ".mbox.gz", ".txt.zst", ".MBOX.GZ"]


@pytest.mark.parametrize(("name", "month"), [
    ("pgsql-hackers.202405", "2024-05"),
    ("202405", "2024-05"),
    ("2003-April.txt.gz", "2003-04"),
    ("2003-april", "2003-04"),
    ("2003-APR.txt", "2003-04"),
    ("2003-May.txt", "2003-05"),
    ("list@example.org-2020-01.mbox.gz", "2020-01"),
    ("foo-15-2001-03.mbox", "2001-03"),
    ("v2.197001", "1970-01"),
    ("v2.209912", "2099-12"),
    ("line\nbreak.202405", "2024-05"),
])  # fmt: skip
def test_month_is_read_from_the_end_of_a_name(name: str, month: str) -> None:
    assert month_in_name(name) == month


@pytest.mark.parametrize(
    "name",
    [
        "",
        "foo.1234567890",  # ten digits are an id
        "20240512",  # a day
        "1202405",
        "12024-05",
        "foo.202413",
        "foo.202400",
        "foo.196912",
        "foo.210001",
        "foo.2024-5",
        "foo.2024-05-17",
        "2003-Apri.txt",
        "2003-Sept.txt",
        "2003April.txt",
        "2003-April.txt.gz.asc",
        "2003-April.gz.txt",
        "2003-April.html",
        "thread.html",
        "foo.202405.tar.gz",
        "foo.202405\n",
        "foo.２０２４０５",  # digits, but not ASCII
        "2003-Auguſt",  # a long s, which ignores case as an s does
        "202405/",
    ],
)
def test_other_names_hold_no_month(name: str) -> None:
    assert month_in_name(name) is None


@given(month=MONTHS, head=st.text(max_size=12), suffix=st.sampled_from(SUFFIXES))
@settings(max_examples=200)
def test_month_in_name_is_read_unless_digit_precedes_it(month: str, head: str, suffix: str) -> None:
    touched = head[-1:] in set("0123456789")
    for spelled in ("{yyyymm}", "{yyyy-mm}", "{yyyy-Month}"):
        name = head + fill_template(spelled, month) + suffix
        assert month_in_name(name) == (None if touched else month)


@given(st.text(alphabet="0123456789-JanuryMy.gzmbox\n", max_size=24))
@settings(max_examples=200)
def test_any_name_gives_a_real_month_or_none(name: str) -> None:
    month = month_in_name(name)
    assert month is None or is_month(month)


def test_places_are_grouped_by_month_in_order() -> None:
    places = ["b/x.202002", "a/x.202001.gz", "a/x.202001", "README", "b/x.202002"]
    assert group_by_month(places, lambda place: place.rpartition("/")[2]) == {
        "2020-01": ["a/x.202001", "a/x.202001.gz"],
        "2020-02": ["b/x.202002"],
    }


def test_every_placeholder_of_a_template_is_filled() -> None:
    template = "https://a.example/{yyyy-mm}/{yyyymm}?{yyyy-Month}&{yyyymm}"
    assert (
        fill_template(template, "2003-04") == "https://a.example/2003-04/200304?2003-April&200304"
    )
