"""How many messages have a word, from PostgreSQL's statistics: read once after each ANALYZE."""

from collections.abc import Callable, Mapping

import psycopg

from mail_assets.postgres.statements import statement

#: Messages that are looked at where there was no ANALYZE yet.
SAMPLED = 1_000
#: A word that is not among the commonest 1,000 stands in far fewer messages than the last of them.
RARER = 10


class Frequencies:
    """The number of messages, and how many of them have a lexeme.

    A lexeme that the statistics do not name is rarer than those that they name: it is taken for
    RARER times as rare as the rarest. Both are estimates, which scale scores and rank nothing.
    """

    def __init__(self, messages: int, shares: Mapping[str, float]) -> None:
        self.messages = messages
        self._shares = shares
        rarest = min(shares.values(), default=0.0)
        self._unknown = rarest / RARER

    def names(self, lexeme: str) -> bool:
        """Say whether the statistics name a lexeme: it is among the commonest."""
        return lexeme in self._shares

    def count(self, lexeme: str) -> int:
        """Return how many messages have a lexeme, about."""
        return round(self._shares.get(lexeme, self._unknown) * self.messages)


class FrequencyReader:
    """Reads the statistics again when they are others; for one connection."""

    def __init__(self, connection: psycopg.Connection) -> None:
        self._connection = connection
        self._read: tuple[int, Frequencies] | None = None

    def ask(self) -> Callable[[], Frequencies]:
        """Send the question whether the statistics are others; return what reads the answer."""
        asked = self._connection.execute(statement("frequencies", "corpus"))
        return lambda: self._answer(int((asked.fetchone() or (0,))[0]))

    def _answer(self, messages: int) -> Frequencies:
        if self._read is None or self._read[0] != messages:
            self._read = messages, self._read_frequencies(messages)
        return self._read[1]

    def _read_frequencies(self, messages: int) -> Frequencies:
        if messages > 0:
            rows = self._connection.execute(statement("frequencies", "word_shares")).fetchall()
            if rows:
                return Frequencies(messages, dict(rows))
        parameters = {"most": SAMPLED}
        sampled = self._connection.execute(statement("frequencies", "sampled_shares"), parameters)
        return Frequencies(max(messages, SAMPLED), dict(sampled.fetchall()))
