"""`words`: the months of the word index, and `word_index`, the whole."""

import dagster as dg

from mail_assets.defs.assets.metadata import table_columns
from mail_assets.defs.assets.months import materialize_table
from mail_assets.defs.partitions import PREFIX, YEAR, asset_key, months_of_run
from mail_assets.defs.resources import WordsResource, WorkspaceResource
from mail_assets.month import ListMonth
from mail_assets.steps.outcome import Outcome
from mail_assets.steps.write_words import write_words
from mail_assets.words.index import VERSION


def build_word_index(kind: str) -> dg.AssetSpec:
    """Build the index as a whole, which the months of `words` make together."""
    return dg.AssetSpec(
        asset_key("word_index"),
        deps=[asset_key("words")],
        tags={"layer": "index"},
        kinds={kind},
        description="The word index as a whole: what search asks for words. Its check lists "
        "every key, so it runs by itself and in no month's run.",
    )


def build_words(partitions: dg.MultiPartitionsDefinition, kind: str) -> dg.AssetsDefinition:
    """Build the asset; `kind` is the URL scheme of its place, for the UI."""

    @dg.asset(
        key_prefix=PREFIX,
        partitions_def=partitions,
        backfill_policy=YEAR,
        deps=[asset_key("messages")],
        tags={"layer": "index"},
        kinds={kind},
        metadata=table_columns("words"),
        code_version=str(VERSION),
        # before chunks and embeddings: words are searchable while those are made
        op_tags={"dagster/priority": "1"},
    )
    def words(
        context: dg.AssetExecutionContext, workspace: WorkspaceResource, words: WordsResource
    ) -> dg.MaterializeResult:
        """One document per message in the word index: the lexemes of subject, new text and names,
        and what a search filters by. Keys in the index = keys in the manifest = messages.
        """
        mail_words = words.open().for_run(months_of_run(context))
        with workspace.open(context) as opened:

            def write(month: ListMonth) -> Outcome:
                return write_words(opened, month, mail_words)

            name = mail_words.manifest.index_name
            place = {"dagster/table_name": name, "index": mail_words.name}
            return materialize_table(context, opened, write, rows="documents", about=place)

    return words
