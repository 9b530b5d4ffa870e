"""Checks of `chunks`: spans are exact, and sizes suit the encoder."""

from collections.abc import Sequence

import dagster as dg
import psycopg

from mail_assets.defs.checks.months import CheckedMonth, check_months
from mail_assets.defs.partitions import asset_key
from mail_assets.defs.resources import DatabaseResource, EncoderResource
from mail_assets.month import ListMonth
from mail_assets.tables.checks import Tokens, count_wrong_spans, read_tokens
from mail_assets.text.chunk_sizes import ChunkSizes

#: Mean tokens of a month's chunks, as a share of the encoder's target: outside of it the
#: chunker or the segmenter has probably met something new.
TOKENS_LOW, TOKENS_HIGH = 0.15, 1.25

#: A mean over fewer chunks says nothing.
ENOUGH_CHUNKS = 50


@dg.asset_check(asset=asset_key("chunks"), blocking=True)
def spans_point_into_bodies(
    context: dg.AssetCheckExecutionContext, database: DatabaseResource
) -> dg.AssetCheckResult:
    """The text of each chunk is exactly what its spans cut out of its message's body."""
    return check_months(context, database, _find_wrong_spans, dg.AssetCheckSeverity.ERROR)


def _find_wrong_spans(
    connection: psycopg.Connection, months: Sequence[ListMonth]
) -> dict[ListMonth, CheckedMonth]:
    counts = count_wrong_spans(connection, months)
    return {month: CheckedMonth(wrong == 0, {"wrong": wrong}) for month, wrong in counts.items()}


@dg.asset_check(asset=asset_key("chunks"))
def tokens_in_range(
    context: dg.AssetCheckExecutionContext, database: DatabaseResource, encoder: EncoderResource
) -> dg.AssetCheckResult:
    """Chunks have about as many tokens as the encoder wants, and never more than it takes."""
    sizes = encoder.model.sizes

    def find(
        connection: psycopg.Connection, months: Sequence[ListMonth]
    ) -> dict[ListMonth, CheckedMonth]:
        tokens = read_tokens(connection, months)
        return {month: _find_sizes(one, sizes) for month, one in tokens.items()}

    return check_months(context, database, find, dg.AssetCheckSeverity.WARN)


def _find_sizes(tokens: Tokens, sizes: ChunkSizes) -> CheckedMonth:
    usual = TOKENS_LOW <= tokens.mean / sizes.target <= TOKENS_HIGH
    passed = tokens.most <= sizes.max_tokens and (usual or tokens.chunks < ENOUGH_CHUNKS)
    return CheckedMonth(passed, {**tokens._asdict(), "mean": round(tokens.mean, 1)})
