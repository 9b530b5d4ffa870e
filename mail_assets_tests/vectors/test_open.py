"""Opening by URL: accepted and refused URLs, and no credential in a message."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from mail_assets.vectors.open import check_bucket_url, open_bucket


@pytest.mark.parametrize("url", [
    "lance:var/vectors", "lance:/srv/vectors", "lance:~/vectors", "lance:s3://bucket/prefix",
    "s3vectors://mail-vectors?region=eu-central-1",
    "s3vectors://mail?region=us-east-1&endpoint=https://vpce.example.org",
    "s3vectors://mail?region=us-east-1&endpoint=http://127.0.0.1:9000",
    "supabase://abcd.supabase.co/mail", "supabase://vectors.example.org:8443/mail",
    "supabase+http://127.0.0.1:54321/mail", "pgvector:",
])  # fmt: skip
def test_valid_urls_pass(url: str) -> None:
    check_bucket_url(url)


@pytest.mark.parametrize(("url", "reason"), [
    ("", "lance:PATH.*s3vectors://.*supabase://.*pgvector:"),
    ("chroma:x", "unknown kind of vector bucket 'chroma'"),
    ("postgresql://me:hidden@host/db", "unknown kind of vector bucket 'postgresql'"),
    ("lance:", "use lance:PATH"),
    ("lance:///srv/vectors", "use lance:PATH"),
    ("lance:gs://bucket/x", "use lance:PATH"),
    ("lance:s3://", "use lance:s3://BUCKET"),
    ("lance:s3://me:hidden@bucket/x", "no credentials"),
    ("s3vectors://mail", "region=REGION"),
    ("s3vectors:mail?region=eu-central-1", "bucket name ''"),
    ("s3vectors://Mail_1?region=eu-central-1", "bucket name 'Mail_1'"),
    ("s3vectors://mail?region=", "region=REGION"),
    ("s3vectors://mail?region=x&secret=hidden", "use s3vectors://"),
    ("s3vectors://mail/prefix?region=x", "use s3vectors://"),
    ("s3vectors://me:hidden@mail?region=x", "no credentials"),
    ("s3vectors://mail?region=x&endpoint=http://10.0.0.1", "use https"),
    ("s3vectors://mail?region=x&endpoint=vpce.example.org", "use https"),
    ("s3vectors://mail?region=x&endpoint=https://me:hidden@host", "no credentials"),
    ("supabase://abcd.supabase.co", "bucket name ''"),
    ("supabase:///mail", "use supabase://HOST/BUCKET"),
    ("supabase://abcd.supabase.co/mail?key=hidden", "without options"),
    ("supabase://hidden@abcd.supabase.co/mail", "no credentials"),
    ("supabase+http://abcd.supabase.co/mail", "http to 127.0.0.1 only"),
    ("pgvector:postgresql://me:hidden@host/db", "without a path"),
])  # fmt: skip
def test_bad_urls_are_refused_without_repeating_secrets(url: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason) as caught:
        check_bucket_url(url)
    assert "hidden" not in str(caught.value)
    with pytest.raises(ValueError, match=reason):
        open_bucket(url, {})


@pytest.mark.parametrize("key", ["", "  ", "two words", "line\nbreak", "ключ"])
def test_supabase_needs_a_key_fit_for_a_header(key: str) -> None:
    with pytest.raises(ValueError, match="set SUPABASE_SERVICE_KEY") as caught:
        open_bucket("supabase://abcd.supabase.co/mail", {"SUPABASE_SERVICE_KEY": key})
    assert not key.strip() or key.strip() not in str(caught.value)


def test_pgvector_needs_a_dsn_and_does_not_repeat_it() -> None:
    with pytest.raises(ValueError, match="needs the DSN"):
        open_bucket("pgvector:")
    with pytest.raises(ValueError, match="malformed") as caught:
        open_bucket("pgvector:", dsn="postgres//me:hidden@host")
    assert "hidden" not in str(caught.value)


def test_checking_a_url_makes_no_folder(tmp_path: Path) -> None:
    check_bucket_url(f"lance:{tmp_path / 'bucket'}")
    assert list(tmp_path.iterdir()) == []


def test_checking_a_url_loads_no_backend() -> None:
    code = "import sys, mail_assets.vectors.open; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, check=True)
    heavy = {b"lancedb", b"pyarrow", b"boto3", b"psycopg", b"pgvector", b"numpy"}
    assert not heavy & set(loaded.stdout.split())
