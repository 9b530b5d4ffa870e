"""Several processes at one index. A new process imports this module, so it imports little."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Barrier

from mail_assets.vectors import lance
from mail_assets.vectors.index import Bucket, VectorError
from mail_assets.vectors.open import open_bucket
from mail_assets_tests.forks import FORKS, start_process
from mail_assets_tests.vectors.samples import MAIL, clustered, mail_vectors
from mail_assets_tests.waits import LONG


@dataclass(frozen=True)
class Place:
    """The place of a bucket, which another process can open."""

    url: str
    environ: Mapping[str, str] = field(default_factory=dict)
    dsn: str | None = None

    def open(self) -> Bucket:
        return open_bucket(self.url, self.environ, dsn=self.dsn)


def run_together(work: Callable[..., None], arguments: Sequence[tuple[object, ...]]) -> None:
    """Call `work` in a new process for each of `arguments`, with a barrier as the last one."""
    barrier = FORKS.Barrier(len(arguments), timeout=LONG)  # where one of them dies
    processes = [start_process(work, *each, barrier) for each in arguments]
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0] * len(arguments)


def put_the_same_keys(place: Place, seed: int, barrier: Barrier) -> None:
    """Put 550 keys of the index MAIL in 10 overlapping steps."""
    index = place.open().index(MAIL)
    for number in range(10):
        barrier.wait()
        index.put(mail_vectors(clustered(100, seed), start=number * 50))


def write_for_ever(place: Place, told: Connection) -> None:
    """Insert 50 keys a step until killed, and put those of every fifth again; tell how many."""
    index = place.open().index(MAIL)
    step = 0
    while True:
        index.insert(mail_vectors(clustered(50, step), start=step * 50))
        step += 1
        told.send(step * 50)
        if step % 5 == 0:
            start = (step - 5) * 50
            index.put(mail_vectors(clustered(50, seed=step - 5), start))


def catch_up_for_ever(place: Place, told: Connection) -> None:
    """Move what is not indexed, and index it, until killed; tell after each time."""
    lance.LIMITS = lance.LIMITS._replace(least=300, indexed_from=300, fragments=2, share=0.0)
    index = place.open().index(MAIL)
    while True:
        with suppress(VectorError):  # a writer was faster three times
            if index.needs_upkeep():
                index.catch_up()
                told.send(index.describe().get("segments"))
