"""After a forgetting, no database and no file of a home has a trace of the mail."""

import gzip
import io
import json
import os
import subprocess
import zlib
from collections.abc import Iterator
from pathlib import Path

import lancedb
import psycopg
import pyarrow.parquet as pq
import pytest

from mail_assets.defs.definitions import build_defs
from mail_assets.defs.instance import open_instance
from mail_assets.postgres.programs import find_bindir
from mail_assets.settings.settings import load_settings
from mail_assets.words.index import NAME as NAME_OF_WORDS
from mail_assets_tests.cli.conftest import Home
from mail_assets_tests.world import APRIL, FORGET_KEY, MARCH, mail

ID, ADDRESS, NAME = "axolotl.7", "numbat@zebra.example", "Quagga Thylacine"
WORDS = ("gharial", "pangolin", "kakapo", "okapi")
TRACES = (*WORDS, "axolotl", "numbat", "quagga", "thylacine", "zebra.example")

BODY = (
    "The gharial pump of the pangolin pier was mended, and nobody saw it.\n\n"
    "I propose that we decide on kakapo tides. " + "The harbor wants a decision on it. " * 20
)


def forgotten_mail() -> bytes:
    text = mail(
        ID, BODY, subject="okapi schedule", sender=ADDRESS, references="<first@example.org>"
    )
    return text.replace(b"From: Ann ", f"From: {NAME} ".encode())


@pytest.fixture
def home(tmp_path: Path, home_dsn: str, model_cache: Path) -> Home:
    (tmp_path / "home").mkdir()
    made = Home(tmp_path / "home", home_dsn, model_cache)
    source = tmp_path / "source"
    source.mkdir()
    first = mail("first", "Boats and ballast. " * 30)
    answer = mail(
        "answer",
        "Yes, the harbor agrees. " * 10,
        references=f"<first@example.org> <{ID}@example.org>",
        headers=f"To: {NAME} <{ADDRESS}>",
    )
    (source / f"harbor.{MARCH}.mbox.gz").write_bytes(
        gzip.compress(first + forgotten_mail() + answer)
    )
    (source / f"harbor.{APRIL}.mbox").write_bytes(
        mail("later", headers=f"Cc: {ADDRESS}", references=f"<{ID}@example.org>")
    )
    lists = tmp_path / "home" / "lists.toml"
    lists.write_text(f"[harbor]\nsource = {json.dumps(str(source))}\n")
    made.environ |= {"MAIL_FORGET_KEY": FORGET_KEY, "MAIL_KEEP_ARCHIVES": "30"}
    return made


def use(home: Home) -> None:
    """Run all that reads and writes mail: fill, search, answer, test queries, compare, rebuild."""
    home.lines("backfill", "--fast")
    home.environ["MAIL_PRECISION"] = "static"
    for query in (f"{' '.join(WORDS)} quagga", f"from:{ADDRESS}", f"id:{ID}@example.org"):
        home.lines("search", "--explain", query)
    home.run("answer", "What was decided on kakapo tides?")
    os.environ.update(home.environ)  # where resources find secrets
    settings = load_settings(home.environ)
    with open_instance(settings) as instance:
        job = build_defs(settings).resolve_job_def("test_queries")
        config = {"ops": {"serve_test_queries": {"config": {"queries": ["gharial pump", "okapi"]}}}}
        assert job.execute_in_process(instance=instance, run_config=config).success
        assert any(b"gharial" in text for text in dumped(settings.pg_dsn)), "there is an answer"
    assert len(home.run("doctor", "--deep").stderr) > 0
    home.lines("backfill", "--rebuild")
    home.lines("index", "rebuild", NAME_OF_WORDS)


def dumped(dsn: str) -> Iterator[bytes]:
    command = [str(find_bindir() / "pg_dump"), "--data-only", "--inserts", dsn]
    yield subprocess.run(command, check=True, capture_output=True).stdout
    with psycopg.connect(dsn) as connection:
        for (text,) in connection.execute("select s::text from pg_stats s"):
            yield str(text).encode()


def unpacked(path: Path) -> Iterator[bytes]:
    content = path.read_bytes()
    yield content
    if path.suffix == ".gz":
        yield gzip.decompress(content)
    if path.suffix == ".parquet":
        yield str(pq.read_table(io.BytesIO(content)).schema).encode()
    if content[:2] == b"x\x9c":
        yield zlib.decompress(content)


def find_traces(home: Home) -> list[str]:
    folder = Path(home.environ["MAIL_HOME"])
    found = []
    for place, texts in [
        ("database", dumped(home.environ["MAIL_PG_DSN"])),
        *((str(path), unpacked(path)) for path in folder.rglob("*") if path.is_file()),
        *((f"rows of {path}", rows_of(path)) for path in folder.rglob("*.lance") if path.is_dir()),
    ]:
        for text in texts:
            found += [f"{trace} in {place}" for trace in TRACES if trace.encode() in text.lower()]
    return found


def rows_of(table: Path) -> Iterator[bytes]:
    opened = lancedb.connect(table.parent).open_table(table.stem)
    for version in opened.list_versions():
        opened.checkout(version["version"])
        yield str(opened.to_arrow().to_pylist()).encode()


@pytest.mark.slow
def test_forgotten_mail_leaves_no_trace(home: Home) -> None:
    use(home)
    before = find_traces(home)
    assert {trace.split()[0] for trace in before} == {*TRACES}
    by_id = home.lines("forget", f"{ID}@example.org", "--reason", "asked", "--archives", "rewrite")
    assert by_id[0].startswith("forgotten: 1 message in 1 month")
    home.lines("forget", "--sender", ADDRESS, "--reason", "asked", "--archives", "rewrite")
    # the source has it still, and so have addresses of other mail in the archives
    assert [one for one in find_traces(home) if "/store/archives/" not in one] == []
    kept = [one for one in find_traces(home) if not one.startswith(("numbat", "zebra", "quagga"))]
    assert [one for one in kept if not one.startswith(("thylacine", "axolotl"))] == []
    home.lines("backfill")
    home.lines("search", "harbor")
    assert [one for one in find_traces(home) if "/store/archives/" not in one] == []
