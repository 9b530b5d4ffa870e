"""The check of `embeddings`: one encoder made all vectors."""

from collections.abc import Sequence

import dagster as dg
import psycopg

from mail_assets.defs.checks.months import CheckedMonth, check_months
from mail_assets.defs.partitions import asset_key
from mail_assets.defs.resources import DatabaseResource, EncoderResource, StoreResource
from mail_assets.month import ListMonth
from mail_assets.store.embeddings import file_key, read_fingerprint
from mail_assets.store.objects import ObjectStore
from mail_assets.tables.partitions import Partition, State, read_state


@dg.asset_check(asset=asset_key("embeddings"), blocking=True)
def one_fingerprint(
    context: dg.AssetCheckExecutionContext,
    database: DatabaseResource,
    store: StoreResource,
    encoder: EncoderResource,
) -> dg.AssetCheckResult:
    """The vectors that are about to enter the index were all made by the encoder whose
    fingerprint its name carries.
    """
    files, fingerprint = store.open(), encoder.fingerprint

    def find(
        connection: psycopg.Connection, months: Sequence[ListMonth]
    ) -> dict[ListMonth, CheckedMonth]:
        states = {month: read_state(connection, Partition("embeddings", month)) for month in months}
        return {
            month: _find_fingerprint(files, month, state, fingerprint)
            for month, state in states.items()
        }

    return check_months(context, database, find, dg.AssetCheckSeverity.ERROR)


def _find_fingerprint(
    files: ObjectStore, month: ListMonth, state: State | None, fingerprint: str
) -> CheckedMonth:
    texts = int(state.counts["texts"]) if state else 0
    key = file_key(month, fingerprint)
    found = read_fingerprint(files, key) if files.exists(key) else "no file"
    wanted = fingerprint if texts else "no file"
    figures = {"texts": texts, "fingerprint": found, "wanted": wanted}
    return CheckedMonth(state is not None and found == wanted, figures)
