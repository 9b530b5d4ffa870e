"""Look for mail addresses in all that strangers can see of an archive.

    MAIL_HOME=... python -m benchmarks.harvest [--messages 500]

The program serves MAIL_HOME with hidden addresses. It requests every page, feed, mailbox and tool
of a sample of messages, which are spread evenly over the archive; also searches by words and by
senders, lists and months, and pages that do not exist. It looks in all answers for the addresses of
header fields and of the sample's texts: as written, split by tags or invisible characters, encoded,
or disguised. Message-IDs remain readable and do not count, and neither does an address that the
request itself contains. It prints counts, and each place of an address.

The published texts of all messages are read too, for addresses of header fields. That reader
needs no list of disguises: it splits a text into words, ignores "at" and "dot", and finds an
address if its words follow each other closely and in order.
"""

import argparse
import gzip
import json
import os
import re
import socket
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import NamedTuple
from urllib.error import HTTPError
from urllib.parse import quote, unquote, unquote_plus, urlencode
from urllib.request import Request, urlopen

import psycopg

from mail_assets.settings.settings import load_settings
from mail_assets.web.privacy import Publication
from mail_assets_tests.web.readings import readings

LIMITS = ("READS", "SEARCHES", "EXPORTS", "ANSWERS")
#: Characters between two words of an address, at most.
NEAR = 12
_READ_WORD = re.compile(r"[^\W_]+")
#: Words for the signs of an address, and encodings of "@".
_SIGNS = frozenset({"at", "dot"})
_ENCODED = re.compile(r"%(?:25)*40|=40|&(?:amp;)?(?:#0*64|#x0*40|commat);|\\u0040|\\x40")
#: Between a local part and a domain, these make a host name or a path, not an address.
_NO_AT = frozenset({".", "/", "-", "_"})


class Reader:
    """Finder of known addresses in text, disguised or not."""

    def __init__(self, addresses: Iterable[str]) -> None:
        self._known: dict[str, list[tuple[int, tuple[str, ...]]]] = defaultdict(list)
        for address in addresses:
            local, _, domain = address.lower().rpartition("@")
            words = [word for word in _READ_WORD.findall(local) if word not in _SIGNS]
            whole = (*words, *_READ_WORD.findall(domain))
            if words:
                self._known[words[0]].append((len(words), whole))

    def find(self, text: str) -> Iterator[str]:
        """Yield each passage of a text that can be read as a known address."""
        lowered = _ENCODED.sub(lambda match: "@" * len(match.group()), text.lower())
        words = [word for word in _READ_WORD.finditer(lowered) if word.group() not in _SIGNS]
        if len(lowered) != len(text):
            text = lowered
        for at, word in enumerate(words):
            for local, known in self._known.get(word.group(), ()):
                found = words[at : at + len(known)]
                if tuple(one.group() for one in found) == known and _is_near(lowered, found, local):
                    yield text[word.start() : found[-1].end()]


def _is_near(text: str, words: list[re.Match[str]], local: int) -> bool:
    gaps = [text[one.end() : other.start()] for one, other in pairwise(words)]
    return all(len(gap) <= NEAR for gap in gaps) and gaps[local - 1] not in _NO_AT


#: An address; the tests check quoted local parts.
_ADDRESS = re.compile(r"[\w.!#$&'*+=?^`{|}~%/-]{1,250}@[\w-]+(?:\.[\w-]+)+")
_AT = re.compile(r"\s?[\[({<]{1,2}\s?at\s?[\])}>]{1,2}\s?|\sat\s|-at-|_at_|\s@\s?", re.IGNORECASE)
_DOT = re.compile(r"\s?[\[({<]\s?dot\s?[\])}>]\s?|\sdot\s", re.IGNORECASE)
_WORD = re.compile(r"[^\W\d_]{4,}")

FIELDS = """
select distinct a
  from messages, unnest(array[from_email, from_name, subject] || reply_to || recipients || cc) as a
 where a like '%@%'
"""
IDS = """
select message_id from messages union select unnest(refs || in_reply_to) from messages
"""
SPREAD = """
select message_id, subject, from_name, from_email, list, month, body_text,
       jsonb_array_length(attachments)
  from (select *, row_number() over (order by list, month, message_id) as number from messages) as m
 where number %% greatest(1, (select count(*) from messages) / %s) = 0
"""
TEXTS = """
select message_id, concat_ws(
         E'\\n', subject, from_name, body_text,
         (select string_agg(one ->> 'name', E'\\n') from jsonb_array_elements(attachments) as one)
       )
  from messages
"""


class Known(NamedTuple):
    """Addresses and Message-IDs of the archive, in lower case."""

    addresses: set[str]
    ids: set[str]


class Sample(NamedTuple):
    """A message that is requested in every form."""

    id: str
    subject: str
    name: str
    email: str
    list: str
    month: str
    text: str
    attachments: int


def main() -> None:
    """Crawl; print the number of requests and each place of an address."""
    parser = argparse.ArgumentParser(description="Look for addresses in what strangers see.")
    parser.add_argument("--messages", type=int, default=500, help="messages; default: 500")
    given = parser.parse_args()
    settings = load_settings(os.environ)
    with settings.database.connect("benchmark") as connection:
        samples = [Sample(*row) for row in connection.execute(SPREAD, (given.messages,))]
        known = find_known(connection, samples)
        read_all_texts(connection)
    os.environ["MAIL_WEB_ADDRESSES"] = "hidden"
    statuses: Counter[int] = Counter()
    told: dict[str, set[str]] = {}
    size = 0
    with serving() as port:
        for number, request in enumerate(list_requests(f"http://127.0.0.1:{port}", samples)):
            status, text = read(request)
            statuses[status] += 1
            size += len(text)
            asked = f"{unquote_plus(request.full_url)} {request.data!r}".lower()
            if found := {one for one in find_told(text, known) if one not in asked}:
                told[request.full_url] = found
                print(f"{request.full_url} {request.data or ''}: {sorted(found)}", flush=True)
            if number % 1_000 == 999:
                print(f"{number + 1} read", flush=True)
    print(f"{len(known.addresses)} addresses, {len(samples)} messages, {statuses.total()} requests")
    print(f"statuses {dict(statuses)}, {size / 1e6:.0f} MB; an address in {len(told)}")


@contextmanager
def serving() -> Iterator[int]:
    """Serve MAIL_HOME without limits by client; yield the port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environ = os.environ | {f"MAIL_WEB_{name}": "0" for name in LIMITS}
    command = [sys.executable, "-m", "mail_assets.cli", "serve", "--port", str(port)]
    with subprocess.Popen(command, env=environ) as process:
        try:
            while not _answers(port):
                assert process.poll() is None, "the server ended"
                time.sleep(0.2)
            yield port
        finally:
            process.terminate()


def _answers(port: int) -> bool:
    try:
        return _get(port, "/ready") == b"ready\n"
    except OSError:
        return False


def _get(port: int, path: str) -> bytes:
    with urlopen(f"http://127.0.0.1:{port}{path}") as response:
        return bytes(response.read())


def read_all_texts(connection: psycopg.Connection) -> None:
    """Print each place in the published texts where an address of a header field is readable."""
    reader = Reader(find_known(connection, []).addresses)
    messages, left = 0, 0
    with connection.transaction(), connection.cursor("texts") as cursor:
        for id, text in cursor.execute(TEXTS):
            messages += 1
            for found in reader.find(Publication().publish(text)):
                left += 1
                print(f"{id}: {found!r}", flush=True)
    print(f"texts of {messages} messages (all): an address of a header field in {left} places")


def find_known(connection: psycopg.Connection, samples: list[Sample]) -> Known:
    """Return the addresses of all header fields and of the samples' texts, and all Message-IDs."""
    fields = "\n".join(row[0] for row in connection.execute(FIELDS))
    texts = "\n".join(sample.text for sample in samples)
    found = {one.lower().strip(".'") for one in _ADDRESS.findall(f"{fields}\n{texts}")}
    ids = {row[0].lower() for row in connection.execute(IDS)}
    return Known(found - ids, ids)


def list_requests(site: str, samples: list[Sample]) -> Iterator[Request]:
    """Yield the requests of the crawl."""
    for page in (
        "/",
        "/lists",
        "/lists.json",
        "/openapi.json",
        "/nowhere",
        "/message/no@body.here",
    ):
        yield Request(site + page)
    for place in sorted({(sample.list, sample.month) for sample in samples}):
        path = "/".join(quote(one, safe="") for one in place)
        yield from (Request(f"{site}/lists{kind}/{path}") for kind in ("", ".json"))
    for sample in samples:
        id = quote(sample.id, safe="")
        for kind in ("message", "message.json", "message.mbox", "thread", "thread.json"):
            yield Request(f"{site}/{kind}/{id}")
        for kind in ("thread.atom", "thread.mbox.gz", "similar.json"):
            yield Request(f"{site}/{kind}/{id}")
        for number in range(1, sample.attachments + 1):
            yield Request(f"{site}/message/{id}/attachment/{number}")
        for tool in ("get_message", "get_thread"):
            yield ask_tool(site, tool, {"message_id": sample.id, "tokens": 8_000})
    for sample in samples[::5]:
        words = " ".join(_WORD.findall(sample.subject)[:6])
        asked = [f"{words} mode:fulltext", f'from:"{_clean(sample.name)}"', sample.email]
        asked += [f"from:{sample.email.partition('@')[0]}", f"from:{sample.email}"]
        for query in filter(str.strip, asked):
            for kind in ("", ".json", ".atom"):
                yield Request(f"{site}/search{kind}?{urlencode({'q': query})}")
            yield ask_tool(site, "semantic_search", {"query": query})
            yield ask_tool(site, "explain_search", {"query": query})


def ask_tool(site: str, name: str, arguments: dict[str, object]) -> Request:
    """Return a request that calls a tool of the Model Context Protocol."""
    params = {"name": name, "arguments": arguments}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    headers = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
    return Request(f"{site}/mcp", json.dumps(call).encode(), headers)


def read(request: Request) -> tuple[int, str]:
    """Return the status of a response, and its header fields and body as text."""
    try:
        response = urlopen(request)
    except HTTPError as error:
        response = error
    body = response.read()
    if body.startswith(b"\x1f\x8b"):
        body = gzip.decompress(body)
    return response.status, f"{response.headers}\n{body.decode('utf-8', 'replace')}"


def find_told(text: str, known: Known) -> set[str]:
    """Return the known addresses in all readings of a text; ends of Message-IDs do not count."""
    told: set[str] = set()
    for one in {*readings(text)}:
        plain = _DOT.sub(".", _AT.sub("@", one)) if "at" in one else one
        for address in {*_ADDRESS.findall(f"{one}\n{plain}")}:
            endings = {*_endings(address.lower())}
            decoded = {*_endings(unquote(address.lower()))}
            if not (endings | decoded) & known.ids:
                told |= endings & known.addresses
    return told


def _endings(address: str) -> Iterator[str]:
    """Yield an address, and its endings after each sign before the @."""
    for start in [0, *(match.end() for match in re.finditer(r"[^\w]", address.partition("@")[0]))]:
        yield address[start:].rstrip(".'-")


def _clean(name: str) -> str:
    return " ".join(name.replace('"', " ").split()[:3])


if __name__ == "__main__":
    main()
