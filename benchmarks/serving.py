"""`mail-assets serve` under load: requests a second, times, memory, and what disturbs it.

    python -m benchmarks.serving load [--clients 1,8,32] [--seconds 10]
    python -m benchmarks.serving memory [--requests 100000] [--kinds message,thread]
    python -m benchmarks.serving disturb --command 'kill -9 POSTMASTER' [--seconds 30]

It starts a server over MAIL_HOME, without limits by client, and asks it for what it finds there.
`disturb` runs a command after a third of the time (a kill of PostgreSQL, a promotion) and counts
answers: those that differ from before, errors by status, and the seconds from the first error
to the last. Nothing else should run on the machine.
"""

import argparse
import asyncio
import json
import os
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote, urlencode
from urllib.request import urlopen

from benchmarks.http_load import Answer, Load, ask_in_turn, hit_ids, quantile

LIMITS = ("READS", "SEARCHES", "EXPORTS", "ANSWERS")
#: Pages of each kind that are asked in turn.
PAGES = 100


def main() -> None:
    """Start a server, measure, and print what was asked for in Markdown."""
    parser = argparse.ArgumentParser(description="Measure `mail-assets serve` over MAIL_HOME.")
    parser.add_argument("what", choices=("load", "memory", "disturb"))
    parser.add_argument("--clients", default="1,8,32")
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--requests", type=int, default=100_000)
    parser.add_argument("--words", default="error,patch,file,test,function", help="of the archive")
    parser.add_argument("--kinds", default="message,thread,fulltext,hybrid", help="what is asked")
    parser.add_argument("--command", default="true", help="what `disturb` runs")
    given = parser.parse_args()
    with serving() as (port, process):
        paths = find_paths(port, given.words.split(","))
        kinds = {kind: paths[kind] for kind in given.kinds.split(",")}
        if given.what == "load":
            clients = [int(number) for number in given.clients.split(",")]
            measure_load(port, kinds, clients, given.seconds)
        elif given.what == "memory":
            measure_memory(port, kinds, given.requests, process)
        else:
            measure_disturbance(port, kinds, given.seconds, given.command)


@contextmanager
def serving() -> Iterator[tuple[int, int]]:
    """Serve MAIL_HOME without limits by client; yield the port and the process."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environ = os.environ | {f"MAIL_WEB_{name}": "0" for name in LIMITS} | {"MAIL_WEB_AUDIT": "on"}
    command = [sys.executable, "-m", "mail_assets.cli", "serve", "--port", str(port)]
    with subprocess.Popen(command, env=environ) as process:
        try:
            while not _answers(port):
                assert process.poll() is None, "the server has ended"
                time.sleep(0.2)
            yield port, process.pid
        finally:
            process.terminate()


def _answers(port: int) -> bool:
    try:
        return _get(port, "/ready") == b"ready\n"
    except OSError:
        return False


def _get(port: int, path: str) -> bytes:
    with urlopen(f"http://127.0.0.1:{port}{path}") as response:
        return bytes(response.read())


def find_paths(port: int, words: Sequence[str]) -> dict[str, list[str]]:
    """Return paths of each kind: messages that some words find, and searches by their subjects."""
    ids: dict[str, str] = {}
    for word in words:
        query = urlencode({"q": word, "mode": "fulltext", "group": "thread", "limit": PAGES})
        for hit in json.loads(_get(port, f"/search.json?{query}"))["hits"]:
            ids.setdefault(hit["message_id"], hit["subject"])
    chosen = [*ids.items()][:: max(1, len(ids) // PAGES)][:PAGES]
    return {
        "message": [f"/message.json/{quote(id, safe='@')}" for id, _ in chosen],
        "thread": [f"/thread.json/{quote(id, safe='@')}" for id, _ in chosen],
        **{
            mode: [
                f"/search.json?{urlencode({'q': ' '.join(_words(subject)), 'mode': mode})}"
                for _, subject in chosen
                if _words(subject)
            ]
            for mode in ("fulltext", "hybrid")
        },
    }


def _words(subject: str) -> list[str]:
    return [word for word in subject.split() if word.isalpha()][:6]


def measure_load(
    port: int, kinds: dict[str, list[str]], clients: Sequence[int], seconds: float
) -> None:
    """Print a row for each kind and number of clients; times are of what was answered."""
    print("| | clients | requests/s | p50 ms | p95 ms | turned away | errors |")
    print("|---|---|---|---|---|---|---|")
    for kind, paths in kinds.items():
        asyncio.run(ask_in_turn(port, Load(paths, 1, requests=len(paths))))  # all is warm
        for number in clients:
            began = time.monotonic()
            answers = asyncio.run(ask_in_turn(port, Load(paths, number, seconds)))
            took = time.monotonic() - began
            good = [answer for answer in answers if answer.status == 200]
            busy = sum(answer.status == 503 for answer in answers)
            print(
                f"| {kind} | {number} | {len(good) / took:.1f} | {quantile(good, 0.5):.1f} "
                f"| {quantile(good, 0.95):.1f} | {busy} | {len(answers) - len(good) - busy} |"
            )


def measure_memory(port: int, kinds: dict[str, list[str]], requests: int, process: int) -> None:
    """Print the server's memory after a thousand requests of all kinds, and after many."""
    mixed = [path for paths in zip(*kinds.values(), strict=False) for path in paths]
    for upto in (1_000, requests):
        answers = asyncio.run(ask_in_turn(port, Load(mixed, 4, requests=upto)))
        counted = Counter(answer.status for answer in answers)
        print(f"{upto} more requests: {_resident_mb(process):.0f} MB, statuses {dict(counted)}")


def _resident_mb(process: int) -> float:
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def measure_disturbance(
    port: int, kinds: dict[str, list[str]], seconds: float, command: str
) -> None:
    """Print what becomes of a load of all kinds when a command disturbs it."""
    mixed = [path for paths in zip(*kinds.values(), strict=False) for path in paths][:40]
    before = asyncio.run(ask_in_turn(port, Load(mixed, 1, requests=len(mixed))))
    known = {answer.path: hit_ids(answer.body) for answer in before}

    async def disturb() -> tuple[list[Answer], int]:
        load = asyncio.create_task(ask_in_turn(port, Load(mixed, 4, seconds)))
        await asyncio.sleep(seconds / 3)
        process = await asyncio.create_subprocess_shell(command)
        return await load, await process.wait()

    answers, status = asyncio.run(disturb())
    good = [answer for answer in answers if answer.status == 200]
    bad = [answer for answer in answers if answer.status != 200]
    wrong = [answer.path for answer in good if hit_ids(answer.body) != known[answer.path]]
    lasted = max((a.asked + a.seconds for a in bad), default=0) - min(
        (a.asked for a in bad), default=0
    )
    print(
        f"command: status {status}; answered {len(good)}, of these other than before {len(wrong)}"
    )
    print(f"errors {dict(Counter(answer.status for answer in bad))}, for {lasted:.1f} s")
    print(f"slowest answer {max(answer.seconds for answer in answers):.1f} s")


if __name__ == "__main__":
    main()
