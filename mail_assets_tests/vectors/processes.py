"""Several processes at one index. A new process imports this module, so it imports little."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from multiprocessing.synchronize import Barrier

from mail_assets.vectors.bucket import Bucket
from mail_assets.vectors.open import open_bucket
from mail_assets_tests.forks import FORKS, start_process
from mail_assets_tests.vectors.samples import MAIL, clustered, mail_vectors
from mail_assets_tests.waits import LONG


@dataclass(frozen=True)
class Place:
    """Where a bucket is, in terms that another process can open it by."""

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
