"""The passages of hits show nothing of an address, wherever a chunk has its borders."""

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import psycopg
import pytest

from mail_assets.web.addresses import MASK
from mail_assets.web.documents import Documents
from mail_assets.web.privacy import HIDDEN, SHOWN, Publication, hide_cut_addresses
from mail_assets.web.searchers import SearchService, ServiceOptions
from mail_assets_tests.sample_corpus import search_settings
from mail_assets_tests.world import World, mail

#: What an address is made of that stands nowhere else.
PARTS = ("ingrid", "wagner", "corp", "example")
#: As Outlook forwards: all receivers on one line, which is longer than a chunk.
FORWARDED = "whale\nTo: " + "; ".join(f"ingrid{n}.wagner{n}@corp{n}.example" for n in range(90))
BROKEN = "whale " + "The fox is quick. " * 12 + "Write to ingrid.wagner@\ncorp.example now.\n"


@pytest.fixture
def built(world: World) -> World:
    world.archive("2024-03", mail("a", FORWARDED), mail("b", BROKEN * 12))
    world.chain(last="words")
    world.chain(last="chunks")
    world.threads()
    return world


@pytest.fixture
def service(built: World, tmp_path: Path) -> Iterator[SearchService]:
    options = ServiceOptions(search_settings(built.settings()), built.forget_key, "", 1)
    opened = SearchService(options)
    yield opened
    opened.close()


def passages(service: SearchService, addresses: str) -> list[str]:
    query = {"q": "whale corp example wagner", "mode": "fulltext"}
    hits = Documents(service, Publication(addresses)).search(query)["hits"]
    assert len(hits) == 2
    return [chunk["text"] for hit in hits for chunk in hit["chunks"]]


def test_no_part_of_an_address_is_in_a_passage(service: SearchService) -> None:
    texts = passages(service, HIDDEN)
    assert len(texts) > 3
    assert not [text for text in texts if any(part in text for part in PARTS)]
    assert any("fox" in text for text in texts)


def test_where_addresses_are_shown_passages_are_as_they_were_written(
    service: SearchService,
) -> None:
    assert any("wagner" in text for text in passages(service, SHOWN))


def chunks_cut_at(connection: psycopg.Connection, size: int) -> list[dict[str, Any]]:
    """Cut all chunks anew, at every so many characters, and return them as those of hits."""
    connection.execute("delete from chunks")
    rows = connection.execute("select list, month, message_id, variant, body_text from messages")
    found = []
    numbers = count()
    for *place, body in rows.fetchall():
        for start in range(0, len(body), size):
            spans = [(start, min(start + size, len(body)))]
            text = body[start : start + size]
            key = f"{next(numbers)}#0"
            connection.execute(
                "insert into chunks (key, list, month, message_id, variant, index, text, spans,"
                " tokens, text_hash) values (%s, %s, %s, %s, %s, %s, %s, %s, 1, '')",
                [key, *place, start, text, [*spans[0]]],
            )
            found.append({"key": key, "text": text, "spans": spans})
    return found


@pytest.mark.parametrize("size", [5, 17, 61])
def test_passages_hide_together_what_their_message_hides(
    built: World, service: SearchService, size: int
) -> None:
    with built.connect() as connection:
        chunks = chunks_cut_at(connection, size)
        bodies = connection.execute("select body_text from messages").fetchall()
    hide_cut_addresses([{"chunks": chunks}], service, Publication())
    shown = "".join(chunk["text"] for chunk in chunks)
    assert shown == "".join(Publication().publish(body) for (body,) in bodies)


def test_of_a_message_that_was_replaced_meanwhile_nothing_is_shown(
    built: World, service: SearchService
) -> None:
    with built.connect() as connection:
        chunks = chunks_cut_at(connection, 40)
        connection.execute("update messages set body_text = 'x' || body_text")
        connection.execute("delete from chunks where key = '0#0'")
    hide_cut_addresses([{"chunks": chunks[:2]}], service, Publication())
    assert [chunk["text"] for chunk in chunks[:2]] == [MASK * 40] * 2
