"""Addresses are on no page, and in no data, however they might be written there."""

import html
import re
from urllib.parse import unquote

import httpx
import psycopg

from mail_assets.serving.urls import page_url
from mail_assets_tests.sample_corpus import QUERY, Corpus

#: Marks of highlights, which could split an address in two.
_TAGS = re.compile(r"<[^>]*>")


def read_addresses(corpus: Corpus) -> set[str]:
    with psycopg.connect(corpus.settings.pg_dsn) as connection:
        rows = connection.execute(
            "select from_email || ' ' || array_to_string(recipients || cc || reply_to, ' ')"
            " from messages"
        ).fetchall()
    return {found.lower() for (row,) in rows for found in re.findall(r"[^\s<>,]+@[^\s<>,]+", row)}


def read_ids(corpus: Corpus) -> list[str]:
    with psycopg.connect(corpus.settings.pg_dsn) as connection:
        return [id for (id,) in connection.execute("select distinct message_id from messages")]


def spellings(text: str) -> set[str]:
    """Return a page as a harvester might read it."""
    plain = html.unescape(text)
    return {one.lower() for one in (text, plain, unquote(plain), _TAGS.sub("", plain))}


def test_no_address_is_anywhere(public: httpx.Client, corpus: Corpus) -> None:
    addresses = read_addresses(corpus)
    assert len(addresses) > 10
    ids = read_ids(corpus)
    paths = ["/lists", *(page_url(page, id) for page in ("message", "thread") for id in ids)]
    queries = [QUERY, "signed-off-by", *sorted(addresses)[:5]]
    paths += [f"/search?q={one}&limit=50&group=message" for one in queries]
    for path in paths:
        for one in (path, re.sub(r"^/(\w+)", r"/\1.json", path)):
            response = public.get(one)
            # ids are shown, and what the client has sent itself
            for text in spellings(response.text):
                for known in (*ids, *queries):
                    text = text.replace(known.lower(), "")
                assert not [address for address in addresses if address in text], one


def test_who_wants_to_shows_them(private: httpx.Client) -> None:
    hits = private.get("/search.json", params={"q": QUERY}).json()["hits"]
    assert all("@" in hit["from_email"] for hit in hits)
