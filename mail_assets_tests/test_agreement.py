"""All ways to search find the same: Dagster's op, the command line, the API, assistants' tools.

SQL, which ranks by pgvector and PostgreSQL's own full text, is compared in sql_functions/.
"""

import json
import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import dagster as dg
import httpx
import psycopg
import pytest
from click.testing import CliRunner

from mail_assets.cli import main
from mail_assets.defs.definitions import build_defs
from mail_assets.web.privacy import SHOWN
from mail_assets_tests.sample_corpus import Corpus
from mail_assets_tests.web.conftest import serving
from mail_assets_tests.web.readings import ask_tool, find_hits

LIMIT = 5
WORDS = 4
#: Queries of two words, in every mode, order and grouping, with fields of each kind.
FORMS = [
    "{} {}", "{} {} mode:semantic", "{} {} mode:fulltext", '"{} {}" or {}', "{} -{}",
    "{} {} list:harbor-dev", "{} {} after:2024-04 is:reply", "{} or {} group:message",
    "{} {} sort:date", "subject:{} {} from:e",
]  # fmt: skip


@pytest.fixture(scope="module")
def queries(corpus: Corpus) -> list[str]:
    """Queries of words of subjects; the same in each run."""
    with psycopg.connect(corpus.settings.pg_dsn) as connection:
        rows = connection.execute("select distinct subject_base from messages").fetchall()
    found = sorted({word for (text,) in rows for word in re.findall("[a-z]{5,}", text)})
    words = found[:: len(found) // WORDS][:WORDS]
    made = [
        form.format(word, words[at - 1], words[at - 2])
        for (at, word), form in product(enumerate(words), FORMS)
    ]
    assert len(set(made)) == WORDS * len(FORMS)
    return made


@pytest.fixture(scope="module")
def served(corpus: Corpus) -> Iterator[httpx.Client]:
    with serving(corpus.settings, SHOWN) as client:
        yield client


def ask_api(client: httpx.Client, query: str) -> list[str]:
    found = client.get("/search.json", params={"q": query, "limit": LIMIT}).json()
    return [hit["message_id"] for hit in found["hits"]]


def ask_assistants_tool(client: httpx.Client, query: str) -> list[str]:
    answer = ask_tool(client, "semantic_search", query=query, limit=LIMIT, tokens=8000).json()
    [content] = answer["result"]["content"]
    return find_hits(content["text"])


def ask_command(corpus: Corpus, queries: list[str], folder: Path) -> list[list[str]]:
    lines = [json.dumps({"_id": str(n), "text": text}) for n, text in enumerate(queries)]
    (folder / "queries.jsonl").write_text("\n".join(lines) + "\n")
    arguments = ["search", "--queries", str(folder / "queries.jsonl"), "--limit", str(LIMIT)]
    result = CliRunner().invoke(main, arguments, env={**corpus.environ})
    assert result.exit_code == 0, result.output
    return [
        [hit["message_id"] for hit in json.loads(line)["hits"]]
        for line in result.stdout.splitlines()
    ]


def ask_op(corpus: Corpus, queries: list[str]) -> list[list[str]]:
    config = {"config": {"queries": queries, "limit": LIMIT}}
    with dg.DagsterInstance.ephemeral() as instance:
        job = build_defs(corpus.settings).resolve_job_def("test_queries")
        result = job.execute_in_process(
            instance=instance, run_config={"ops": {"serve_test_queries": config}}
        )
    [event] = [e for e in result.all_events if e.event_type == dg.DagsterEventType.STEP_OUTPUT]
    shown: dict[str, Any] = {
        name: one.value for name, one in event.step_output_data.metadata.items()
    }
    return [
        [row.data["message_id"] for row in shown["details"].records if row.data["query"] == query]
        for query in queries
    ]


@pytest.mark.slow
def test_every_surface_finds_the_same(
    corpus: Corpus,
    queries: list[str],
    served: httpx.Client,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MAIL_PG_DSN", corpus.settings.pg_dsn)
    by_api = [ask_api(served, query) for query in queries]
    assert sum(map(len, by_api)) > 2 * len(queries)
    assert {query: ask_assistants_tool(served, query) for query in queries} == dict(
        zip(queries, by_api, strict=True)
    )
    assert ask_command(corpus, queries, tmp_path) == by_api
    assert ask_op(corpus, queries) == by_api
