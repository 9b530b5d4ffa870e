"""What the pages of messages, threads and months show beside their documents."""

from collections.abc import Iterator
from itertools import groupby
from typing import Any

from mail_assets.mail.body.segments import Segment
from mail_assets.mail.message.forgotten import is_stand_in
from mail_assets.serving.documents import Document
from mail_assets.serving.text_view import Part, split_parts
from mail_assets.serving.urls import anchor, place_url

#: Levels that a thread is indented by: a line has to stay readable on a phone.
MAX_INDENT = 8
#: Pages before and behind one that it links.
NEAR_PAGES = 3


def view_body(document: Document, mentions: list[str]) -> list[Part]:
    """Return the parts of the body of a message or of a post."""
    segments = [Segment(*one) for one in document["segments"]]
    return [*split_parts(document["body_text"], segments, frozenset(mentions))]


def view_posts(document: Document) -> Iterator[dict[str, Any]]:
    """Yield the posts of a page of a thread with what is shown of them."""
    on_page = {post["message_id"]: post for post in document["posts"] if not post["is_ghost"]}
    level = min((post["depth"] for post in document["posts"]), default=0)
    for post in document["posts"]:
        parent_id = post["parent_id"] or ""
        parent = on_page.get(parent_id)
        subject_above = parent["subject_base"] if parent else document["subject"]
        yield {
            **post,
            "parts": [] if post["is_ghost"] else view_body(post, document.get("mentions", [])),
            "indent": min(post["depth"] - level, MAX_INDENT),
            "new_subject": post["subject"] if post["subject_base"] != subject_above else "",
            "is_forgotten": is_stand_in(post["message_id"]),
            "parent": parent,
            "parent_url": f"#{anchor(parent_id)}" if parent else place_url(parent_id),
            "left_out": post["characters"] - len(post["body_text"]),
        }


def choose_pages(document: Document) -> list[int]:
    """Return the pages of a thread that are linked, from 0: the first, the last, and the near."""
    pages = document["pages"]
    here, last = pages.index(document["url"]), len(pages) - 1
    near = range(max(0, here - NEAR_PAGES), min(last, here + NEAR_PAGES) + 1)
    return sorted({0, *near, last})


def view_month(document: Document) -> Iterator[list[dict[str, Any]]]:
    """Yield the messages of each thread of a page of a month."""
    for _, some in groupby(document["posts"], key=lambda post: post["thread_id"]):
        posts = [*some]
        level = min(post["depth"] for post in posts)
        yield [{**post, "indent": min(post["depth"] - level, MAX_INDENT)} for post in posts]


def view_years(document: Document) -> dict[str, list[tuple[str, int]]]:
    """Return the months of a list with their counts, by year, the newest first."""
    months = sorted(document["months"].items(), reverse=True)
    return {
        year: [*reversed([*some])] for year, some in groupby(months, key=lambda one: one[0][:4])
    }
