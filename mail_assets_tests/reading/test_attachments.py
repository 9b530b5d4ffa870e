"""Attachments of the samples, cut from their archives."""

import hashlib
from pathlib import Path

import psycopg
import pytest

from mail_assets.mail.archive.mbox import extract_message, read_range, split_archive
from mail_assets.reading.attachments import AttachmentError, read_attachment
from mail_assets.reading.browsing import show_message
from mail_assets.store.objects import ObjectStore
from mail_assets.store.open import open_store
from mail_assets_tests.sample_corpus import ROOT, Corpus
from mail_assets_tests.search.conftest import connection

__all__ = ["connection"]  # fixture


@pytest.fixture
def store(corpus: Corpus) -> ObjectStore:
    return open_store(corpus.settings.store)


def test_attachments_of_samples_match_their_digests(
    connection: psycopg.Connection, store: ObjectStore
) -> None:
    ids = connection.execute(
        "select distinct message_id from messages where attachments <> '[]'"
    ).fetchall()
    assert ids
    for (message_id,) in ids:
        copies = show_message(connection, message_id)
        for number, about in enumerate(copies[0]["attachments"], 1):
            assert about["position"] == number
            assert "text" not in about
            content = read_attachment(connection, store, copies, number)
            assert (content.name, content.type) == (about["name"], about["type"])
            assert len(content.data) == about["size"]
            assert hashlib.sha256(content.data).hexdigest() == about["sha256"]


@pytest.mark.parametrize("number", [-1, 0, 1, 99])
def test_missing_attachment_is_named(
    connection: psycopg.Connection, store: ObjectStore, number: int
) -> None:
    copies = show_message(connection, ROOT)
    with pytest.raises(AttachmentError, match=f"{ROOT} has no attachment {number}: it has none"):
        read_attachment(connection, store, copies, number)


@pytest.mark.parametrize(("dialect", "quoted"), [("mboxrd", b">>From"), ("plain", b">From")])
def test_message_is_read_from_its_range(tmp_path: Path, dialect: str, quoted: bytes) -> None:
    body = b"Subject: s\nMessage-ID: <%d@example.org>\n\n" + quoted + b" here\n\n\n"
    line = b"From a@example.org Mon Jan  5 15:18:12 2026\n"
    path = tmp_path / "archive"
    path.write_bytes(b"".join(line + body % number for number in range(2)))
    found = list(split_archive(path, dialect))
    assert len(found) == 2
    for raw in found:
        assert extract_message(read_range(path, raw.offset, raw.length), dialect) == raw.raw
