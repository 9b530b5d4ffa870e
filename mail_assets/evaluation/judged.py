"""Read judged sets (queries with their relevant messages), and measure rankings.

Queries are JSON, one object per line: `_id` and `text`, as in BEIR (Thakur et al. 2021), and
`citing`, the id or ids of messages that contain the question itself; search ignores them.
Judgements are lines of query id, message id and grade, separated by tabs.

nDCG@10     DCG / DCG of the best order, with DCG = sum of (2**grade - 1) / log2(rank + 1)
            (Burges et al. 2005; for grades of 0 and 1 equal to Järvelin, Kekäläinen 2002)
MRR         1 / rank of the first relevant message, 0 if none is among the first 50
recall@50   share of the relevant messages that are among the first 50
success@10  1 if a relevant message is among the first 10, else 0
threads@10  number of threads among the first 10; one thread should not hide the others

Measures of threads count any message in the thread of a relevant message:

thread_mrr         1 / rank of the first message of such a thread
thread_success@10  1 if there is one among the first 10
"""

import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from mail_assets.search.language.request import Group, Request, RequestError, strip_brackets
from mail_assets.search.response import Response
from mail_assets.search.searcher import Searcher

#: Names of the two files of a judged set.
QUERIES, QRELS = "queries.jsonl", "qrels.tsv"
#: Minimum of relevant messages per query, because nDCG is unstable with one or two. If most queries
#: of a set have fewer (known-item search, measured by MRR), the minimum is 1.
MIN_RELEVANT, MIN_KNOWN = 3, 1
#: Reasons for which a query is not asked.
NOT_JUDGED = "no relevant message judged"
NOT_ARCHIVED = "no relevant message in the archive"
ONLY_CITING = "only relevant messages that hold the question"


class JudgedQuery(NamedTuple):
    """A query with its relevant messages and their grades, each above 0.

    Search ignores the `citing` messages in both legs, in the scores of threads and in the results.
    """

    query_id: str
    text: str
    relevant: Mapping[str, int]
    citing: tuple[str, ...] = ()


class JudgedSet(NamedTuple):
    """The queries of a set, the lists to search (none: all), and numbers `left_out` by reason."""

    name: str
    lists: tuple[str, ...]
    queries: Sequence[JudgedQuery]
    left_out: Mapping[str, int] = MappingProxyType({})

    def leave_out_unfindable(self, archived: Set[str]) -> "JudgedSet":
        """Return the set without queries that have no findable answer among `archived` ids."""
        asked, lost = [], Counter(self.left_out)
        for one in self.queries:
            if not one.relevant.keys() & archived:
                lost[NOT_ARCHIVED] += 1
            elif one.relevant.keys() <= {*one.citing}:
                lost[ONLY_CITING] += 1
            else:
                asked.append(one)
        return self._replace(queries=asked, left_out=lost)


class WrittenQuery(NamedTuple):
    """A line of a file of queries."""

    query_id: str
    text: str
    citing: tuple[str, ...]


def read_queries(file: Path) -> Iterator[tuple[int, WrittenQuery]]:
    """Yield the number and the query of each line; skip blank lines and unknown fields."""
    for number, line in _lines(file):
        try:
            yield number, _read_query(line)
        except RequestError as error:
            raise RequestError(f"{file}, line {number}: {error}") from None


def read_judgements(file: Path) -> dict[str, dict[str, int]]:
    """Return the grades: query id -> message id -> grade; the first line may have headings.

    Grades of 0 and below mean "not relevant" and are left out. Angle brackets of ids are removed.

    Raises:
        RequestError: the file is not UTF-8, or a line is not a judgement or contradicts an earlier
            line; the message has the line's number.
    """
    given: dict[tuple[str, str], int] = {}
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
        judged = query_id, strip_brackets(message_id)
        former = given.setdefault(judged, value)
        if former != value:
            raise RequestError(
                f"{file}, line {number}: {message_id.strip()} has the grade {value} for query "
                f"{query_id}, and {former} on a line before"
            )
    grades: dict[str, dict[str, int]] = {}
    for (query_id, message_id), value in given.items():
        if value > 0:
            grades.setdefault(query_id, {})[message_id] = value
    return grades


def read_set(folder: Path, at_least: int | None = None) -> JudgedSet:
    """Return the queries of a folder that have `at_least` relevant messages, in their order.

    The default is MIN_RELEVANT, or MIN_KNOWN if most queries have fewer than MIN_RELEVANT.
    """
    queries, judgements = folder / QUERIES, folder / QRELS
    grades = read_judgements(judgements)
    few = 2 * sum(len(one) < MIN_RELEVANT for one in grades.values()) > len(grades)
    least = at_least or (MIN_KNOWN if few else MIN_RELEVANT)
    judged, lost = [], Counter[str]()
    for one in _read_distinct(queries):
        relevant = grades.get(one.query_id, {})
        if len(relevant) >= least:
            judged.append(JudgedQuery(one.query_id, one.text, relevant, one.citing))
        else:
            lost[f"fewer than {least} relevant messages" if relevant else NOT_JUDGED] += 1
    if not judged:
        raise RequestError(
            f"no query of {queries} has {least} relevant messages in {judgements}: "
            "the ids must be the same in both"
        )
    return JudgedSet("", (), judged, lost)


def _read_distinct(file: Path) -> Iterator[WrittenQuery]:
    lines: dict[str, int] = {}
    for number, one in read_queries(file):
        first = lines.setdefault(one.query_id, number)
        if first != number:
            raise RequestError(
                f"{file}, line {number}: line {first} has the same id {one.query_id!r:.80}"
            )
        yield one


def _lines(file: Path) -> Iterator[tuple[int, str]]:
    try:
        text = file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise RequestError(f"{file}: is not UTF-8: {error}") from None
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            yield number, line.rstrip("\r")


def _read_query(line: str) -> WrittenQuery:
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
    if not record["text"].strip():
        raise RequestError("the query is empty")
    citing = record.get("citing", [])
    ids = [citing] if isinstance(citing, str) else citing
    if not (isinstance(ids, list) and all(isinstance(one, str) for one in ids)):
        raise RequestError(f'"citing" must be a message id or a list of them, not {citing!r:.40}')
    return WrittenQuery(record["_id"], record["text"], tuple(map(strip_brackets, ids)))


def ndcg(ranking: Sequence[str], relevant: Mapping[str, int], depth: int) -> float:
    """Return the normalised discounted cumulative gain of the first `depth`, 0 to 1."""
    best = sorted(relevant.values(), reverse=True)
    return _dcg([relevant.get(i, 0) for i in ranking[:depth]]) / _dcg(best[:depth])


def reciprocal_rank(ranking: Sequence[str], relevant: Mapping[str, int]) -> float:
    """Return 1 / rank of the first relevant message, 0 if there is none."""
    return next((1 / rank for rank, i in enumerate(ranking, 1) if i in relevant), 0.0)


def recall(ranking: Sequence[str], relevant: Mapping[str, int], depth: int) -> float:
    """Return the share of the relevant messages among the first `depth`."""
    return len(relevant.keys() & {*ranking[:depth]}) / len(relevant)


def success(ranking: Sequence[str], relevant: Mapping[str, int], depth: int) -> float:
    """Return 1 if a relevant message is among the first `depth`, else 0."""
    return float(not relevant.keys().isdisjoint(ranking[:depth]))


def count_threads(threads: Sequence[str], depth: int) -> int:
    """Return the number of threads of the first `depth` messages."""
    return len({*threads[:depth]})


def _dcg(grades: Iterable[int]) -> float:
    return sum((2.0**grade - 1) / math.log2(rank + 1) for rank, grade in enumerate(grades, 1))


#: Messages requested for each query.
DEPTH = 50
MEASURES = (
    *("ndcg_10", "mrr", "recall_50", "success_10", "threads_10"),
    *("thread_mrr", "thread_success_10"),
)


class Ranking(NamedTuple):
    """Messages in the order of a search, their threads, and the latency in milliseconds."""

    message_ids: Sequence[str]
    threads: Sequence[str]
    took_ms: float


@dataclass(frozen=True)
class Score:
    """The measures of one query in one mode, and its latency in milliseconds."""

    mode: str
    query_id: str
    ndcg_10: float
    mrr: float
    recall_50: float
    success_10: float
    threads_10: float
    thread_mrr: float
    thread_success_10: float
    took_ms: float


def find_threads(searcher: Searcher, judged: Iterable[JudgedQuery]) -> dict[str, str]:
    """Return the thread of each relevant message that is stored: message id -> thread id."""
    return searcher.find_threads(message_id for one in judged for message_id in one.relevant)


def score_queries(
    search: Callable[[Request], Response],
    judged: Sequence[JudgedQuery],
    modes: Iterable[str],
    lists: tuple[str, ...] = (),
    group: str = Group.message,
    threads: Mapping[str, str] = MappingProxyType({}),
) -> list[Score]:
    """Run every query in every mode and measure the rankings.

    By default each message counts, also after others of its thread. Grouped by conversation, a row
    counts as the most relevant message that it shows (its first message or its hits); messages that
    it does not show are not found. Search ignores the `citing` messages of a query. `threads` maps
    relevant messages to their threads. The first query of a mode runs twice, to warm the caches.
    """
    scores = []
    for mode in modes:
        template = Request("-", mode=mode, limit=DEPTH, lists=lists, group=group)
        requests = [
            replace(template, query=one.text, query_id=one.query_id, without=one.citing)
            for one in judged
        ]
        search(requests[0])
        for one, request in zip(judged, requests, strict=True):
            scores.append(score_ranking(mode, one, _rank(search(request), one), threads))
    return scores


def score_ranking(mode: str, one: JudgedQuery, found: Ranking, threads: Mapping[str, str]) -> Score:
    """Return the measures of one ranking."""
    ranking = found.message_ids
    of_threads = {threads.get(message_id, message_id): 1 for message_id in one.relevant}
    return Score(
        mode=str(mode),
        query_id=one.query_id,
        ndcg_10=round(ndcg(ranking, one.relevant, 10), 4),
        mrr=round(reciprocal_rank(ranking[:DEPTH], one.relevant), 4),
        recall_50=round(recall(ranking, one.relevant, DEPTH), 4),
        success_10=success(ranking, one.relevant, 10),
        threads_10=float(count_threads(found.threads, 10)),
        thread_mrr=round(reciprocal_rank(found.threads[:DEPTH], of_threads), 4),
        thread_success_10=success(found.threads, of_threads, 10),
        took_ms=found.took_ms,
    )


def _rank(response: Response, one: JudgedQuery) -> Ranking:
    messages = [hit.message_id for hit in response.hits]
    threads = [hit.thread_id or hit.message_id for hit in response.hits]
    if response.conversations:
        shown = [
            [*row.best, *([row.first.message_id] if row.first else [])]
            for row in response.conversations
        ]
        messages = [max(some, key=lambda id: one.relevant.get(id, 0)) for some in shown]
        threads = [row.thread_id or row.best[0] for row in response.conversations]
    return Ranking(messages, threads, response.took_ms)
