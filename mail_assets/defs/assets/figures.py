"""Descriptions of the columns and figures of the assets, for the catalog.

The UI plots every numeric figure by month. Do not rename figures: a plot would begin again. The
metadata of an asset's definition says what each figure means.
"""

import re
from collections.abc import Mapping
from typing import Any

import dagster as dg

from mail_assets.indexes.vectors import FIELDS, NON_FILTERABLE
from mail_assets.reading.browsing import declared_columns

#: Figures of a month that several steps record.
_WRITTEN = {
    "written": "rows or entries that this run has written; 0 if nothing changed",
    "deleted": "rows or entries that this run has deleted",
    "seconds": "time that the step took for this month",
}

#: Figures with names of Dagster, which are plotted too.
_ROWS = {
    "dagster/partition_row_count": "rows of this month",
    "dagster/row_count": "rows of the whole table; the same in all months of a run",
}

#: Asset -> its figures of a month and their meanings.
FIGURES: Mapping[str, Mapping[str, str]] = {
    "mbox_archives": {
        "found": "messages in the archive",
        "bytes": "size of the archive as fetched",
        "fetched": "1 if this run has fetched a new or changed archive",
        "vanished": "messages of the former archive that are not in this one",
        "seconds": _WRITTEN["seconds"],
    },
    "messages": {
        "messages": "messages stored for this month; the same as stored",
        "found": "messages in the archive; stored + duplicates + quarantined + removed",
        "stored": "messages that are rows",
        "duplicates": "messages that the month already has",
        "quarantined": "messages that cannot be read; the table has the reasons",
        "removed": "forgotten messages; only a record without text is kept",
        "variants": "further texts under the same Message-ID",
        "suspicious": "messages that may not begin at this line of the archive",
        "bytes": "size of the stored messages",
        "unpacked_bytes": "size of the unpacked archive",
        "undated": "messages whose date does not come from their Date header",
        "parsed": "messages that this run has read; the bytes of the others were known",
        "messages_per_second": "messages read per second",
        **_WRITTEN,
    },
    "words": {
        "documents": "documents in the word index, one per message",
        "documents_per_second": "documents written per second",
        **_WRITTEN,
    },
    "patches": {
        "rows": "patches and cover letters",
        "patches": "patches, inline or attached",
        "covers": "cover letters",
        "attached": "patches that are attachments",
        "malformed": "patches that git refuses",
        "without_patch": "messages with lines of a diff but without a patch",
        "patches_per_second": "patches read per second",
        **_WRITTEN,
    },
    "commits": {
        "commits": "commits of the month, of all repositories of the list",
        "commits_per_second": "commits read per second",
        **_WRITTEN,
    },
    "patch_health": {
        "patches": "patches and cover letters in series; only the first copy of a message counts",
        "joined": "patches that continue an earlier version",
        "open": "patches without a statement about their outcome",
        "applied": "patches that somebody says were applied",
        "superseded": "patches with a newer version, or said to be superseded",
        "rejected": "patches that were rejected",
        "withdrawn": "patches that their author withdrew",
        "share_joined": "joined / patches",
        "share_open": "open / patches",
        "share_applied": "applied / patches",
        "share_superseded": "superseded / patches",
    },
    "commit_health": {
        "commits": "commits of the month",
        "links": "links of these commits to mail",
        "linked": "commits linked to the mail they were applied from, or to mail that they name",
        "applied": "commits whose applied mail was found",
        "named_elsewhere": "commits that only name mail that is not in the archive",
        "by_trailer": "linked by a trailer, or by the thread that a trailer names",
        "by_patch_id": "linked by git's patch-id, not by a trailer",
        "by_subject": "linked by the subject, not by trailer or patch-id",
        "by_lines": "linked only by author, files and changed lines",
        "by_name": "only name a discussion or report; the by_ figures add up to linked",
        "share_linked": "linked / commits",
        "share_named_elsewhere": "named_elsewhere / commits",
    },
    "chunks": {
        "messages": "messages that were cut",
        "chunks": "passages of new text",
        "tokens": "tokens of all chunks",
        "tokens_max": "tokens of the longest chunk",
        "truncated": "messages whose text was too long; its end has no chunks",
        "chunks_per_second": "chunks cut per second",
        **_WRITTEN,
    },
    "embeddings": {
        "texts": "distinct texts of the month, each with one vector",
        "tokens": "tokens of these texts",
        "encoded": "texts that this run has encoded",
        "reused": "texts whose vectors already existed",
        "bytes": "size of the file",
        "chunks_per_second": "texts encoded per second",
        "seconds": _WRITTEN["seconds"],
        "left": "chunks of the whole corpus that have no vector yet",
        "hours_left": "hours to encode these chunks at the rate of this run",
        "endpoint_tokens": "tokens that the model server has counted for this run",
    },
    "vectors": {
        "vectors": "vectors in the index; the same as chunks",
        "chunks": "chunks of the month, each with one vector",
        "vectors_per_second": "vectors written per second",
        **_WRITTEN,
    },
}

#: Asset -> the figure that is also recorded under the name of the asset.
COUNTED = {"messages": "stored", "vectors": "chunks"}

#: Fields of an entry of the vector index, without its key and its vector.
_VECTOR_FIELDS = {
    "list": "mailing list",
    "month": "month of the archive as a number, yyyymm",
    "message_id": "Message-ID",
    "sender": "address of the sender",
    "sent_at": "seconds since 1970",
    "chunk": "number of the chunk in its message, from 0",
    "kind": "patch if the message has one, else text",
    "subject": "subject, shortened; cannot be a filter",
    "fingerprint": "fingerprint of the encoder that made the vector; cannot be a filter",
}


#: Columns of a file of embeddings.
EMBEDDINGS = dg.TableSchema(
    [
        dg.TableColumn(
            "text_hash", "fixed_size_binary[32]", "sha256 of the text given to the encoder"
        ),
        dg.TableColumn("vector", "fixed_size_list<float>", "unit vector (norm 1)"),
    ]
)


def describe_asset(asset: str) -> dict[str, Any]:
    """Return the metadata of an asset's definition: its columns and the meaning of its figures."""
    if asset == "search_quality":  # its history is in Dagster, not in a table
        return {}
    if asset == "embeddings":  # a file, not a table
        return {"dagster/column_schema": EMBEDDINGS, **describe_figures(asset)}
    columns = table_schema(asset)
    described: dict[str, Any] = {"dagster/column_schema": columns}
    if asset == "vectors":
        described["dagster/column_schema"] = vector_schema()
        described["manifest"] = dg.MetadataValue.table_schema(columns)
    return {**described, **describe_figures(asset)}


def describe_figures(asset: str) -> dict[str, Any]:
    """Return a table of the figures of an asset's months and their meanings; {} without figures."""
    figures = FIGURES.get(asset, {})
    if figures and not asset.endswith("_health"):
        figures = {**figures, **_ROWS}
    rows = [dg.TableRecord({"figure": name, "means": what}) for name, what in figures.items()]
    return {"figures of a month": dg.MetadataValue.table(rows)} if rows else {}


def table_schema(table: str) -> dg.TableSchema:
    """Return the columns of a table of PostgreSQL."""
    return dg.TableSchema(
        [
            dg.TableColumn(
                column.name,
                column.type,
                column.description and quote_tags(column.description),
                dg.TableColumnConstraints(nullable=column.nullable),
            )
            for column in declared_columns(table)
        ]
    )


def vector_schema() -> dg.TableSchema:
    """Return the fields of an entry of the vector index."""
    carried = {**FIELDS, **dict.fromkeys(NON_FILTERABLE, "string")}
    return dg.TableSchema(
        [
            dg.TableColumn("key", "string", "list, month, Message-ID and number of the chunk"),
            dg.TableColumn("vector", "fixed_size_list<float>", "unit vector (norm 1)"),
            *(dg.TableColumn(name, kind, _VECTOR_FIELDS[name]) for name, kind in carried.items()),
        ]
    )


def quote_tags(text: str) -> str:
    """Return a description with its `<words>` quoted; the UI would take them for HTML."""
    return re.sub(r"(?<!`)<[^<>\s][^<>]*(?<!\s)>(?!`)", r"`\g<0>`", text)
