"""Measure `mail-assets serve` under load: requests a second, times, memory, and disturbances.

    python -m benchmarks.serving load [--clients 1,8,32] [--seconds 10]
    python -m benchmarks.serving memory [--requests 100000] [--kinds message,thread]
    python -m benchmarks.serving disturb --command 'kill -9 POSTMASTER' [--seconds 30]

It starts a server over MAIL_HOME, without limits by client, and asks it for what it finds there.
`disturb` runs a command after a third of the time (a kill of PostgreSQL, a promotion) and counts
answers that differ from before, errors by status, and the seconds from the first error to the last.
Nothing else should run on the machine.

The client is our own: at some thousand requests a second a library would take the processor that
the server needs.
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
from typing import NamedTuple
from urllib.parse import quote, urlencode
from urllib.request import urlopen


class Answer(NamedTuple):
    """An answer: when it was asked for, in seconds, how long it took, its status and body.

    The status is 0 where the connection broke.
    """

    path: str
    asked: float
    seconds: float
    status: int
    body: bytes


class Load(NamedTuple):
    """`paths`, asked in turn by `clients` at once, until `seconds` or `requests` are over."""

    paths: Sequence[str]
    clients: int
    seconds: float = float("inf")
    requests: int = 1 << 62


async def ask_in_turn(port: int, load: Load) -> list[Answer]:
    """Return all answers of a load, in the order of their ends."""
    answers: list[Answer] = []
    begun = time.monotonic()
    asked = 0

    async def ask_on() -> None:
        nonlocal asked
        connection: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        while asked < load.requests and time.monotonic() - begun < load.seconds:
            path = load.paths[asked % len(load.paths)]
            asked += 1
            at = time.monotonic()
            try:
                connection = connection or await asyncio.open_connection("127.0.0.1", port)
                status, body = await _ask(*connection, path)
            except (OSError, asyncio.IncompleteReadError, ValueError):
                connection, status, body = None, 0, b""
                await asyncio.sleep(0.05)
            answers.append(Answer(path, at - begun, time.monotonic() - at, status, body))
        if connection:
            connection[1].close()

    await asyncio.gather(*(ask_on() for _ in range(load.clients)))
    return answers


async def _ask(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, path: str
) -> tuple[int, bytes]:
    writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
    size = int(head.partition("content-length: ")[2].partition("\r\n")[0])
    return int(head.split(" ", 2)[1]), await reader.readexactly(size)


def quantile(answers: Sequence[Answer], share: float) -> float:
    """Return the milliseconds that a share of the answers did not take longer than."""
    ordered = sorted(answer.seconds for answer in answers)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] * 1000 if ordered else 0.0


def hit_ids(body: bytes) -> list[str]:
    """Return the ids that an answer has: those of its hits, or its own."""
    document = json.loads(body)
    if "hits" in document:
        return [hit["message_id"] for hit in document["hits"]]
    return [str(document.get("message_id") or document.get("thread_id"))]


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
            measure_load(port, kinds, clients, given.seconds, process)
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
    environ = os.environ | {f"MAIL_WEB_{name}": "0" for name in LIMITS}
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
        query = urlencode({"q": word, "mode": "fulltext", "group": "message", "limit": PAGES})
        for hit in json.loads(_get(port, f"/search.json?{query}"))["hits"]:
            if "/" in hit["message_id"]:
                continue  # such an id is a parameter
            ids.setdefault(hit["message_id"], hit["subject"])
    chosen = [*ids.items()][:: max(1, len(ids) // PAGES)][:PAGES]
    quoted = [quote(id, safe="@") for id, _ in chosen]
    return {
        "message": [f"/message.json/{id}" for id in quoted],
        "thread": [f"/thread.json/{id}" for id in quoted],
        "message page": [f"/message/{id}" for id in quoted],
        "thread page": [f"/thread/{id}" for id in quoted],
        "longest thread page": [f"/thread/{max(quoted, key=lambda id: _count_messages(port, id))}"],
        **{
            mode: [
                f"/search.json?{urlencode({'q': ' '.join(_words(subject)), 'mode': mode})}"
                for _, subject in chosen
                if _words(subject)
            ]
            for mode in ("fulltext", "hybrid")
        },
    }


def _count_messages(port: int, id: str) -> int:
    return int(json.loads(_get(port, f"/thread.json/{id}"))["messages"])


def _words(subject: str) -> list[str]:
    return [word for word in subject.split() if word.isalpha()][:6]


def measure_load(
    port: int, kinds: dict[str, list[str]], clients: Sequence[int], seconds: float, process: int
) -> None:
    """Print a row for each kind and number of clients; times are of what was answered.

    The processor's time is that of the server's main process, which makes pages; searches run in
    processes of their own.
    """
    print("| | clients | requests/s | p50 ms | p95 ms | processor ms | turned away | errors |")
    print("|---|---|---|---|---|---|---|---|")
    for kind, paths in kinds.items():
        asyncio.run(ask_in_turn(port, Load(paths, 1, requests=len(paths))))  # all is warm
        for number in clients:
            began, spent = time.monotonic(), _processor_seconds(process)
            answers = asyncio.run(ask_in_turn(port, Load(paths, number, seconds)))
            took = time.monotonic() - began
            spent = (_processor_seconds(process) - spent) * 1000 / max(1, len(answers))
            good = [answer for answer in answers if answer.status == 200]
            busy = sum(answer.status == 503 for answer in answers)
            print(
                f"| {kind} | {number} | {len(good) / took:.1f} | {quantile(good, 0.5):.1f} "
                f"| {quantile(good, 0.95):.1f} | {spent:.1f} "
                f"| {busy} | {len(answers) - len(good) - busy} |"
            )


def _processor_seconds(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


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
