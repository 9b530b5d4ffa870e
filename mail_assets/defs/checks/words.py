"""The check of `words` that the index holds the messages of each month, and nothing else."""

from collections.abc import Sequence

import dagster as dg
import psycopg

from mail_assets.defs.checks.months import (
    CheckedMonth,
    KnownKeys,
    check_months,
    compare_months,
)
from mail_assets.defs.partitions import asset_key
from mail_assets.defs.resources import DatabaseResource, WordsResource
from mail_assets.month import ListMonth
from mail_assets.tables.manifest import read_manifest


@dg.asset_check(asset=asset_key("words"), name="keys_agree", blocking=True)
def word_keys_agree(
    context: dg.AssetCheckExecutionContext, database: DatabaseResource, words: WordsResource
) -> dg.AssetCheckResult:
    """Keys in the index = keys in the manifest = messages."""
    mail_words = words.open()

    def find(
        connection: psycopg.Connection, months: Sequence[ListMonth]
    ) -> dict[ListMonth, CheckedMonth]:
        def read(month: ListMonth) -> KnownKeys:
            messages = mail_words.read_digests(connection, month).keys()
            return KnownKeys(messages, read_manifest(connection, mail_words.part(month)))

        return compare_months(
            months, read, lambda known: mail_words.find_keys(known.keys()), ("messages", "index")
        )

    return check_months(context, database, find, dg.AssetCheckSeverity.ERROR)
