"""`vectors`: the months of the index in the vector bucket, and `vector_index`, the whole.

[words] `words`: the months of the word index, and `word_index`, the whole.

[chunks] `chunks`: the new text of each message, in pieces of the encoder's size.

[embeddings] `embeddings`: one vector per distinct text of a month, as Parquet in the store.
"""

import dagster as dg
import pandas as pd

from mail_assets.defs.assets.months import (
    Metadata,
    make_months,
    materialize_table,
    rows_as_markdown,
    table_columns,
)
from mail_assets.defs.partitions import PREFIX, YEAR, asset_key, months_of_run
from mail_assets.defs.resources import (
    EncoderResource,
    VectorBucketResource,
    WordsResource,
    WorkspaceResource,
)
from mail_assets.encoding.models import LocalModel
from mail_assets.indexes.encoder_probe import ProbedEncoder
from mail_assets.indexes.names import VECTORS_VERSION
from mail_assets.month import ListMonth
from mail_assets.steps.cut_chunks import cut_chunks
from mail_assets.steps.encode_chunks import encode_chunks
from mail_assets.steps.outcome import Outcome
from mail_assets.steps.write_vectors import write_vectors
from mail_assets.steps.write_words import write_words
from mail_assets.store.embeddings import file_key, read_first_embeddings
from mail_assets.tables.chunks import count_unencoded
from mail_assets.tables.partitions import Counts
from mail_assets.text.chunking import CHUNKER_VERSION
from mail_assets.words.index import WORDS_VERSION
from mail_assets.workspace import Workspace


def build_vector_index(kind: str) -> dg.AssetSpec:
    """Build the index as a whole, which the months of `vectors` make together."""
    return dg.AssetSpec(
        asset_key("vector_index"),
        deps=[asset_key("vectors")],
        tags={"layer": "index"},
        kinds={kind},
        description="The index in the vector bucket as a whole: what search asks. Its check lists "
        "every key, so it runs by itself and in no month's run.",
    )


def build_vectors(partitions: dg.MultiPartitionsDefinition, kind: str) -> dg.AssetsDefinition:
    """Build the asset; `kind` is the bucket's URL scheme, for the UI."""

    @dg.asset(
        key_prefix=PREFIX,
        partitions_def=partitions,
        backfill_policy=YEAR,
        # of messages: sender, date and subject, which the embeddings know nothing of
        deps=[asset_key("messages"), asset_key("embeddings")],
        tags={"layer": "index"},
        kinds={kind},
        metadata=table_columns("vectors"),
        code_version=VECTORS_VERSION,
    )
    def vectors(
        context: dg.AssetExecutionContext,
        workspace: WorkspaceResource,
        encoder: EncoderResource,
        vector_bucket: VectorBucketResource,
    ) -> dg.MaterializeResult:
        """One vector per chunk in the vector bucket, in an index whose name carries the
        encoder's fingerprint. Keys in the bucket = keys in the manifest = chunks.
        """
        index = vector_bucket.open_index(encoder).for_run(months_of_run(context))
        with workspace.open(context) as opened:
            name = index.manifest.index_name
            place = {"dagster/table_name": name, "index": index.name}
            return materialize_table(
                context,
                opened,
                lambda month: write_vectors(opened, month, index),
                rows="chunks",
                about=place,
            )

    return vectors


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
        code_version=str(WORDS_VERSION),
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


def build_chunks(partitions: dg.MultiPartitionsDefinition) -> dg.AssetsDefinition:
    """Build the asset."""

    @dg.asset(
        key_prefix=PREFIX,
        partitions_def=partitions,
        backfill_policy=YEAR,
        deps=[asset_key("messages")],
        tags={"layer": "text"},
        kinds={"postgres"},
        metadata=table_columns("chunks"),
        code_version=CHUNKER_VERSION,
    )
    def chunks(
        context: dg.AssetExecutionContext, workspace: WorkspaceResource, encoder: EncoderResource
    ) -> dg.MaterializeResult:
        """The new text of each message, cut at paragraphs, sentences and lines. `spans` point
        into messages.body_text, and the text of a chunk is exactly those spans.
        """
        tokenizer, sizes = encoder.tokenizer(), encoder.model.sizes
        with workspace.open(context) as opened:
            return materialize_table(
                context,
                opened,
                lambda month: cut_chunks(opened, month, tokenizer, sizes),
                rows="chunks",
            )

    return chunks


SCHEMA = dg.TableSchema(
    [
        dg.TableColumn("text_hash", "fixed_size_binary[32]", "sha256 of what the encoder saw"),
        dg.TableColumn("vector", "fixed_size_list<float>", "of length 1"),
    ]
)


def build_embeddings(
    partitions: dg.MultiPartitionsDefinition, code_version: str, kind: str
) -> dg.AssetsDefinition:
    """Build the asset; its code version is the encoder's fingerprint, `kind` what computes."""

    @dg.asset(
        key_prefix=PREFIX,
        partitions_def=partitions,
        backfill_policy=YEAR,
        deps=[asset_key("chunks")],
        tags={"layer": "index"},
        kinds={kind, "parquet"},
        metadata={"dagster/column_schema": SCHEMA},
        code_version=code_version,
    )
    def embeddings(
        context: dg.AssetExecutionContext, workspace: WorkspaceResource, encoder: EncoderResource
    ) -> dg.MaterializeResult:
        """One vector per distinct text of a month and encoder fingerprint. A text that any
        month has encoded before is never encoded again.
        """
        used = encoder.tokens_used
        with workspace.open(context) as opened:
            # a server is paid for each text, and its model is its own affair
            local = isinstance(encoder.model, LocalModel)
            probed = ProbedEncoder(encoder, opened.connection, opened.log) if local else encoder
            made = make_months(
                context,
                lambda month: encode_chunks(opened, month, probed),
                rows="texts",
                show=lambda month: _show(opened, encoder.fingerprint, month, workspace.samples),
            )
            left = count_unencoded(opened.connection, encoder.fingerprint)
        return dg.MaterializeResult(
            metadata={
                **made.counts,
                "dagster/table_name": f"embeddings.{encoder.fingerprint}",
                **_remaining(left, made.counts),
                "model": encoder.name,
                "precision": encoder.precision,
                "provider": encoder.provider,
                "fingerprint": encoder.fingerprint,
                "endpoint_tokens": encoder.tokens_used - used,
            },
            data_version=made.version,
        )

    return embeddings


def _remaining(left: int, counts: Counts) -> Counts:
    """Return the chunks of the corpus that wait for this encoder, and their hours at this rate.

    A run that encoded nothing knows no rate.
    """
    if not counts["encoded"]:
        return {"left": left}
    return {
        "left": left,
        "hours_left": round(left * counts["seconds"] / counts["encoded"] / 3600, 2),
    }


def _show(
    workspace: Workspace, fingerprint: str, month: ListMonth, shows_samples: bool
) -> Metadata:
    files, key = workspace.store, file_key(month, fingerprint)
    if not shows_samples:
        return {"dagster/uri": files.url(key)}
    rows = [
        {"text_hash": text_hash.hex()[:12], **{f"v{i}": vector[i] for i in range(4)}}
        for text_hash, vector in read_first_embeddings(files, key, 5).items()
    ]
    return {"dagster/uri": files.url(key), "sample": rows_as_markdown(pd.DataFrame(rows))}
