"""Queries of every kind, made of the mail that is stored: for benchmarks/search.py.

Each is made of a chunk that a seeded choice of keys finds, so that words are as frequent as they
are in mail, and of the message that it belongs to.
"""

import random
import re
from collections.abc import Callable
from typing import LiteralString, NamedTuple

import psycopg

SEED = 13
_WORD = re.compile(r"[^\W\d_]{3,}")
#: What English full text leaves out.
STOP_WORDS = "the of and to in is that it for was on are as with his they at be this from have"

#: Messages whose chunk comes first from a random key on.
SOURCES: LiteralString = """
select m.list, m.message_id, m.sent_at::date::text, m.from_email, m.from_name, m.subject_base,
       coalesce((m.recipients || m.cc)[1], ''), coalesce(m.attachments -> 0 ->> 'name', ''), c.text
  from unnest(%s::text[]) as k (key)
 cross join lateral (select * from chunks where key >= k.key order by key limit 1) c
  join messages m using (list, month, message_id, variant)
"""


class Source(NamedTuple):
    """A message and the text of one of its chunks."""

    list_name: str
    message_id: str
    day: str
    address: str
    name: str
    subject: str
    receiver: str
    file: str
    text: str

    @property
    def words(self) -> list[str]:
        """The words of the text."""
        return _WORD.findall(self.text)


def read_sources(connection: psycopg.Connection, count: int) -> list[Source]:
    """Return so many messages, the same each time for the same mail."""
    chance = random.Random(SEED)
    keys = [f"{chance.getrandbits(128):032x}" for _ in range(4 * count)]
    rows = [Source(*row) for row in connection.execute(SOURCES, [keys])]
    return [one for one in rows if len(one.words) >= 5][:count]


def _some(one: Source, count: int) -> str:
    """Return so many words of a text, at least those that it has, the longest first."""
    words = sorted(dict.fromkeys(one.words), key=len, reverse=True)
    return " ".join((words * count)[:count])


def _sentence(one: Source) -> str:
    return " ".join(one.text.split()[:14])


def _pair(one: Source) -> str:
    return " ".join(one.words[2:4])


def _month(one: Source) -> str:
    return f"month:{one.day[:7]}"


def _first_word(text: str) -> str:
    found = _WORD.search(text)
    return found[0] if found else "patch"


#: What each kind is made of a message; "5 words" stands for all that has no filter.
KINDS: dict[str, Callable[[Source], str]] = {
    "1 word": lambda one: _some(one, 1),
    "5 words": lambda one: _some(one, 5),
    "50 words": lambda one: _some(one, 50),
    "sentence": _sentence,
    "phrase": lambda one: f'"{_pair(one)}"',
    "phrase and words": lambda one: f'"{_pair(one)}" {_some(one, 2)}',
    "prefix": lambda one: f"{_some(one, 1)[:4]}*",
    "exclusion": lambda one: f"{_some(one, 2)} -{one.words[0]}",
    "or": lambda one: f"{_some(one, 1)} or {one.words[0]}",
    "newest first": lambda one: f"{one.words[0]} sort:date",
    "list:": lambda one: f"{_some(one, 5)} list:{one.list_name}",
    "month: (of all, 1 in 100 or fewer)": lambda one: f"{_some(one, 5)} {_month(one)}",
    "after: (a day of any year)": lambda one: f"{_some(one, 5)} after:{one.day}",
    "list: after:": lambda one: f"{_some(one, 5)} list:{one.list_name} after:{one.day}",
    "from: address": lambda one: f'{_some(one, 5)} from:"{one.address}"',
    "from: part": lambda one: f"{_some(one, 5)} from:{_first_word(one.name)}",
    "to:": lambda one: f"{_some(one, 5)} to:{_first_word(one.receiver)}",
    "subject:": lambda one: f"{_some(one, 5)} subject:{_first_word(one.subject)}",
    "file:": lambda one: f"{_some(one, 5)} file:{_first_word(one.file)}",
    "thread:": lambda one: f'{_some(one, 5)} thread:"{one.message_id}"',
    "has:patch": lambda one: f"{_some(one, 5)} has:patch",
}
#: Queries that must not take long, whoever asks them.
HOSTILE: dict[str, str] = {
    "500 terms": " ".join(f"term{n}" if n % 2 else STOP_WORDS.split()[n % 22] for n in range(340)),
    "2,000 characters": ("the patch file system call " * 80)[:2_000],
    "stop words": STOP_WORDS,
    "operators": '- -- "" ( ) or OR -( ) * : \\ " - or ',
}
