"""The tables of a measurement: every mode of every index, and the queries answered worst."""

from collections.abc import Sequence
from typing import NamedTuple

import dagster as dg

from mail_assets.evaluation.judged import JudgedQuery
from mail_assets.evaluation.quality import DECIDING_MODE, collect_topic_scores
from mail_assets.evaluation.scores import Score
from mail_assets.evaluation.summary import build_summary_table, summarise_scores
from mail_assets.search.request import MODES
from mail_assets.tables.indexes import IndexRecord

#: Queries shown of those that are answered worst.
WORST = 20

WORST_SCHEMA = dg.TableSchema(
    [
        dg.TableColumn("query_id", "string"),
        dg.TableColumn("text", "string"),
        *(dg.TableColumn(f"{mode}_ndcg10", "float") for mode in MODES),
        dg.TableColumn("first", "int", "rank of the first relevant message, of the first 50"),
        dg.TableColumn("recall50", "float"),
        dg.TableColumn("relevant", "int", "relevant messages"),
    ]
)


class Answers(NamedTuple):
    """The scores of every query, asked of one index of a bucket."""

    bucket: str
    record: IndexRecord
    scores: list[Score]


def mode_table(answers: Sequence[Answers]) -> dg.TableMetadataValue:
    """Return a row for each mode of each index."""
    rows = [
        dg.TableRecord(
            {
                "mode": row.pop("mode"),
                "live": one.record.live,
                **{str(name): value for name, value in row.items()},
                "index": one.record.name,
                "bucket": one.bucket,
            }
        )
        for one in answers
        for row in build_summary_table(summarise_scores(one.scores))
        .reset_index()
        .to_dict("records")
    ]
    return dg.MetadataValue.table(rows)


def worst_table(scores: Sequence[Score], judged: Sequence[JudgedQuery]) -> dg.TableMetadataValue:
    """Return the queries that hybrid search answers worst, with the scores of the other modes."""
    by_mode = collect_topic_scores(scores)
    asked = {one.query_id: one for one in judged}
    worst = sorted(
        (one for one in scores if one.mode == DECIDING_MODE and one.ndcg_10 < 1),
        key=lambda one: (one.ndcg_10, one.query_id),
    )
    rows = [
        dg.TableRecord(
            {
                "query_id": one.query_id,
                "text": asked[one.query_id].text,
                **{f"{mode}_ndcg10": of_mode[one.query_id] for mode, of_mode in by_mode.items()},
                "first": round(1 / one.mrr) if one.mrr else None,
                "recall50": one.recall_50,
                "relevant": len(asked[one.query_id].relevant),
            }
        )
        for one in worst[:WORST]
    ]
    return dg.MetadataValue.table(rows, WORST_SCHEMA)
