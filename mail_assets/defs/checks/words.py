"""The check of `words` that the index holds the messages of each month, and nothing else."""

from collections.abc import Sequence

import dagster as dg
import psycopg

from mail_assets.defs.asset_keys import asset_key
from mail_assets.defs.checks.months import CheckedMonth, check_months, compare_keys
from mail_assets.defs.resources.database import DatabaseResource
from mail_assets.defs.resources.words import WordsResource
from mail_assets.month import ListMonth
from mail_assets.steps.word_index import MailWords
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
        # month by month: the keys of a whole corpus do not fit into memory
        return {month: _find_keys(connection, mail_words, month) for month in months}

    return check_months(context, database, find, dg.AssetCheckSeverity.ERROR)


def _find_keys(connection: psycopg.Connection, words: MailWords, month: ListMonth) -> CheckedMonth:
    messages = words.read_digests(connection, month).keys()
    entries = read_manifest(connection, words.part(month))
    return compare_keys(("messages", messages), entries, ("index", words.month_keys(month)))
