"""Measure if every word that a reader sees finds its message, by each way to search.

    MAIL_HOME=... python -m benchmarks.tokens [--sample 2000] [--list NAME] [--show 20]

Tokens of each kind are drawn from the new text of random messages, up to the sample divided by the
number of kinds. Tokens that are only stop words are left out. Each query is limited to the message
of its token (`id:`). The ways are `fulltext` (ranked by words), `date` (sort:date), `prefix`
(token*), and `excluded`: `-token` must not find the message. The patterns here describe tokens as a
reader sees them, and share nothing with mail_assets/text/words.py.
"""

import argparse
import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import NamedTuple

import psycopg

from mail_assets.mail.body.lines import Segment
from mail_assets.mail.body.segments import new_text_spans
from mail_assets.search.language.request import Request
from mail_assets.search.open import open_searcher
from mail_assets.search.searcher import Searcher
from mail_assets.settings.settings import load_settings

#: Kind -> pattern; the token is its last matched group, or else the whole match.
KINDS = {
    "word": r"(?<![\w.@/:+'-])[A-Za-z]{2,}(?![\w@/:+'-]|\.\w)",
    "of a/b": r"(?<![\w./:-])([A-Za-z]{3,})/[A-Za-z]{3,}(?![\w./:-])",
    "of URL": r"https?://[^\s<>\"]*?[/=?&]([A-Za-z]{3,})(?=[/=?&.#\s>])",
    "host": r"https?://((?:[a-z0-9-]+\.)+[a-z]{2,})(?=[/\s>])",
    "path": r"(?<![\w./:@-])(/?(?:[a-z0-9_]+/){2,}[a-z0-9_]+(?:\.[a-z]{1,4})?)(?![\w/@.-])",
    "file of path": r"(?<![\w./:@-])/?(?:[a-z0-9_]+/)+([a-z0-9_-]+\.[a-z]{1,4})(?![\w/@.-])",
    "dotfile": r"(?<![\w.])((?:~/)?\.[a-z][a-z_]{2,})(?![\w./@-])",
    "dotted": r"(?<![\w./@:-])([a-z]{2,}(?:\.[a-z_]{1,}){1,2})(?![\w./@:-])",
    "underscored": r"(?<![\w./@:-])([A-Za-z]+(?:_[A-Za-z]+)+)(?![\w./@:-])",
    "part of underscored": r"(?<![\w./@:-])[A-Za-z]+_([A-Za-z]{3,})(?![\w./@:-])",
    "hyphenated": r"(?<![\w./@:-])([A-Za-z]{2,}(?:-[A-Za-z]{2,})+)(?![\w./@:-])",
    "part of hyphenated": r"(?<![\w./@:-])([A-Za-z]{3,})-[A-Za-z]{2,}(?![\w./@:-])",
    "camelCase": r"(?<![\w./@:-])([A-Z]?[a-z]+[A-Z][a-z]+(?:[A-Z][a-z]+)*)(?![\w./@:-])",
    "part of camelCase": r"(?<![\w./@:-])[a-z]+([A-Z][a-z]{2,})(?![\w./@:-])",
    "version": r"(?<![\w./@:-])(v?\d+(?:\.\d+){1,3})(?![\w/@:-]|\.\d)",
    "number": r"(?<![\w./@:,+-])(\d{2,6})(?![\w./@:,%-])",
    "hex": r"(?<![\w./@:-])((?=\w*\d)(?=\w*[a-f])[0-9a-f]{7,40})(?![\w./@:-])",
    "of address": r"[\w.+-]+@((?!www)[a-z]{3,})\.[a-z]",
    "accented": r"(?<![\w./@:-])([A-Za-z]*[À-ÿĀ-ž][A-Za-zÀ-ÿĀ-ž]*)(?![\w./@:-])",
    # whole words only: spam replaces some letters of a word by similar Latin ones
    "not Latin": r"(?<!\w)[\u0370-\u1fff]{2,}(?!\w)|[\u3040-\u9fff\uac00-\ud7a3]{2,}",
    "stop word in name": r"(?<![\w./@:-])((?:is|to|not|on|of|in)_[a-z_]+)(?![\w./@:-])",
}  # fmt: skip
MESSAGES = """
    select message_id, subject, body_text, segments
      from messages where list = any(%s) and variant = 0 order by md5(message_id) limit %s
"""
#: The given words that are English stop words.
STOP_WORDS = "select w from unnest(%s::text[]) as w where to_tsvector('english', w) = ''"
WAYS = ("fulltext", "date", "prefix", "excluded")


class Token(NamedTuple):
    """A token, its kind, and the message that has it."""

    kind: str
    text: str
    message_id: str


def main() -> None:
    """Draw tokens, search for each, and print the shares that find their message."""
    parser = argparse.ArgumentParser(description="Measure if every word finds its message.")
    parser.add_argument("--sample", type=int, default=2000)
    parser.add_argument("--messages", type=int, default=6000, help="messages that are read")
    parser.add_argument("--list", action="append", help="a list; default: all")
    parser.add_argument("--show", type=int, default=20, help="failures that are printed")
    arguments = parser.parse_args()
    settings = load_settings()
    lists = arguments.list or [*settings.languages]
    with (
        open_searcher(settings.search) as searcher,
        settings.database.connect("tokens") as connection,
    ):
        tokens = [*draw(connection, lists, arguments.messages, arguments.sample)]
        report(searcher, tokens, arguments.show)


def draw(
    connection: psycopg.Connection, lists: list[str], messages: int, sample: int
) -> Iterator[Token]:
    """Yield a sample of tokens of each kind; the same mail gives the same tokens."""
    found: dict[str, list[Token]] = defaultdict(list)
    for row in connection.execute(MESSAGES, (lists, messages)).fetchall():
        message_id, subject, body, segments = row
        parts = [Segment(*part) for part in segments]
        new = "\n".join(body[start:end] for start, end in new_text_spans(body, parts))
        text = f"{subject}\n{new}"
        for kind, pattern in KINDS.items():
            for match in re.finditer(pattern, text):
                found[kind].append(Token(kind, match[match.lastindex or 0], message_id))
    chance = random.Random(39)
    for kind, tokens in found.items():
        distinct = sorted({*tokens})
        drawn = chance.sample(distinct, min(len(distinct), sample // len(KINDS) + 1))
        stop_words = connection.execute(STOP_WORDS, ([one.text for one in drawn],)).fetchall()
        yield from (one for one in drawn if (one.text,) not in stop_words)
        print(f"{kind}: {len(tokens)} tokens read", flush=True)


def report(searcher: Searcher, tokens: list[Token], show: int) -> None:
    """Search for every token in every way; print a table."""
    met: dict[str, Counter[str]] = defaultdict(Counter)
    asked: dict[str, Counter[str]] = defaultdict(Counter)
    for token in tokens:
        for way in WAYS:
            if way == "prefix" and not re.fullmatch(r"\w{3,}", token.text):
                continue
            query = _query(token, way)
            found = _finds(searcher, token, query)
            asked[token.kind][way] += 1
            met[token.kind][way] += found != (way == "excluded")
            if show and found == (way == "excluded"):
                print(f"{way}: {query!r} {token.message_id}")
                show -= 1
    print("\n| kind | n | " + " | ".join(WAYS) + " |\n|---|---|" + "---|" * len(WAYS))
    total: Counter[str] = Counter()
    good: Counter[str] = Counter()
    for kind in KINDS:
        total.update(asked[kind])
        good.update(met[kind])
        if asked[kind]:
            _print_row(kind, met[kind], asked[kind])
    _print_row("all", good, total)


def _print_row(kind: str, met: Counter[str], asked: Counter[str]) -> None:
    shares = (f"{met[way] / asked[way]:.3f}" if asked[way] else "" for way in WAYS)
    print(f"| {kind} | {asked['fulltext']} | {' | '.join(shares)} |")


def _query(token: Token, way: str) -> str:
    limits = f'id:"{token.message_id}"'
    match way:
        case "date":
            return f"{token.text} sort:date {limits}"
        case "prefix":
            return f"{token.text}* {limits}"
        case "excluded":
            return f'-"{token.text}" {limits}'
    return f"{token.text} {limits}"


def _finds(searcher: Searcher, token: Token, query: str) -> bool:
    hits = searcher.search(Request(query, mode="fulltext", limit=100, group="message")).hits
    return any(hit.message_id == token.message_id for hit in hits)


if __name__ == "__main__":
    main()
