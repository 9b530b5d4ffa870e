"""What the page of a search shows beside its document: reasons, bars, links to refine, advice."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from mail_assets.month import months_between
from mail_assets.search.response import ChunkHit
from mail_assets.search.snippets import cut_snippet
from mail_assets.serving.addresses import MASK
from mail_assets.serving.urls import search_url

Document = Mapping[str, Any]

#: Characters of a chunk that a hit shows.
SNIPPET = 400
#: The histogram, in its own units, and the most months that it has a bar for; of more, years.
BAR_WIDTH, BAR_HEIGHT, MAX_MONTHS = 24, 60, 60
#: Senders and years that are named; the histogram has every year.
SENDERS, YEARS = 10, 10


@dataclass(frozen=True)
class Bar:
    """A month or year of the histogram: where its bar stands, and the search that it leads to."""

    label: str
    count: int
    x: int
    height: int
    url: str


@dataclass(frozen=True)
class Link:
    """A link, with a count where it has one."""

    text: str
    url: str
    count: int = 0


def view_hits(document: Document) -> list[dict[str, Any]]:
    """Return the hits of a search with what a page shows of them.

    Those that are folded into one have titles where the document has them.
    """
    titles = document.get("titles", {})
    return [
        {
            **hit,
            "snippet": _snippet(hit),
            "reasons": describe_reasons(hit),
            "folded": [titles[id] for id in hit["in_thread"] if id in titles],
            "duplicates": [titles[id] for id in hit["copies"] if id in titles],
        }
        for hit in document["hits"]
    ]


def view_histogram(document: Document) -> list[Bar]:
    """Return a bar for each month from the first to the last that has a match, or for each year."""
    facets = document["facets"]
    if not facets["months"]:
        return []
    counts, periods = facets["months"], months_between(min(facets["months"]), max(facets["months"]))
    if len(periods) > MAX_MONTHS:
        first, last = int(min(facets["years"])), int(max(facets["years"]))
        counts, periods = facets["years"], [str(year) for year in range(first, last + 1)]
    most = max(counts.values())
    return [
        Bar(
            label=period,
            count=counts.get(period, 0),
            x=at * BAR_WIDTH,
            height=-(-BAR_HEIGHT * counts.get(period, 0) // most),
            url=_refine(document, f"date:{period}"),
        )
        for at, period in enumerate(periods)
    ]


def view_facets(document: Document) -> dict[str, list[Link]]:
    """Return the links that refine a search, under the headings that they stand under."""
    facets = document["facets"]
    fields = {
        "By list": [(f"list:{name}", name, n) for name, n in facets["lists"].items()],
        "By sender": [
            (f'from:"{name}"', name, n)
            for name, n in facets["senders"].items()
            if MASK not in name and '"' not in name
        ][:SENDERS],
        "By year": [
            (f"date:{year}", year, n)
            for year, n in sorted(facets["years"].items(), reverse=True)[:YEARS]
        ],
        "By kind": [(f"kind:{name}", name, n) for name, n in facets["kinds"].items()],
    }
    return {
        heading: [Link(text, _refine(document, field), count) for field, text, count in some]
        for heading, some in fields.items()
        if some
    }


def view_advice(document: Document) -> Iterator[Link]:
    """Yield the searches that find more than one that found little or nothing."""
    parameters = document["parameters"]
    options = {name: parameters[name] for name in ("mode", "group", "sort") if name in parameters}
    if document["mode"] != "hybrid":
        yield Link("By words and by meaning", _change(document, mode=""))
    if parameters.get("sort") == "date":
        yield Link("Best first, where words may be missing", _change(document, sort=""))
    if parameters.keys() - options.keys() - {"q", "limit", "offset"} and "q" in parameters:
        yield Link("Without the filters below the box", search_url(parameters["q"], **options))
    plain = document["query"].replace('"', " ")
    if plain != document["query"]:
        yield Link("Without the quotes", _change(document, q=" ".join(plain.split())))


def view_sorts(document: Document) -> Link:
    """Return the link to the other order."""
    if document["parameters"].get("sort") == "date":
        return Link("Best first", _change(document, sort=""))
    return Link("Newest first", _change(document, sort="date"))


def describe_reasons(hit: Document) -> str:
    """Return why a message is a hit."""
    why = hit["why"]
    ranks, words = why["ranks"], ", ".join(why["words"])
    reasons = []
    if "fulltext" in ranks or words:
        rank = f", rank {ranks['fulltext']}" if "fulltext" in ranks else ""
        reasons.append(f"words{rank}{f': {words}' if words else ''}")
    if "semantic" in ranks or why["distance"] is not None:
        rank = f", rank {ranks['semantic']}" if "semantic" in ranks else ""
        near = f", distance {why['distance']:.3f}" if why["distance"] is not None else ""
        reasons.append(f"meaning{rank}{near}")
    if not ranks:
        reasons.append("its thread")
    return "; ".join(reasons)


def _snippet(hit: Document) -> list[tuple[str, bool]]:
    """Return what a hit shows of its best chunk in pieces, each with whether it is marked."""
    if not hit["chunks"]:
        return []
    first = hit["chunks"][0]
    spans = {name: tuple(map(tuple, first[name])) for name in ("spans", "highlights")}
    return [*cut_snippet(ChunkHit(**{**first, **spans}), SNIPPET)]


def _refine(document: Document, field: str) -> str:
    query = document["parameters"].get("q", "")
    return _change(document, q=f"{query} {field}".strip())


def _change(document: Document, **changes: str) -> str:
    """Return the URL of a search with other parameters, from its first page."""
    parameters = {**document["parameters"], **changes}
    rest = {name: value for name, value in parameters.items() if name not in ("q", "offset")}
    return search_url(parameters.get("q", ""), **rest)
