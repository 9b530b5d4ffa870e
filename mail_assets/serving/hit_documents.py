"""The hits of a search as plain values, with URLs of their pages and passages that may be seen."""

from typing import Any

from mail_assets.search.response import Response
from mail_assets.serving.passages import hide_cut_addresses
from mail_assets.serving.publication import Publication
from mail_assets.serving.service import SearchService
from mail_assets.serving.urls import page_url


def describe_hits(
    response: Response, service: SearchService, publication: Publication
) -> dict[str, Any]:
    """Return a response as the data of a page; it has still to pass the publication's door."""
    document = response.as_json()
    for hit in document["hits"]:
        for one in filter(None, (hit, hit["newer_copy"])):
            one["url"] = page_url("message", one["message_id"])
    hide_cut_addresses(document["hits"], service, publication)
    return document
