"""What an index of words holds of a message, and what it returns of one."""

from typing import NamedTuple

from mail_assets.month import ListMonth


class Document(NamedTuple):
    """The lexemes of one copy of a message, in their order, and what a search filters by.

    `key` is unique, and carries list and month as keys of chunks do. A lexeme that counts several
    times, as those of the subject do, stands several times. `sent_at` is in seconds since 1970;
    `flags` are names of what the message has: patch, attachment, reply, first.
    """

    key: str
    month: ListMonth
    message_id: str
    variant: int
    sent_at: int
    sender: str
    flags: tuple[str, ...]
    lexemes: tuple[str, ...]


class WordMatch(NamedTuple):
    """A message that matches, in one copy, and its BM25."""

    key: str
    month: ListMonth
    message_id: str
    variant: int
    score: float
