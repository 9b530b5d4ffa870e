"""The summaries of threads as documents: of one thread whole, of a hit how it begins and ends."""

from collections.abc import Collection, Sequence
from typing import Any

from mail_assets.serving.publication import Publication
from mail_assets.serving.service import SearchService
from mail_assets.serving.urls import page_url
from mail_assets.tables.thread_summaries import read_summaries

Document = dict[str, Any]


def read_summary_documents(
    threads: Collection[str], service: SearchService, publication: Publication
) -> dict[str, Document]:
    """Return the summaries of threads by their ids, with the pages of their messages.

    The texts may be seen: each was hidden with what stands around it, and then cut.
    """
    documents: dict[str, Document] = {}
    for thread_id, summary in service.read(read_summaries, threads).items():
        documents[thread_id] = document = summary.as_json()
        for sentence, (before, behind) in zip(document["sentences"], summary.around, strict=True):
            text, start = sentence["text"], len(before)
            whole = before + text + behind
            sentence["text"] = publication.publish_part(whole, start, start + len(text))
            sentence["url"] = page_url("message", sentence["message_id"])
    return documents


def add_summaries(
    hits: Sequence[Document], service: SearchService, publication: Publication
) -> None:
    """Give hits, each for its whole thread, the first and the last sentence of its summary."""
    threads = {hit["thread_id"] for hit in hits if hit["thread_id"]}
    summaries = read_summary_documents(threads, service, publication)
    for hit in hits:
        summary = summaries.get(hit["thread_id"])
        sentences = summary["sentences"] if summary else []
        hit["summary"] = sentences if len(sentences) < 2 else [sentences[0], sentences[-1]]
