"""Make what pages of series and patches show besides their documents: rows, cells, signed lines."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from typing import Any, NamedTuple

from mail_assets.reading.patch_states import SHORT
from mail_assets.web.page_parts import Piece
from mail_assets.web.requests import commit_url

Document = Mapping[str, Any]

#: States of files and patches in a comparison, as people read them.
STATES = {
    "same": "unchanged",
    "context": "only the lines around the changes differ",
    "changed": "changed",
    "added": "new",
    "dropped": "dropped",
}
#: An abbreviated id of a commit, as reading/patch_states.py writes it.
_ID = re.compile(rf"(\b[0-9a-f]{{{SHORT}}}\b)")
_CLASSES = {"+": "added", "-": "removed"}


class Line(NamedTuple):
    """A line of a comparison; `kind` is added, removed, place or ""."""

    text: str
    kind: str


def view_changes(document: Document) -> Iterator[dict[str, Any]]:
    """Yield the rows of a series: each change with a cell for every posting, which may be empty."""
    for change in document["changes"]:
        cells: list[list[Document]] = [[] for _ in document["postings"]]
        for version in change["versions"]:
            cells[version["posting"]].append(version)
        titles = Counter(one["title"] for one in change["versions"])
        yield {**change, "cells": cells, "has_titles": len(titles) > 1}


def count_states(document: Document) -> str:
    """Return what became of the changes of a series, in numbers."""
    states = [one["state"] for one in document["changes"] if one["kind"] == "patch"]
    counts = Counter("open" if one == "silent" else one for one in states)
    return ", ".join(f"{count} {state}" for state, count in counts.most_common())


def name_missing(document: Document) -> str:
    """Return the versions below the newest of which no mail is known: "v1 to v3, v5"."""
    known = sorted({one["version"] for one in document["postings"]})
    gaps = [(one + 1, after - 1) for one, after in pairwise([0, *known]) if after - one > 1]
    return ", ".join(
        f"v{first}" if first == last else f"v{first} to v{last}" for first, last in gaps
    )


def link_commits(words: str, commits: Sequence[str]) -> Iterator[Piece]:
    """Yield words in pieces; the ids of commits in them are links."""
    known = {sha[:SHORT]: commit_url(sha) for sha in commits}
    for part in _ID.split(words):
        if part:
            yield Piece(part, known.get(part, ""))


def view_comparison(comparison: Document) -> Iterator[dict[str, Any]]:
    """Yield the patches of a comparison; each line of a file says which version has it."""
    for one in comparison["changes"]:
        files = [
            {
                **file,
                "lines": [Line(line, _find_kind(line)) for line in file["lines"]],
                "said": STATES[file["state"]],
            }
            for file in one["files"]
        ]
        yield {**one, "files": files, "said": STATES[one["state"]]}


def _find_kind(line: str) -> str:
    return _CLASSES.get(line[:1], "place" if line[1:3] == "@@" else "")


def view_open_patches(document: Document) -> Iterator[dict[str, Any]]:
    """Yield the open patches of a list; those of a series in a row are a group.

    What all patches of a group have is said once. That they are open is said by the page.
    """
    for url, some in groupby(document["changes"], key=lambda one: one["series_url"]):
        patches = [
            {**one, "waits": one["words"].removeprefix("open").removeprefix(", ")} for one in some
        ][::-1]
        senders = {(one["from_name"], one.get("mark"), one["sent_at"][:10]) for one in patches}
        waits = {one["waits"] for one in patches}
        yield {
            "url": url,
            "title": patches[0]["series_title"],
            "patches": patches,
            "is_posting": len(senders) == 1,
            "waits": patches[0]["waits"] if len(waits) == 1 else "",
        }
