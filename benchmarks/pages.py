"""Measure what a page shows: ten conversations against ten messages (table of docs/search.md).

    MAIL_HOME=... python -m benchmarks.pages LIST=FOLDER ... [--near]

A FOLDER is a judged set (mail_assets/evaluation/judged.py) that is asked of LIST, in hybrid. Found
is a relevant message that is on the page, and one whose thread is. Of a conversation the first
message and its hits are shown. `--near` asks the conversations from within the thread of the first
`citing` message, which is then left out whole; without it all `citing` messages are left out.
"""

import argparse
from collections.abc import Iterator
from typing import NamedTuple

import psycopg

from benchmarks.quality import split_name
from mail_assets.evaluation.judged import JudgedQuery, read_judged_set
from mail_assets.evaluation.quality import estimate_mean
from mail_assets.search.language.request import Group, Request
from mail_assets.search.open import open_searcher
from mail_assets.search.response import Response
from mail_assets.search.searcher import Searcher
from mail_assets.settings.settings import load_settings

THREADS = "select thread_id from threads where message_id = any(%s)"


class Found(NamedTuple):
    """A page judged: it shows a relevant message, and it shows its thread."""

    message: bool
    thread: bool


def main() -> None:
    """Ask every set, and print a line for each."""
    parser = argparse.ArgumentParser(description="Measure what pages show of judged messages.")
    parser.add_argument("sets", nargs="+", metavar="LIST=FOLDER")
    parser.add_argument("--near", action="store_true", help="ask from within the citing thread")
    arguments = parser.parse_args()
    settings = load_settings()
    with (
        settings.database.connect("pages") as connection,
        open_searcher(settings.search) as searcher,
    ):
        for written in arguments.sets:
            _, lists, folder = split_name(written)
            judged = read_judged_set(folder, at_least=1)
            pairs = [*measure(searcher, connection, judged, lists, near=arguments.near)]
            print(f"{written}: {len(pairs)} queries")
            for name in Found._fields:
                messages = [float(getattr(one, name)) for one, _ in pairs]
                rows = [float(getattr(one, name)) for _, one in pairs]
                gain = estimate_mean([b - a for a, b in zip(messages, rows, strict=True)])
                print(
                    f"  {name}: messages {estimate_mean(messages).mean:.3f}, conversations "
                    f"{estimate_mean(rows).mean:.3f}, {gain.mean:+.3f} "
                    f"[{gain.low:+.3f}, {gain.high:+.3f}]"
                )


def measure(
    searcher: Searcher,
    connection: psycopg.Connection,
    judged: list[JudgedQuery],
    lists: tuple[str, ...],
    *,
    near: bool,
) -> Iterator[tuple[Found, Found]]:
    """Yield what ten messages and ten conversations show for each query."""
    for one in judged:
        threads = {id for (id,) in connection.execute(THREADS, [[*one.relevant]])}
        alone = Request(one.text, lists=lists, without=one.citing)
        asked = Request(one.text, lists=lists, near=one.citing[0]) if near and one.citing else alone
        messages = searcher.search(Request(**{**vars(alone), "group": Group.message}))
        yield _find(messages, one, threads), _find(searcher.search(asked), one, threads)


def _find(response: Response, one: JudgedQuery, threads: set[str]) -> Found:
    shown = {hit.message_id for hit in response.hits}
    shown |= {row.first.message_id for row in response.conversations if row.first}
    found = {hit.thread_id for hit in response.hits}
    return Found(not shown.isdisjoint(one.relevant), not found.isdisjoint(threads))


if __name__ == "__main__":
    main()
