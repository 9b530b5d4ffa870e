"""Measure how well the SQL functions rank on judged sets.

    MAIL_VECTORS=pgvector: python -m benchmarks.sql_quality FOLDER=LIST [FOLDER=LIST ...]

FOLDER holds queries.jsonl and qrels.tsv, as `mail-assets evaluate` reads them; LIST is what they
are asked of. The functions must be installed. Messages that hold a question themselves are deleted
before it is asked, in a transaction that is rolled back: use a copy of a database in use.
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import psycopg

from mail_assets.encoding.local_encoder import LocalEncoder, open_local_encoder
from mail_assets.evaluation.judged import JudgedQuery, read_judged_set
from mail_assets.evaluation.scores import count_threads, ndcg, reciprocal_rank, success
from mail_assets.settings.settings import load_settings

# 30: search looks at 100 chunks, as for a page of 10.
FUNCTIONS = {
    "fulltext": "search_fulltext(%(text)s, 30, array[%(list)s])",
    "semantic": "search_semantic(%(vector)s::halfvec, 30, in_lists => array[%(list)s])",
    "hybrid": "search_hybrid(%(text)s, %(vector)s::halfvec, 30, in_lists => array[%(list)s])",
}


def main() -> None:
    """Print a row for each set and function."""
    parser = argparse.ArgumentParser(description="Measure the SQL functions on judged sets.")
    parser.add_argument("sets", nargs="+", metavar="FOLDER=LIST")
    arguments = parser.parse_args()
    settings = load_settings()
    encoder = open_local_encoder(settings.encoder, settings.precision, settings.model_cache)
    print("| set | queries | function | nDCG@10 | MRR | success@10 | threads@10 |\n|" + "---|" * 7)
    with settings.database.connect("benchmark") as connection:
        for argument in arguments.sets:
            folder, _, list_name = argument.rpartition("=")
            queries = read_judged_set(Path(folder))
            for function in FUNCTIONS:
                rows = [measure(connection, encoder, one, list_name, function) for one in queries]
                means = " | ".join(f"{mean:.3f}" for mean in np.mean(rows, axis=0))
                print(f"| {Path(folder).name} | {len(rows)} | {function} | {means} |", flush=True)


def measure(
    connection: psycopg.Connection,
    encoder: LocalEncoder,
    query: JudgedQuery,
    list_name: str,
    function: str,
) -> tuple[float, ...]:
    """Ask one query, without the messages that hold it; return its measures."""
    vector = ",".join(map(str, encoder.encode_query(query.text).tolist()))
    given: dict[str, Any] = {"text": query.text, "vector": f"[{vector}]", "list": list_name}
    statement = f"select message_id, coalesce(thread_id, message_id) from {FUNCTIONS[function]}"
    with connection.transaction(force_rollback=True):
        for message_id in query.citing:
            connection.execute("delete from messages where message_id = %s", [message_id])
        rows = connection.execute(statement.encode(), given).fetchall()
    ids, threads = [row[0] for row in rows], [row[1] for row in rows]
    return (
        ndcg(ids, query.relevant, 10),
        reciprocal_rank(ids, query.relevant),
        success(ids, query.relevant, 10),
        float(count_threads(threads, 10)),
    )


if __name__ == "__main__":
    main()
