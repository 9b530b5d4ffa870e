"""The check of `vectors` that the bucket holds the chunks of each month, and nothing else."""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial

import dagster as dg
import psycopg

from mail_assets.defs.checks.months import (
    CheckedMonth,
    KnownKeys,
    check_months,
    compare_months,
)
from mail_assets.defs.partitions import asset_key
from mail_assets.defs.resources import DatabaseResource, EncoderResource, VectorBucketResource
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
        def read(month: ListMonth) -> KnownKeys:
            entries = read_manifest(connection, mail_index.part(month))
            return KnownKeys(chunk_keys(connection, month), entries)

        return compare_months(months, read, partial(_find_keys, mail_index), ("chunks", "bucket"))

    return check_months(context, database, find, dg.AssetCheckSeverity.ERROR)


def _find_keys(
    mail_index: MailIndex, known: Mapping[ListMonth, KnownKeys]
) -> Mapping[ListMonth, Counter[str]]:
    return mail_index.find_keys({m: keys.wanted | keys.entries.keys() for m, keys in known.items()})
