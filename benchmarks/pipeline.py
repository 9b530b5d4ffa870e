"""Measure every stage of the pipeline on a folder of monthly archives, in a fresh home.

    python -m benchmarks.pipeline ARCHIVES [--dialect plain]

ARCHIVES is a folder of monthly mbox files. The stages run one after the other over all months, in
this process and without Dagster, so that each can be timed. Then they run again with nothing
changed. Last, `mail-assets backfill` fills another fresh home: that is the time a user waits. Peak
memory is that of the process, without PostgreSQL. encoding.py measures the encoder alone.
"""

import argparse
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import psycopg

from mail_assets.encoding.local_encoder import open_local_encoder
from mail_assets.indexes.vectors import open_mail_vectors
from mail_assets.month import ListMonth
from mail_assets.postgres.database import Database, embedded
from mail_assets.settings.settings import Settings, load_settings
from mail_assets.sources.open import open_source
from mail_assets.sources.source import ArchiveSource, HttpOptions
from mail_assets.steps.build_threads import build_threads
from mail_assets.steps.cut_chunks import cut_chunks
from mail_assets.steps.encode_chunks import encode_chunks
from mail_assets.steps.fetch_archive import FetchOptions, fetch_archive
from mail_assets.steps.fill_index import write_vectors
from mail_assets.steps.load_messages import load_messages
from mail_assets.store.open import open_store
from mail_assets.vectors.open import open_bucket
from mail_assets.workspace import Outcome, Workspace

LIST = "bench"


def main() -> None:
    """Measure; print a table in Markdown."""
    parser = argparse.ArgumentParser(description="Measure every stage of the pipeline.")
    parser.add_argument("archives", type=Path, help="a folder of monthly mbox files")
    parser.add_argument("--dialect", default="plain")
    arguments = parser.parse_args()
    print(f"machine: {machine()}")
    print(f"data:    {arguments.archives.name}")
    print(f"command: python -m benchmarks.pipeline {arguments.archives.name}\n")
    with tempfile.TemporaryDirectory() as folder:
        settings = settings_for(Path(folder), arguments.archives, arguments.dialect)
        try:
            measure_stages(settings)
        finally:
            embedded(settings.home).remove()
    with tempfile.TemporaryDirectory() as folder:
        settings = settings_for(Path(folder), arguments.archives, arguments.dialect)
        try:
            measure_backfill(settings)
        finally:
            embedded(settings.home).remove()


def measure_stages(settings: Settings) -> None:
    """Time each stage over all months, then all again with nothing changed."""
    with Database(settings.home).connect("bench") as connection:
        stages = _stages(settings, connection)
        print("| stage | seconds | share | what | per second |\n|---|---|---|---|---|")
        times: dict[str, float] = {}
        sums: dict[str, Counter[str]] = {}
        for name, run in stages.items():
            began = time.perf_counter()
            sums[name] = _sum(run())
            times[name] = time.perf_counter() - began
        for name, unit in (
            ("mbox_archives", "found"),
            ("messages", "found"),
            ("threads", "messages"),
            ("chunks", "chunks"),
            ("embeddings", "encoded"),
            ("vectors", "written"),
        ):
            share = times[name] / sum(times.values())
            amount = sums[name][unit]
            print(
                f"| {name} | {times[name]:.2f} | {share:.0%} | {amount} {unit} "
                f"| {amount / times[name]:.0f} |"
            )
        print(f"\nall stages: {sum(times.values()):.1f} s; peak memory {_peak_mb():.0f} MB")
        began = time.perf_counter()
        outcomes = [outcome for run in stages.values() for outcome in run()]
        again = time.perf_counter() - began
        changed = sum(outcome.changed for outcome in outcomes)
        print(f"again: {again:.2f} s, {changed} of {len(outcomes)} partitions changed")
        row = connection.execute("select pg_database_size(current_database())").fetchone()
        print(
            f"sizes: database {_mb(row[0] if row else 0)}, "
            f"store {_mb(_size(settings.home / 'store'))}, "
            f"bucket {_mb(_size(settings.home / 'vectors'))}"
        )


def measure_backfill(settings: Settings) -> None:
    """Time `mail-assets backfill`, twice."""
    command = [str(Path(sys.executable).with_name("mail-assets")), "backfill"]
    environ = {
        **os.environ,
        "MAIL_HOME": str(settings.home),
        "MAIL_LISTS": str(settings.lists_file),
    }
    environ.pop("DAGSTER_HOME", None)
    for what in ("mail-assets backfill", "the same again"):
        began = time.perf_counter()
        subprocess.run(command, env=environ, check=True, capture_output=True)
        print(f"{what}: {time.perf_counter() - began:.1f} s")
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(f"peak memory of a backfill: {peak:.0f} MB")


def _stages(
    settings: Settings, connection: psycopg.Connection
) -> dict[str, Callable[[], list[Outcome]]]:
    mail_list, source = settings.lists[LIST], open_archives(settings)
    workspace = Workspace(connection, open_store(settings.store), lambda line: None)
    encoder = open_local_encoder(settings.encoder, settings.precision, settings.model_cache)
    bucket = open_bucket(settings.vectors)
    index = open_mail_vectors(bucket, settings.vectors, settings.encoder, settings.precision)
    sizes = encoder.model.sizes
    months = sorted(source.versions())

    def each(step: Callable[[ListMonth], Outcome]) -> Callable[[], list[Outcome]]:
        return lambda: [step(month) for month in months]

    options, defaults = FetchOptions(mail_list.dialect), mail_list.defaults
    return {
        "mbox_archives": each(lambda month: fetch_archive(workspace, month, source, options)),
        "messages": each(lambda month: load_messages(workspace, month, defaults)),
        "threads": lambda: [build_threads(connection, workspace.log)],
        "chunks": each(lambda month: cut_chunks(workspace, month, encoder.tokenizer, sizes)),
        "embeddings": each(lambda month: encode_chunks(workspace, month, encoder)),
        "vectors": each(lambda month: write_vectors(workspace, month, index)),
    }


def open_archives(settings: Settings) -> ArchiveSource:
    """Open the folder of archives."""
    one = settings.lists[LIST]
    cache = settings.source_cache
    return open_source(LIST, one.source, start=one.start, options=HttpOptions(), cache=cache)


def settings_for(home: Path, archives: Path, dialect: str) -> Settings:
    """Return settings of a fresh home; its only list is the folder of archives."""
    lists = home / "lists.toml"
    source = str(archives.resolve()).replace("\\", "\\\\").replace('"', '\\"')
    lists.write_text(f'[{LIST}]\nsource = "{source}"\ndialect = "{dialect}"\n')
    return load_settings({"MAIL_HOME": str(home / "home"), "MAIL_LISTS": str(lists)})


def _sum(outcomes: list[Outcome]) -> Counter[str]:
    total: Counter[str] = Counter()
    for outcome in outcomes:
        total.update({name: int(value) for name, value in outcome.counts.items()})
    return total


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _mb(size: int) -> str:
    return f"{size / 1e6:.1f} MB"


def machine() -> str:
    """Return the name of the processor and its number of cores."""
    info = Path("/proc/cpuinfo")
    names = [
        line.partition(":")[2].strip()
        for line in (info.read_text().splitlines() if info.exists() else [])
        if line.startswith("model name")
    ]
    return f"{names[0] if names else platform.processor()}, {os.cpu_count()} cores"


if __name__ == "__main__":
    main()
