"""Make judged sets from the mail itself, without a judge: sets to tune the fusion on.

    MAIL_HOME=... python -m benchmarks.proxies OUT LIST [LIST ...] [--queries 80]

OUT/KIND-LIST/queries.jsonl and qrels.tsv are written, as `mail-assets evaluate --min-relevant 1`
and benchmarks.quality take them; they quote mail and are not to be committed. `citing` names the
messages that are left out. Kinds:

    opening    the first sentence of a thread -> its other messages; the first is left out
    answering  the first sentence of a reply -> the message it answers; the reply is left out
    pasted     eight words running out of a message -> the message
    subject    the subject of a thread -> its messages

Sentences that point at other mail by a link: benchmarks.yardstick, "citations".
"""

import argparse
import json
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import psycopg

from mail_assets.mail.body.segments import new_text_spans, segment_body
from mail_assets.postgres.database import Database
from mail_assets.settings.settings import load_settings

SEED, WORDS, THREAD = 7, (8, 40), (4, 31)  # words of a sentence, messages of a thread
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n\s*\n")

SQL = """
select distinct on (m.message_id) m.message_id, m.subject_base, m.body_text, t.thread_id,
       t.parent_id
  from messages m join threads t using (message_id)
 where m.list = %s
 order by m.message_id, m.month, m.variant
"""


class Proxy(NamedTuple):
    """A query, what is relevant, and the message to leave out, "" for none."""

    text: str
    relevant: list[str]
    citing: str


def main() -> None:
    """Write the sets and say how large they are."""
    parser = argparse.ArgumentParser(description="Make judged sets out of the mail itself.")
    parser.add_argument("out", type=Path)
    parser.add_argument("lists", nargs="+")
    parser.add_argument("--queries", type=int, default=80, help="of each kind and list")
    arguments = parser.parse_args()
    settings = load_settings()
    with Database(settings.home, settings.pg_dsn).connect("proxies") as connection:
        for name in arguments.lists:
            made: dict[str, list[Proxy]] = {}
            for kind, proxy in proxies(connection, name):
                made.setdefault(kind, []).append(proxy)
            for kind, found in made.items():
                write(arguments.out / f"{kind}-{name}", found[: arguments.queries])


def proxies(connection: psycopg.Connection, name: str) -> Iterator[tuple[str, Proxy]]:
    """Yield the queries that the messages of a list make, in a random order, with their kind."""
    rows = connection.execute(SQL, [name]).fetchall()
    threads: dict[str, list[str]] = {}
    for message_id, _, _, thread, _ in rows:
        threads.setdefault(thread, []).append(message_id)
    chance = random.Random(SEED)
    chance.shuffle(rows)
    known = {row[0] for row in rows}
    for row in rows:
        message_id, subject, body, thread, parent = row
        text = "\n".join(body[start:end] for start, end in new_text_spans(body, segment_body(body)))
        yield from _out_of(message_id, text, parent if parent in known else None, chance)
        members = threads[thread]
        if parent is None and THREAD[0] <= len(members) <= THREAD[1]:
            others = [one for one in members if one != message_id]
            yield from (("opening", Proxy(s, others, message_id)) for s in sentences(text)[:1])
            if len(subject.split()) > 2:
                yield "subject", Proxy(subject, members, "")


def _out_of(
    message_id: str, text: str, parent: str | None, chance: random.Random
) -> Iterator[tuple[str, Proxy]]:
    words = text.split()
    if len(words) >= 30:
        at = chance.randrange(len(words) - 8)
        yield "pasted", Proxy(" ".join(words[at : at + 8]), [message_id], "")
    if parent:
        yield from (("answering", Proxy(s, [parent], message_id)) for s in sentences(text)[:1])


def sentences(text: str) -> list[str]:
    """Return the sentences of a text that are neither short nor long, each on one line."""
    found = (" ".join(one.split()) for one in _SENTENCE.split(text))
    return [one for one in found if WORDS[0] <= len(one.split()) <= WORDS[1] and len(one) < 400]


def write(folder: Path, found: list[Proxy]) -> None:
    """Write one set."""
    folder.mkdir(parents=True, exist_ok=True)
    queries: list[dict[str, Any]] = [
        {"_id": str(n), "text": one.text} | ({"citing": one.citing} if one.citing else {})
        for n, one in enumerate(found)
    ]
    qrels = (f"{n}\t{i}\t1" for n, one in enumerate(found) for i in one.relevant)
    (folder / "queries.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in queries))
    (folder / "qrels.tsv").write_text("".join(f"{line}\n" for line in qrels))
    print(f"{folder}: {len(found)} queries")


if __name__ == "__main__":
    main()
