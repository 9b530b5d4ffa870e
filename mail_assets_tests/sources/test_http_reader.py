"""What arrives from a server, and what is known of it."""

import gzip
import hashlib
import zlib
from pathlib import Path

import pytest

from mail_assets.mail.archive.compression import unpacked_path
from mail_assets.sources.source import Fetched, SourceError, Unchanged
from mail_assets_tests.sources.samples import JANUARY
from mail_assets_tests.sources.web import GZ, MBOX, Reply, Server, fetched, template

# --- what arrives -----------------------------------------------------------------------------


@pytest.mark.parametrize("chunked", [False, True])
def test_an_archive_is_stored_as_sent(server: Server, tmp_path: Path, chunked: bool) -> None:
    url = server.on("/x.202001.gz", Reply(GZ, chunked=chunked))
    found = template(server, "/x.{yyyymm}.gz").fetch(JANUARY, tmp_path / "target")
    sha256 = hashlib.sha256(GZ).hexdigest()
    assert found == Fetched(tmp_path / "target", f"sha256:{sha256}", len(GZ), sha256, url)
    assert (tmp_path / "target").read_bytes() == GZ
    target = tmp_path / "target"
    assert {*tmp_path.iterdir()} == {target, unpacked_path(target)}
    assert server.seen[0][1]["user-agent"].startswith("mail-assets")


CODED = (("Content-Encoding", "gzip"),)


@pytest.mark.parametrize(
    ("name", "sent", "headers", "stored", "asked"),
    [
        pytest.param("x", MBOX, (), MBOX, "gzip", id="plain"),
        pytest.param("x", GZ, CODED, MBOX, "gzip", id="coded on the way"),
        pytest.param("x", GZ + GZ, CODED, MBOX * 2, "gzip", id="coded in two members"),
        pytest.param("x", GZ, (), GZ, "gzip", id="compressed without saying so"),
        pytest.param("x.gz", GZ, (), GZ, "identity", id="gz"),
        pytest.param("x.gz", GZ, CODED, GZ, "identity", id="gz whose own compression is declared"),
        pytest.param(
            "x.GZ", GZ, (("Content-Encoding", "x-gzip"),), GZ, "identity", id="by its old name"
        ),
        pytest.param(
            "x.gz", gzip.compress(GZ), CODED, GZ, "identity", id="gz coded once more on the way"
        ),
        pytest.param("x.gz", GZ + GZ, CODED, GZ + GZ, "identity", id="gz of two members"),
        pytest.param("x.gz", MBOX, (), MBOX, "identity", id="gz unpacked by the server"),
    ],
)
def test_a_content_coding_is_undone_and_the_files_own_compression_is_not(
    server: Server,
    tmp_path: Path,
    name: str,
    sent: bytes,
    headers: tuple[tuple[str, str], ...],
    stored: bytes,
    asked: str,
) -> None:
    server.on(f"/202001/{name}", Reply(sent, headers=headers))
    found = template(server, f"/{{yyyymm}}/{name}").fetch(JANUARY, tmp_path / "target")
    assert fetched(found).sha256 == hashlib.sha256(stored).hexdigest()
    assert (tmp_path / "target").read_bytes() == stored
    assert server.seen[0][1]["accept-encoding"] == asked


@pytest.mark.parametrize(
    ("reply", "reason", "retryable"),
    [
        (Reply(b"<html>Please sign in</html>"), "HTML page", False),
        (Reply(gzip.compress(b"<!doctype html>")), "HTML page", False),
        (Reply(b'{"error": 1}', headers=(("Content-Type", "application/mbox"),)), "no mbox", False),
        (Reply(GZ[:-20]), "refused: .*fetch the archive again", True),
        (Reply(GZ[:-20], headers=CODED), "ends inside its content coding", True),
        (Reply(b"junk", headers=CODED), "content coding is damaged", True),
        (
            Reply(zlib.compress(MBOX), headers=(("Content-Encoding", "deflate"),)),
            "'deflate'",
            False,
        ),
        (Reply(MBOX + MBOX), "larger than the limit of", False),
        (Reply(MBOX, status=206), "HTTP 206", False),
        (Reply(status=304), "HTTP 304", False),
        (Reply(b"bad", status=400), "HTTP 400", False),
    ],
)
def test_what_is_no_archive_is_refused_at_once_and_nothing_is_stored(
    server: Server, tmp_path: Path, reply: Reply, reason: str, retryable: bool
) -> None:
    server.on("/x.202001", reply)
    source = template(server, max_bytes=len(MBOX) + 1)
    with pytest.raises(SourceError, match=f"list hackers, month 2020-01: .*{reason}") as found:
        source.fetch(JANUARY, tmp_path / "target")
    assert found.value.retryable is retryable
    assert list(tmp_path.iterdir()) == []
    assert len(server.seen) == 1


# --- what is known ----------------------------------------------------------------------------

DATE = "Mon, 05 Jan 2026 15:18:12 GMT"


@pytest.mark.parametrize(
    ("headers", "version", "condition"),
    [
        ((("ETag", '"abc"'), ("Last-Modified", DATE)), '"abc"', "if-none-match"),
        ((("ETag", 'W/"abc"'),), 'W/"abc"', "if-none-match"),
        ((("Last-Modified", DATE),), DATE, "if-modified-since"),
        ((("ETag", "unquoted"), ("Last-Modified", DATE)), DATE, "if-modified-since"),
    ],
)
def test_a_version_is_handed_back_as_the_condition_it_came_from(
    server: Server,
    tmp_path: Path,
    headers: tuple[tuple[str, str], ...],
    version: str,
    condition: str,
) -> None:
    url = server.on("/x.202001", Reply(MBOX, headers=headers), Reply(status=304))
    source = template(server)
    assert fetched(source.fetch(JANUARY, tmp_path / "1")).version == version
    assert source.fetch(JANUARY, tmp_path / "2", version) == Unchanged(version, url)
    assert server.seen[1][1][condition] == version
    assert not (tmp_path / "2").exists()


def test_a_server_that_ignores_conditions_is_not_read_to_the_end(
    server: Server, tmp_path: Path
) -> None:
    url = server.on("/x.202001", Reply(MBOX, headers=(("ETag", '"abc"'),), cut=100))
    found = template(server).fetch(JANUARY, tmp_path / "target", '"abc"')
    assert found == Unchanged('"abc"', url)


def test_without_headers_the_bytes_themselves_tell_what_is_unchanged(
    server: Server, tmp_path: Path
) -> None:
    url = server.on("/x.202001", Reply(MBOX), Reply(MBOX), Reply(MBOX + MBOX))
    source = template(server)
    known = fetched(source.fetch(JANUARY, tmp_path / "1")).version
    assert source.fetch(JANUARY, tmp_path / "2", known) == Unchanged(known, url)
    assert not (tmp_path / "2").exists()
    assert fetched(source.fetch(JANUARY, tmp_path / "3", known)).version != known


@pytest.mark.parametrize("known", ["", "12-34", "sha256:00", "a\r\nEvil: 1", '"a\nb"', "\x00"])
def test_a_version_of_another_kind_becomes_no_header(
    server: Server, tmp_path: Path, known: str
) -> None:
    server.on("/x.202001", Reply(MBOX))
    fetched(template(server).fetch(JANUARY, tmp_path / "target", known))
    sent = server.seen[0][1]
    assert not {"if-none-match", "if-modified-since", "evil"} & set(sent)
