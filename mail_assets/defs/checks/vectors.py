"""The check of `vectors` that the bucket holds the chunks of each month, and nothing else."""

from collections.abc import Sequence

import dagster as dg
import psycopg

from mail_assets.defs.asset_keys import asset_key
from mail_assets.defs.checks.months import CheckedMonth, check_months, compare_keys
from mail_assets.defs.resources.database import DatabaseResource
from mail_assets.defs.resources.encoder import EncoderResource
from mail_assets.defs.resources.vector_bucket import VectorBucketResource
from mail_assets.month import ListMonth
from mail_assets.steps.vector_index import MailIndex
from mail_assets.tables.checks import chunk_keys
from mail_assets.tables.manifest import read_manifest


@dg.asset_check(asset=asset_key("vectors"), blocking=True)
def keys_agree(
    context: dg.AssetCheckExecutionContext,
    database: DatabaseResource,
    encoder: EncoderResource,
    vector_bucket: VectorBucketResource,
) -> dg.AssetCheckResult:
    """Keys in the bucket = keys in the manifest = chunks."""
    mail_index = vector_bucket.open_index(encoder)

    def find(
        connection: psycopg.Connection, months: Sequence[ListMonth]
    ) -> dict[ListMonth, CheckedMonth]:
        # month by month: the keys of a whole corpus do not fit into memory
        return {month: _find_keys(connection, mail_index, month) for month in months}

    return check_months(context, database, find, dg.AssetCheckSeverity.ERROR)


def _find_keys(
    connection: psycopg.Connection, mail_index: MailIndex, month: ListMonth
) -> CheckedMonth:
    chunks = chunk_keys(connection, month)
    entries = read_manifest(connection, mail_index.part(month))
    present = mail_index.month_keys(month, chunks | entries.keys())
    return compare_keys(("chunks", chunks), entries, ("bucket", present))
