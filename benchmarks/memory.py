"""Peak memory of encoding a month, by the number of its texts.

    python -m benchmarks.memory [--texts 1000 10000 100000] [--encoder NAME] [--words 100]

Each month is made of synthetic texts in a server of its own and encoded by a process of its own.
Without --encoder the vectors are random, and what is measured is all but the model.
What does not live here: how fast the encoder is (encoding.py).
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import numpy as np
import numpy.typing as npt
import psycopg

from benchmarks.contenders import peak_mb
from mail_assets.encoding.local_encoder import open_local_encoder
from mail_assets.encoding.model_cache import prepare_model
from mail_assets.encoding.models import find_local_model
from mail_assets.month import ListMonth
from mail_assets.postgres.database import Database
from mail_assets.postgres.embedded import Cluster
from mail_assets.steps.encode_chunks import encode_chunks
from mail_assets.store.open import open_store
from mail_assets.tables.partitions import Partition, State, write_state
from mail_assets.workspace import Workspace

MONTH = ListMonth("synthetic", "2024-01")
PRECISION = "int8"
DIMENSION = 384

#: One message to a chunk; the words are hexadecimal, 3 characters to a token as in real mail.
FILL = """
with texts as (
    select n, (select string_agg(left(md5(n || ' ' || w), 6), ' ')
                 from generate_series(1, %(words)s) w) as text
      from generate_series(1, %(texts)s) n),
messages as (
    insert into messages
    select %(list)s, %(month)s, n || '@example.org', 0, '', '', now(), '', '', '', '',
           '', '', '{}', '{}', '{}', '{}', '{}', '', '', text, '[]', '[]', '{}', '{}', ''
      from texts)
insert into chunks
select n || '#0', %(list)s, %(month)s, n || '@example.org', 0, 0, text, '{}', 3 * %(words)s,
       sha256(text::bytea)
  from texts
"""


class RandomEncoder:
    """An encoder that costs nothing."""

    fingerprint = "random"
    dimension = DIMENSION

    def wait_turn(self, report_wait: Callable[[], None]) -> AbstractContextManager[None]:
        """Wait for nobody."""
        return nullcontext()

    def encode_documents(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return one vector per text."""
        vectors = np.random.default_rng(len(texts)).normal(size=(len(texts), DIMENSION))
        return vectors.astype(np.float32)


def fill(connection: psycopg.Connection, texts: int, words: int) -> None:
    """Replace the month with synthetic texts."""
    for table in ("chunks", "messages", "partitions"):
        connection.execute(f"truncate {table}".encode())
    connection.execute(FILL, {**MONTH.columns, "texts": texts, "words": words})
    state = State("", "", {"chunks": texts})
    write_state(connection, Partition("chunks", MONTH), state)


def encode(home: str, dsn: str, name: str) -> None:
    """Encode the month in this process, and print what it took."""
    encoder = open_local_encoder(name, PRECISION, Path(home)) if name else RandomEncoder()
    encoder.encode_documents(["a text to warm up with"])
    before, began = peak_mb(), time.monotonic()
    with (
        tempfile.TemporaryDirectory() as store,
        psycopg.connect(dsn, autocommit=True) as connection,
    ):
        workspace = Workspace(connection, open_store(store), lambda line: None)
        outcome = encode_chunks(workspace, MONTH, encoder)
    seconds = time.monotonic() - began
    result = {**outcome.counts, "before_mb": before, "peak_mb": peak_mb(), "wall": seconds}
    print(json.dumps(result))


def main() -> None:
    """Parse the command line; `--measure` is for this program's own use."""
    if sys.argv[1:2] == ["--measure"]:
        encode(*sys.argv[2:])
        return
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--texts", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    parser.add_argument("--encoder", default="", help="a profile; random vectors without")
    parser.add_argument("--words", type=int, default=100)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if options.encoder:
            prepare_model(find_local_model(options.encoder), PRECISION, Path(folder))
        cluster = Cluster(Path(folder) / "postgres").start()
        try:
            compare(cluster.dsn("postgres"), folder, options)
        finally:
            cluster.remove()


def compare(dsn: str, folder: str, options: argparse.Namespace) -> None:
    """Print a row for each number of texts."""
    print("texts     MB before   MB at the peak   seconds   texts/s")
    for texts in options.texts:
        with Database(Path(folder), dsn).connect("benchmark") as connection:
            fill(connection, texts, options.words)
        command = [sys.executable, "-m", "benchmarks.memory", "--measure", folder, dsn]
        output = subprocess.run(
            [*command, options.encoder], check=True, stdout=subprocess.PIPE, text=True
        ).stdout
        found = json.loads(output.splitlines()[-1])
        if found["encoded"] != texts:
            raise RuntimeError(f"{texts} texts wanted, {found['encoded']} encoded")
        print(
            f"{texts:<10}{found['before_mb']:<12.0f}{found['peak_mb']:<17.0f}"
            f"{found['wall']:<10.1f}{texts / found['wall']:.0f}"
        )


if __name__ == "__main__":
    main()
