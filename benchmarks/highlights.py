"""Check that highlights are in the mail: every span of many hits, cut out of its body.

    MAIL_HOME=... python -m benchmarks.highlights [--hits 1000]

Queries are two words each of two random messages, in all modes. A chunk's text must be its spans
cut out of the body of the copy that is shown, and every highlight a piece of the text. Exits with 1
where any is not.
"""

import argparse
import random
import re
import sys
from collections.abc import Iterator

import psycopg

from mail_assets.postgres.database import Database
from mail_assets.search.language.request import MODES, Request
from mail_assets.search.open import open_searcher
from mail_assets.search.response import Hit
from mail_assets.settings.settings import load_settings

SEED, WORDS = 11, 4
_WORD = re.compile(r"\w[\w./-]+\w")


def main() -> None:
    """Check hits until there are enough, and say how many spans were cut."""
    parser = argparse.ArgumentParser(description="Cut every highlight out of its body.")
    parser.add_argument("--hits", type=int, default=1_000)
    wanted = parser.parse_args().hits
    settings = load_settings()
    hits = spans = 0
    faults: list[str] = []
    with (
        open_searcher(settings.search) as searcher,
        Database(settings.home, settings.pg_dsn).connect("highlights") as connection,
    ):
        for query, mode in questions(connection):
            for hit in searcher.search(Request(query, mode=mode, limit=20)).hits:
                bodies = bodies_of(connection, hit)
                faults += [f"{hit.message_id}: {query!r}" for _ in wrong(hit, bodies)]
                spans += sum(len(chunk.highlights) for chunk in hit.chunks)
                hits += 1
            if hits >= wanted:
                break
    print(f"{hits} hits, {spans} highlights, {len(faults)} wrong")
    print("\n".join(faults[:10]))
    sys.exit(bool(faults))


def questions(connection: psycopg.Connection) -> Iterator[tuple[str, str]]:
    """Yield queries and modes without end, the same each time."""
    bodies = connection.execute(
        "select body_text from messages where body_text <> '' order by message_id, list, month"
    ).fetchall()
    chance = random.Random(SEED)
    while True:
        words = [w for _ in range(2) for w in _words(chance.choice(bodies)[0], chance)]
        if words:
            yield " ".join(words), chance.choice(MODES)


def _words(body: str, chance: random.Random) -> list[str]:
    found = _WORD.findall(body[:20_000])
    return chance.sample(found, min(WORDS // 2, len(found)))


def bodies_of(connection: psycopg.Connection, hit: Hit) -> list[str]:
    """Return the bodies of the copies that a hit may show."""
    rows = connection.execute(
        "select body_text from messages where message_id = %s and month = %s",
        [hit.message_id, hit.month],
    )
    return [body for (body,) in rows]


def wrong(hit: Hit, bodies: list[str]) -> Iterator[str]:
    """Yield the chunks of a hit that are not in any of the bodies as their spans say."""
    for chunk in hit.chunks:
        fits = any(
            chunk.text == "".join(body[start:end] for start, end in chunk.spans)
            and all(
                body[start:end].strip() and body[start:end] in chunk.text
                for start, end in chunk.highlights
            )
            for body in bodies
        )
        marked = [text for text, is_marked in chunk.pieces() if is_marked]
        if not fits or len(marked) != len(chunk.highlights):
            yield chunk.key


if __name__ == "__main__":
    main()
