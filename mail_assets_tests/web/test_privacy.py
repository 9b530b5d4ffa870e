"""Addresses and encoded data are masked on all pages, in JSON and in passages of hits."""

import base64
import binascii
import hashlib
import html
import re
import textwrap
from collections.abc import Iterable, Iterator
from itertools import count, pairwise
from typing import Any
from urllib.parse import unquote

import httpx
import psycopg
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis
from hypothesis import strategies as st

from mail_assets.mail.message.text_addresses import MASK
from mail_assets.web.documents import POST_CHARACTERS, Documents
from mail_assets.web.fields import FIELDS
from mail_assets.web.privacy import (
    HIDDEN,
    SHOWN,
    Hidden,
    Publication,
    is_encoded,
    mask_encoded,
    say_hidden,
)
from mail_assets.web.requests import page_url
from mail_assets.web.searchers import SearchService
from mail_assets_tests.sample_corpus import QUERY, Corpus
from mail_assets_tests.web.conftest import fill, open_service, serving_world
from mail_assets_tests.web.readings import ask_tool, read_response
from mail_assets_tests.world import World, mail

#: Bytes with an address in the middle, as in a public key.
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
def test_base64_is_masked_without_its_margins(width: int, margin: str) -> None:
    before, after = "My key:\n\n", "\n\nYours,\nAnn"
    lines = textwrap.indent(armour(width), margin)
    text = before + lines + after
    assert mask_encoded(text) == before + blacken(lines) + after
    assert mask_encoded(text.replace("\n", "\r\n")) == mask_encoded(text).replace("\n", "\r\n")


def test_key_in_a_patch_is_masked() -> None:
    patch = textwrap.indent(f"{HEAD}\n\n{armour()}\n{TAIL}\n", "+")
    masked = mask_encoded(patch)
    assert len(masked) == len(patch)
    assert masked.count(MASK) >= len(armour()) - armour().count("\n")
    assert HEAD in masked


def test_base64_is_masked_in_a_cut_text() -> None:
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
def test_long_plain_text_is_unchanged(text: str) -> None:
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
def test_text_is_encoded_if_it_has_a_key_or_mostly_data(text: str, encoded: bool) -> None:
    assert is_encoded(text) == encoded


#: Parts of an address that occur nowhere else.
PARTS = ("ingrid", "wagner", "corp", "example")
#: A mail forwarded by Outlook: all recipients are on one line, which is longer than a chunk.
FORWARDED = "whale\nTo: " + "; ".join(f"ingrid{n}.wagner{n}@corp{n}.example" for n in range(90))
BROKEN = "whale " + "The fox is quick. " * 12 + "Write to ingrid.wagner@\ncorp.example now.\n"


@pytest.fixture
def built(world: World) -> World:
    fill(world, mail("a", FORWARDED), mail("b", BROKEN * 12))
    world.chain(last="chunks")
    return world


@pytest.fixture
def service(built: World) -> Iterator[SearchService]:
    with open_service(built.settings()) as service:
        yield service


def passages(service: SearchService, addresses: str) -> list[str]:
    query = {"q": "whale corp example wagner", "mode": "fulltext"}
    hits = Documents(service, Publication(addresses)).search(query)["hits"]
    assert len(hits) == 2
    return [chunk["text"] for hit in hits for chunk in hit["chunks"]]


def test_passages_have_no_part_of_an_address(service: SearchService) -> None:
    texts = passages(service, HIDDEN)
    assert len(texts) > 3
    assert not [text for text in texts if any(part in text for part in PARTS)]
    assert any("fox" in text for text in texts)


def test_passages_are_unchanged_if_addresses_are_shown(service: SearchService) -> None:
    assert any("wagner" in text for text in passages(service, SHOWN))


def chunks_cut_at(connection: psycopg.Connection, size: int) -> list[dict[str, Any]]:
    """Cut all messages into chunks of `size` characters; return them as passages of hits."""
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
def test_passages_hide_the_same_as_their_message(
    built: World, service: SearchService, size: int
) -> None:
    with built.connect() as connection:
        chunks = chunks_cut_at(connection, size)
        bodies = connection.execute("select body_text from messages").fetchall()
    Documents(service, Publication()).hide_cut_addresses([{"chunks": chunks}])
    shown = "".join(chunk["text"] for chunk in chunks)
    assert shown == "".join(Publication().publish(body) for (body,) in bodies)


def test_passage_is_masked_if_its_message_was_replaced(
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


#: "URL of an archive" -> whether its id is shown, though no message here has it.
MAIL_URLS = {
    "https://lore.kernel.org/all/20240304.17-1-jo.roe@example.org/": True,
    "https://lore.kernel.org/r/20240304.17-1-jo.roe@example.org": True,
    "http://lkml.kernel.org/r/87sf9u3k2x.fsf@meer.example": True,
    "https://patch.msgid.link/20240304-pump-v2-1-ab12@example.org": True,
    "https://www.postgresql.org/message-id/flat/CA12345678%40mail.example.org": True,
    "https://marc.info/?i=20240304120000.12@example.org": True,
    "https://inbox.example.org/git/xmqq12345678.fsf@gitster.g/": True,
    "https://lore.kernel.org/all/jo.roe@example.org/": False,
    "https://elsewhere.example/r/20240304.17-1-jo@example.org": False,
    "https://20240304.1@lore.kernel.org/all/": False,
}


@pytest.mark.parametrize(("url", "is_shown"), MAIL_URLS.items(), ids=MAIL_URLS)
def test_id_in_the_url_of_an_archive_is_no_address(url: str, is_shown: bool) -> None:
    published = Publication().publish(f"See {url} of jo.roe@example.org.")
    assert (url in published) == is_shown
    assert published.endswith(f" of {MASK * len('jo.roe@example.org')}.")


def test_unknown_key_is_masked() -> None:
    seen = Publication(HIDDEN).publish(DOCUMENT)
    assert seen == {
        "message_id": "id1@example.org",
        "from_name": "\u2022" * 15,
        "new_field": [{"deep": [f"by {chr(0x2022) * 15}", 3, None]}],
    }


#: Keys of ids of messages, which look like addresses.
ID_KEYS = {
    name.rpartition(".")[2]
    for name, about in FIELDS.items()
    if re.match(r"(?:the )?ids? ", about) and " commit" not in about
}


@pytest.mark.parametrize("key", sorted(ID_KEYS))
def test_id_of_a_message_is_no_address(key: str) -> None:
    document = {key: "id1@example.org", "by": "ann@example.org"}
    assert Publication(HIDDEN).publish(document)[key] == "id1@example.org"


def test_senders_that_mask_alike_are_counted_together() -> None:
    senders = {"ann@example.org": 2, "Bo": 1, "bob@example.org": 3}
    seen = Publication(HIDDEN).publish({"senders": senders})
    assert seen == {"senders": {MASK * 15: 5, "Bo": 1}}


def test_nothing_is_masked_if_addresses_are_shown() -> None:
    assert Publication(SHOWN).publish(DOCUMENT) is DOCUMENT


HEAD_LINES = "---\ndiff --git a/x b/x\n--- a/x\n+++ b/x\n"
HUNK = "@@ -1,2 +1,3 @@ f\n one\n+{0}\n two\n"


@pytest.mark.parametrize(
    ("text", "addresses", "patch_altered"),
    [
        ("no address", 0, False),
        ("by jo@example.org and ann@example.org", 2, False),
        (f"by jo@example.org\n{HEAD_LINES}{HUNK.format('x')}", 1, False),
        (HEAD_LINES + HUNK.format("jo@example.org"), 1, True),
        (HEAD_LINES + HUNK.format("x") + HUNK.format("jo (at) example.org"), 1, True),
        (HEAD_LINES.replace("x", "jo@example.org") + HUNK.format("x"), 4, True),
        (HEAD_LINES + HUNK.format("x") + "-- \njo@example.org", 1, False),
        ("> " + HUNK.format("jo@example.org").replace("\n", "\n> "), 1, False),
        (HUNK.format(f"{MASK} x"), 0, False),
    ],
)
def test_text_reports_its_hidden_parts(text: str, addresses: int, patch_altered: bool) -> None:
    shown: dict[str, Any] = Publication(HIDDEN).publish({"body_text": text})
    assert shown["addresses_hidden"] == addresses
    assert shown["patch_altered"] == patch_altered
    said = say_hidden(shown["body_text"], Hidden(addresses, patch_altered))
    assert ("it does not apply" in said) == patch_altered
    assert "addresses_hidden" not in Publication(SHOWN).publish({"body_text": text})


#: Pieces that make disguised addresses, and other text.
PIECES = [
    "jo", "a", "example.org", ".com", "@", "@@", " @ ", "@\n", " at ", "at", "(at)", "-at-", "%40",
    "=40", "&#64;", " dot ", "(dot)", "\n", "\n> ", " ", '"', "<", ">", ".", "-", "_", "1.2", "/",
    "\u200b", "[", "]", "x" * 30, "; ", ", ",
]  # fmt: skip


@hypothesis(max_examples=200)
@given(
    st.lists(st.sampled_from(PIECES), min_size=200, max_size=500).map("".join),
    st.lists(st.integers(0, 2_000), max_size=20),
)
def test_parts_hide_the_same_as_the_whole_text(text: str, borders: list[int]) -> None:
    assert "".join(hide_parts(text, borders)) == Publication(HIDDEN).publish(text)


@pytest.mark.parametrize(
    "link", ["b.org@", "b@", "bo.org at ", "bo.org (at) ", "@b.org at ", "b+@"]
)
@pytest.mark.parametrize("size", [7, 50, 401])
def test_parts_of_joined_addresses_hide_the_same(link: str, size: int) -> None:
    text = link * 300
    parts = "".join(hide_parts(text, range(0, len(text), size)))
    assert parts == Publication(HIDDEN).publish(text)


@pytest.mark.parametrize("size", [1, 7, 40, 64, 65, 300])
def test_parts_of_a_key_hide_the_same(size: int) -> None:
    data = base64.b64encode(hashlib.shake_256(b"key").digest(1_501)).decode()
    lines = "\n".join(data[at : at + 64] for at in range(0, len(data), 64))
    text = f"My key follows.\n\nVersion: 1\n\n{lines}\n=Qh7d\n\nThat was it.\n"
    parts = "".join(hide_parts(text, range(0, len(text), size)))
    whole = Publication(HIDDEN).publish(text)
    assert MASK in whole
    assert all(part in (MASK, one) for part, one in zip(parts, whole, strict=True))


def hide_parts(text: str, borders: Iterable[int]) -> Iterator[str]:
    """Yield the published parts of a text between some borders."""
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
    """Return a page in the readings of a harvester."""
    plain = html.unescape(text)
    return {one.lower() for one in (text, plain, unquote(plain), _TAGS.sub("", plain))}


def test_pages_and_json_have_no_address(public: httpx.Client, corpus: Corpus) -> None:
    addresses = read_addresses(corpus)
    assert len(addresses) > 10
    ids = read_ids(corpus)
    paths = ["/lists", *(page_url(page, id) for page in ("message", "thread") for id in ids)]
    queries = [QUERY, "signed-off-by", *sorted(addresses)[:5]]
    paths += [f"/search?q={one}&limit=50&group=message" for one in queries]
    for path in paths:
        for one in (path, re.sub(r"^/(\w+)", r"/\1.json", path)):
            response = public.get(one)
            # ids are shown, and the client's own text
            for text in spellings(response.text):
                for known in (*ids, *queries):
                    text = text.replace(known.lower(), "")
                assert not [address for address in addresses if address in text], one


def test_pasted_key_is_on_no_surface(world: World) -> None:
    body = f"My whale key:\n\n{HEAD}\n\n{armour()}\n{TAIL}\n\nWrite to me about whales."
    answer = mail("b", body, subject="whale", references="<a@example.org>")
    fill(world, mail("a", body, subject="whale"), answer)
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
def test_cut_text_of_a_thread_has_no_part_of_an_address(world: World, line: str) -> None:
    whole = "A line about whales that is whole.\n" * ((POST_CHARACTERS - 60) // 35)
    fill(world, mail("a", f"{whole}Write to anna.moor@\n{line}\n{whole}"), last="messages")
    with serving_world(world) as client:
        [post] = client.get("/thread.json/a@example.org").json()["posts"]
        pages = [client.get("/thread/a@example.org").text, post["body_text"]]
    assert len(whole) <= len(post["body_text"]) <= POST_CHARACTERS < post["characters"]
    assert post["body_text"].endswith("\n")
    assert max(end for _, end, _ in post["segments"]) == len(post["body_text"])
    for text in pages:
        assert "that is whole" in text
        assert "anna.moor" not in text


def test_hostile_message_ids_unmask_no_address(world: World) -> None:
    anna, carl, id = "anna.moor@harbor.example", "carl.moor@harbor.example", "b1@example.org"
    body = f"whale To: {anna}, {carl}; see <{id}>"
    fill(
        world,
        mail("a", body, subject=f"whale {anna} {carl}"),
        mail("b1", references="<a@example.org>"),
        mail("c", headers=f"In-Reply-To: <{anna}>"),
        mail("d", references=f"<{anna}>"),
        mail("e", sender=carl),
        mail("f").replace(b"<f@example.org>", f"<{carl}>".encode()),
    )
    paths = [f"/{page}/a@example.org" for page in ("message", "message.json", "thread.json")]
    paths += ["/message.mbox/a@example.org", "/thread.atom/a@example.org"]
    with serving_world(world) as client:
        for path in paths:
            text = html.unescape(read_response(client.get(path)))
            assert "anna.moor" not in text, path
            assert "carl.moor" not in text, path
            assert f"<{id}>" in text or f">{id}</a>" in text, path
