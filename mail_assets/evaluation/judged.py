"""Judged sets: files of queries, and of judgements which messages are relevant to them.

Queries are JSON, one object a line: `_id` and `text`, as BEIR has them (Thakur et al. 2021).
Judgements are lines of query id, message id and grade, separated by tabs.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from mail_assets.search.request import RequestError, strip_brackets

#: The files of a judged set in its folder.
QUERIES, QRELS = "queries.jsonl", "qrels.tsv"
#: Relevant messages below which a query is left out: with one or two, its nDCG jumps.
MIN_RELEVANT = 3


class JudgedQuery(NamedTuple):
    """A query with its relevant messages and their grades, each above 0."""

    query_id: str
    text: str
    relevant: Mapping[str, int]


def read_queries(file: Path) -> Iterator[tuple[int, str, str]]:
    """Yield line number, id and text of each query; blank lines and other fields are ignored.

    Raises:
        RequestError: the file is not UTF-8, or a line is not a query; names it.
    """
    for number, line in _lines(file):
        try:
            yield number, *_read_query(line)
        except RequestError as error:
            raise RequestError(f"{file}, line {number}: {error}") from None


def read_judgements(file: Path) -> dict[str, dict[str, int]]:
    """Return the grades: query id -> message id -> grade; a first line of headings is allowed.

    Grades of 0 and below mean "not relevant" and are left out. Ids lose their angle brackets.

    Raises:
        RequestError: the file is not UTF-8, or a line is not a judgement; names it.
    """
    grades: dict[str, dict[str, int]] = {}
    first = True
    for number, line in _lines(file):
        fields = line.split("\t")
        heading, first = first and fields[-1].strip() == "score", False
        if heading:
            continue
        try:
            query_id, message_id, grade = fields
            value = int(grade)
        except ValueError:
            raise RequestError(
                f"{file}, line {number}: must be query id, message id and a whole number between "
                f"tabs, not {line[:80]!r}"
            ) from None
        if value > 0:
            grades.setdefault(query_id, {})[strip_brackets(message_id)] = value
    return grades


def read_judged_set(folder: Path, at_least: int = MIN_RELEVANT) -> list[JudgedQuery]:
    """Return the judged queries of a folder.

    Raises:
        RequestError: a file is wrong, or no query has that many relevant messages.
    """
    return read_judged(folder / QUERIES, folder / QRELS, at_least)


def read_judged(queries: Path, judgements: Path, at_least: int) -> list[JudgedQuery]:
    """Return the queries that have at least so many relevant messages, in the file's order.

    Raises:
        RequestError: a file is wrong, or no query is left.
    """
    grades = read_judgements(judgements)
    judged = [
        JudgedQuery(query_id, text, grades[query_id])
        for _, query_id, text in read_queries(queries)
        if len(grades.get(query_id, ())) >= at_least
    ]
    if not judged:
        raise RequestError(
            f"no query of {queries} has {at_least} relevant messages in {judgements}: "
            "the ids must be the same in both"
        )
    return judged


def _lines(file: Path) -> Iterator[tuple[int, str]]:
    try:
        text = file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise RequestError(f"{file}: is no UTF-8: {error}") from None
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            yield number, line.rstrip("\r")


def _read_query(line: str) -> tuple[str, str]:
    wanted = 'must be a JSON object with "_id" and "text", two strings'
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise RequestError(f"{wanted}: {error}") from None
    if not isinstance(record, dict):
        raise RequestError(f"{wanted}, not {type(record).__name__}")
    for name in ("_id", "text"):
        if not isinstance(record.get(name), str):
            raise RequestError(f"{wanted}: {name!r} is {record.get(name)!r:.40}")
    return record["_id"], record["text"]
