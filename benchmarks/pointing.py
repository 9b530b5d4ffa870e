"""Make a judged set of the pointing kind from archives: a sentence in which an author points at
an earlier message, and the message.

    python -m benchmarks.pointing OUT ARCHIVES [ARCHIVES ...] [--dialect plain]

ARCHIVES are folders of monthly mbox files. Written are OUT/queries.jsonl and OUT/qrels.tsv, as
`mail-assets evaluate` takes them; they quote mail and are not to be committed.

A message points where its own text (no quote, patch or signature) has a link with the Message-ID
of an earlier message that is in the archives, or the id itself between angle brackets. The query
is the sentence before the link; of a footnote "[1] https://...", the sentence that has "[1]".
Links, ids and footnote marks are taken out. Trailers ("Link: ...") are no sentences.
"""

import argparse
import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

from mail_assets.mail.archive.mbox import split_archive
from mail_assets.mail.body.segments import new_text_spans, segment_body
from mail_assets.mail.message.message import Message
from mail_assets.mail.message.parse import UnreadableMessageError, parse_message

MIN_WORDS, MAX_CHARACTERS = 5, 400

_LINK = re.compile(r"<?\bhttps?://[^\s<>]+>?")
_BRACKETED = re.compile(r"<[^\s<>@]+@[^\s<>@]+>")
_ID = re.compile(r"[^\s<>/?#:]+@[^\s<>/?#]+")
_FOOTNOTE = re.compile(r"^[ \t]*(\[\d{1,2}\]|\(\d{1,2}\))[ \t:]*(?=<|http)", re.MULTILINE)
_TRAILER = re.compile(r"^[ \t]*[A-Z][\w-]+:", re.MULTILINE)
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z\"'(])|\n[ \t]*\n")


class Pointer(NamedTuple):
    """A query, the message that it was written in, and the message that it points at."""

    text: str
    citing: str
    target: str


def main() -> None:
    """Write the set and say how large it is."""
    parser = argparse.ArgumentParser(description="Make a judged set of the pointing kind.")
    parser.add_argument("out", type=Path)
    parser.add_argument("archives", type=Path, nargs="+", help="folders of monthly mbox files")
    parser.add_argument("--dialect", default="plain")
    arguments = parser.parse_args()
    messages = {m.message_id: m for m in _read(arguments.archives, arguments.dialect)}
    found = sorted({one for m in messages.values() for one in pointers(m, messages)})
    arguments.out.mkdir(parents=True, exist_ok=True)
    queries = (
        json.dumps({"_id": str(number), "text": one.text, "citing": one.citing})
        for number, one in enumerate(found)
    )
    qrels = (f"{number}\t{one.target}\t1" for number, one in enumerate(found))
    (arguments.out / "queries.jsonl").write_text("".join(f"{line}\n" for line in queries))
    (arguments.out / "qrels.tsv").write_text("".join(f"{line}\n" for line in qrels))
    print(f"{len(found)} pointing sentences in {len(messages)} messages")


def pointers(message: Message, messages: dict[str, Message]) -> Iterator[Pointer]:
    """Yield what a message's own sentences point at."""
    body = message.body_text
    text = "\n\n".join(body[start:end] for start, end in new_text_spans(body, segment_body(body)))
    for link in [*_LINK.finditer(text), *_BRACKETED.finditer(text)]:
        target = next(
            (i for i in map(unquote, _ID.findall(link[0])) if i.rstrip(".,)") in messages), ""
        ).rstrip(".,)")
        if not target or target == message.message_id:
            continue
        if messages[target].sent_at >= message.sent_at:
            continue
        sentence = _plain(_sentence(text, link.start()))
        if len(sentence.split()) >= MIN_WORDS:
            yield Pointer(sentence[:MAX_CHARACTERS], message.message_id, target)


def _sentence(text: str, at: int) -> str:
    """Return the sentence that contains or precedes a link, "" for a trailer."""
    line = text[text.rfind("\n", 0, at) + 1 :].split("\n", 1)[0]
    if footnote := _FOOTNOTE.match(line):
        mark = text.find(footnote[1])
        return _around(text, mark) if mark < at - 3 else ""
    return "" if _TRAILER.match(line) else _around(text, at)


def _around(text: str, at: int) -> str:
    """Return the sentence at a place; of a link alone, the one before it."""
    cuts = [0, *(m.end() for m in _SENTENCE.finditer(text)), len(text)]
    place = max(i for i, cut in enumerate(cuts[:-1]) if cut <= at)
    sentence = text[cuts[place] : cuts[place + 1]]
    if place and len(_plain(sentence).split()) < MIN_WORDS:
        return text[cuts[place - 1] : cuts[place + 1]]
    return sentence


def _plain(sentence: str) -> str:
    """Return a sentence without links, ids and footnote marks, on one line."""
    bare = _BRACKETED.sub(" ", _LINK.sub(" ", sentence))
    return " ".join(re.sub(r"\[\d{1,2}\]|\(\d{1,2}\)", " ", bare).split()).strip(" :-")


def _read(folders: Iterable[Path], dialect: str) -> Iterator[Message]:
    for folder in folders:
        for path in sorted(folder.iterdir()):
            month = path.name.split(".")[1]
            for raw in split_archive(path, dialect):
                try:
                    yield parse_message(raw, month=f"{month[:4]}-{month[4:]}", dialect=dialect)
                except UnreadableMessageError:
                    continue


if __name__ == "__main__":
    main()
