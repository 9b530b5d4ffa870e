"""Addresses are on no page, and in no data, however they might be written there.

[test_encoded] What is encoded in a text is masked at its length, and what only looks long is not.

[test_passages] The passages of hits show nothing of an address, wherever a chunk has its borders.

[test_publication] The one door: what is not listed as an id is masked, wherever it stands.
"""

import base64
import binascii
import hashlib
import html
import re
import textwrap
from collections.abc import Iterable, Iterator
from itertools import count, pairwise
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import httpx
import psycopg
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis
from hypothesis import strategies as st

from mail_assets.web.addresses import MASK
from mail_assets.web.documents import POST_CHARACTERS, Documents
from mail_assets.web.privacy import (
    HIDDEN,
    SHOWN,
    Publication,
    is_encoded,
    mask_encoded,
)
from mail_assets.web.requests import page_url
from mail_assets.web.searchers import SearchService, ServiceOptions
from mail_assets_tests.sample_corpus import QUERY, Corpus
from mail_assets_tests.web.conftest import serving_world
from mail_assets_tests.web.readings import ask_tool, read_response
from mail_assets_tests.world import World, mail

#: Bytes with an address in their middle, as a public key has them.
NOISE = b"".join(hashlib.sha512(bytes([n])).digest() for n in range(4))
KEY = NOISE + b"Ann Harbor <ann@example.org>" + NOISE[:50]
HEAD, TAIL = "-----BEGIN PGP PUBLIC KEY BLOCK-----", "-----END PGP PUBLIC KEY BLOCK-----"


def armour(width: int = 64) -> str:
    return "\n".join([*textwrap.wrap(base64.b64encode(KEY).decode(), width), "=aB3d"])


UUENCODED = (
    "begin 644 key.bin\n"
    + "".join(binascii.b2a_uu(KEY[at : at + 45]).decode() for at in range(0, len(KEY), 45))
    + "`\nend"
)


def blacken(text: str) -> str:
    return "".join(sign if sign in "\n\r >|" else MASK for sign in text)


@pytest.mark.parametrize("width", [60, 64, 76, 10_000])
@pytest.mark.parametrize("margin", ["", "> ", "> > ", "    ", "| "])
def test_lines_of_base64_are_masked_and_their_margins_are_not(width: int, margin: str) -> None:
    before, behind = "My key:\n\n", "\n\nYours,\nAnn"
    lines = textwrap.indent(armour(width), margin)
    text = before + lines + behind
    assert mask_encoded(text) == before + blacken(lines) + behind
    assert mask_encoded(text.replace("\n", "\r\n")) == mask_encoded(text).replace("\n", "\r\n")


def test_a_patch_that_adds_a_key_holds_none_of_it() -> None:
    patch = textwrap.indent(f"{HEAD}\n\n{armour()}\n{TAIL}\n", "+")
    masked = mask_encoded(patch)
    assert len(masked) == len(patch)
    assert masked.count(MASK) >= len(armour()) - armour().count("\n")
    assert HEAD in masked


def test_of_a_text_that_was_cut_the_rest_of_a_line_is_masked_too() -> None:
    for start in range(64):
        masked = mask_encoded(armour()[start:])
        assert masked == blacken(armour()[start:])


def test_uuencoded_lines_are_masked() -> None:
    masked = mask_encoded(f"See this.\n\n{UUENCODED}\nYours")
    assert len(masked) == len(f"See this.\n\n{UUENCODED}\nYours")
    assert masked.startswith("See this.\n\n")
    assert masked.endswith("`\nend\nYours")
    lines = masked.split("\n")[2:-3]
    assert all(set(line) <= {MASK, " "} for line in lines)
    without_beginning = UUENCODED.partition("\n")[2]
    assert set(mask_encoded(without_beginning).partition("\n`")[0]) <= {MASK, " ", "\n"}


PLAIN = [
    "/home/harbor/Projects/Pier/lib/python3/site/packages/twisted/internet/default",
    '  File "/home/Harbor/Pier/Python3/lib/python3/twisted/internet/base9", line 3',
    hashlib.sha256(b"x").hexdigest(),
    "=" * 72,
    "A" * 72,
    "https://lists.example.org/" + base64.b64encode(NOISE).decode()[:70],
    "MANY WORDS IN CAPITALS, AS OF A LICENCE THAT NOBODY EVER READS",
    "begin 644 is what a file of uuencode begins with\nand this is none",
    "Thanks\nAnn",
    "",
]


@pytest.mark.parametrize("text", PLAIN)
def test_what_is_only_long_stays(text: str) -> None:
    assert mask_encoded(text) == text
    assert not is_encoded(text)


@pytest.mark.parametrize(
    ("text", "encoded"),
    [
        (f"{HEAD}\n\n{armour()}\n{TAIL}\n", True),
        ("words " * 1_000 + f"\n{HEAD}\n\nabc\n", True),
        (f"{HEAD.replace('PUBLIC', 'PRIVATE')}\n", True),
        (armour(), True),
        (UUENCODED, True),
        ("words " * 1_000 + f"\n\n{armour()}\n", False),
    ],
)
def test_a_text_with_a_key_or_mostly_encoded_is_encoded(text: str, encoded: bool) -> None:
    assert is_encoded(text) == encoded


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
    options = ServiceOptions(built.settings().search, built.forget_key, "", 1)
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
    Documents(service, Publication()).hide_cut_addresses([{"chunks": chunks}])
    shown = "".join(chunk["text"] for chunk in chunks)
    assert shown == "".join(Publication().publish(body) for (body,) in bodies)


def test_of_a_message_that_was_replaced_meanwhile_nothing_is_shown(
    built: World, service: SearchService
) -> None:
    with built.connect() as connection:
        chunks = chunks_cut_at(connection, 40)
        connection.execute("update messages set body_text = 'x' || body_text")
        connection.execute("delete from chunks where key = '0#0'")
    Documents(service, Publication()).hide_cut_addresses([{"chunks": chunks[:2]}])
    assert [chunk["text"] for chunk in chunks[:2]] == [MASK * 40] * 2


DOCUMENT = {
    "message_id": "id1@example.org",
    "from_email": "ann@example.org",
    "from_name": "ann@example.org",
    "new_field": [{"deep": ("by ann@example.org", 3, None)}],
    "authors": {"ann@example.org": 2},
}


def test_a_field_that_nobody_thought_of_is_masked() -> None:
    seen = Publication(HIDDEN).publish(DOCUMENT)
    assert seen == {
        "message_id": "id1@example.org",
        "from_name": "\u2022" * 15,
        "new_field": [{"deep": [f"by {chr(0x2022) * 15}", 3, None]}],
    }


def test_senders_of_whom_the_same_is_left_are_counted_together() -> None:
    senders = {"ann@example.org": 2, "Bo": 1, "bob@example.org": 3}
    seen = Publication(HIDDEN).publish({"senders": senders})
    assert seen == {"senders": {MASK * 15: 5, "Bo": 1}}


def test_nothing_is_masked_where_addresses_are_shown() -> None:
    assert Publication(SHOWN).publish(DOCUMENT) is DOCUMENT


#: Of these any disguise of an address is made, and much that is none.
PIECES = [
    "jo", "a", "example.org", ".com", "@", "@@", " @ ", "@\n", " at ", "at", "(at)", "-at-", "%40",
    "=40", "&#64;", " dot ", "(dot)", "\n", "\n> ", " ", '"', "<", ">", ".", "-", "_", "1.2", "/",
    "\u200b", "[", "]", "x" * 30, "; ", ", ",
]  # fmt: skip


@hypothesis(max_examples=300)
@given(
    st.lists(st.sampled_from(PIECES), min_size=200, max_size=500).map("".join),
    st.lists(st.integers(0, 2_000), max_size=20),
)
def test_parts_hide_together_what_the_whole_hides(text: str, borders: list[int]) -> None:
    assert "".join(hide_parts(text, borders)) == Publication(HIDDEN).publish(text)


@pytest.mark.parametrize(
    "link", ["b.org@", "b@", "bo.org at ", "bo.org (at) ", "@b.org at ", "b+@"]
)
@pytest.mark.parametrize("size", [7, 50, 401])
def test_a_row_of_addresses_is_cut_anywhere(link: str, size: int) -> None:
    text = link * 300
    parts = "".join(hide_parts(text, range(0, len(text), size)))
    assert parts == Publication(HIDDEN).publish(text)


@pytest.mark.parametrize("size", [1, 7, 40, 64, 65, 300])
def test_parts_of_a_key_hide_what_the_whole_hides(size: int) -> None:
    data = base64.b64encode(hashlib.shake_256(b"key").digest(1_501)).decode()
    lines = "\n".join(data[at : at + 64] for at in range(0, len(data), 64))
    text = f"My key follows.\n\nVersion: 1\n\n{lines}\n=Qh7d\n\nThat was it.\n"
    parts = "".join(hide_parts(text, range(0, len(text), size)))
    whole = Publication(HIDDEN).publish(text)
    assert MASK in whole
    assert all(part in (MASK, one) for part, one in zip(parts, whole, strict=True))


def hide_parts(text: str, borders: Iterable[int]) -> Iterator[str]:
    """Yield the parts of a text between some borders, as they may be seen."""
    for start, end in pairwise(sorted({0, *borders, len(text)} & {*range(len(text) + 1)})):
        yield Publication(HIDDEN).publish_part(text, start, end)


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


def test_no_key_that_is_pasted_is_anywhere(world: World) -> None:
    body = f"My whale key:\n\n{HEAD}\n\n{armour()}\n{TAIL}\n\nWrite to me about whales."
    answer = mail("b", body, subject="whale", references="<a@example.org>")
    world.archive("2024-03", mail("a", body, subject="whale"), answer)
    world.chain(last="words")
    world.threads()
    id = "a@example.org"
    paths = [f"/{page}/{id}" for page in ("message", "thread", "message.json", "thread.json")]
    paths += [f"/thread.atom/{id}", f"/thread.mbox.gz/{id}", f"/message.mbox/{id}"]
    query = "q=whale&mode=fulltext"
    paths += [f"/search{kind}?{query}" for kind in ("", ".json", ".atom", ".mbox.gz")]
    with serving_world(world) as client:
        responses = [client.get(path) for path in paths]
        responses.append(ask_tool(client, "get_message", message_id=id))
        responses.append(ask_tool(client, "semantic_search", query="whale mode:fulltext"))
        for response in responses:
            text = read_response(response)
            assert response.status_code == 200
            assert not [line for line in armour().split("\n") if line in text], response.url
            assert "whale" in text
        document = client.get(f"/message.json/{id}").json()
        assert len(document["body_text"].rstrip("\n")) == len(body)


@pytest.mark.parametrize("line", ["harbor.example about it.", "harbor.example " + "x" * 800])
def test_no_part_of_an_address_is_where_a_thread_cuts_a_text(world: World, line: str) -> None:
    whole = "A line about whales that is whole.\n" * ((POST_CHARACTERS - 60) // 35)
    world.archive("2024-03", mail("a", f"{whole}Write to anna.moor@\n{line}\n{whole}"))
    world.chain(last="messages")
    world.threads()
    with serving_world(world) as client:
        [post] = client.get("/thread.json/a@example.org").json()["posts"]
        pages = [client.get("/thread/a@example.org").text, post["body_text"]]
    assert len(whole) <= len(post["body_text"]) <= POST_CHARACTERS < post["characters"]
    assert post["body_text"].endswith("\n")
    assert max(end for _, end, _ in post["segments"]) == len(post["body_text"])
    for text in pages:
        assert "that is whole" in text
        assert "anna.moor" not in text


def test_nobody_makes_an_address_readable_in_the_mail_of_others(world: World) -> None:
    anna, carl, id = "anna.moor@harbor.example", "carl.moor@harbor.example", "b1@example.org"
    body = f"whale To: {anna}, {carl}; see <{id}>"
    world.archive(
        "2024-03",
        mail("a", body, subject=f"whale {anna} {carl}"),
        mail("b1", references="<a@example.org>"),
        mail("c", headers=f"In-Reply-To: <{anna}>"),
        mail("d", references=f"<{anna}>"),
        mail("e", sender=carl),
        mail("f").replace(b"<f@example.org>", f"<{carl}>".encode()),
    )
    world.chain(last="words")
    world.threads()
    paths = [f"/{page}/a@example.org" for page in ("message", "message.json", "thread.json")]
    paths += ["/message.mbox/a@example.org", "/thread.atom/a@example.org"]
    with serving_world(world) as client:
        for path in paths:
            text = html.unescape(read_response(client.get(path)))
            assert "anna.moor" not in text, path
            assert "carl.moor" not in text, path
            assert f"<{id}>" in text or f">{id}</a>" in text, path
