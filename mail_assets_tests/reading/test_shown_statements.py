"""Statements of readers read only views of shown mail, not the tables behind them."""

import re

import pytest

from mail_assets.postgres.statements import SQL

#: The files whose statements only readers use.
FILES = ("answer", "browsing", "conversations", "decisions", "exports", "patch_talk")
#: What has mail of lists that are not published too.
HIDDEN = re.compile(
    r"\b(?:from|join|lateral)\s+(messages|contested_texts|threads|thread_summaries|chunks|senders"
    r"|first_copy)\b"
)
#: Statements that limit these by the lists of the session, or by rows that are shown.
LIMITED = {
    "decisions": {"mails"},
    "answer": {"chunks", "bodies", "people"},
    "browsing": {"newest_threads", "newest_dates", "month_addresses", "near_ids", "newest_id",
                 "known_ids", "neighbours", "list_neighbours", "month", "list", "chunks", "around"},
    "exports": {"month", "newest_of_month", "rows", "messages"},
}  # fmt: skip


@pytest.mark.parametrize("file", FILES)
def test_statements_of_readers_read_what_is_shown(file: str) -> None:
    for part in (SQL / f"{file}.sql").read_text().split("-- name: ")[1:]:
        name, _, text = part.partition("\n")
        code = "\n".join(line for line in text.splitlines() if not line.startswith("--"))
        found = {*HIDDEN.findall(code)}
        if name in LIMITED.get(file, ()):
            assert "messages" not in found or "shown_" in code, (file, name)
            assert "shown_" in code, (file, name)
        else:
            assert not found, (file, name, found)
