"""Parse server-sent events: bytes as they come, cut anywhere, to the data of each event.

https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation
Comments, which servers send to keep a connection alive, and other fields than `data` are passed
over. An event that the end of the stream cuts off is given all the same, where the standard drops
it: some servers leave the last empty line out, and what is really cut is no JSON.
"""

import codecs
import re
from collections.abc import Iterable, Iterator

_LINE_END = re.compile(r"\r\n|\r|\n")


def parse_events(pieces: Iterable[bytes]) -> Iterator[str]:
    """Yield the data of each event that has any."""
    data: list[str] = []
    for line in _lines(pieces):
        name, _, value = line.partition(":")
        if not line and data:
            yield "\n".join(data)
            data = []
        elif name == "data":
            data.append(value.removeprefix(" "))
    if data:
        yield "\n".join(data)


def _lines(pieces: Iterable[bytes]) -> Iterator[str]:
    decoder = codecs.getincrementaldecoder("utf-8-sig")("replace")
    rest = ""
    for piece in pieces:
        rest += decoder.decode(piece)
        # a \r at the end may be the first half of a \r\n
        whole = len(rest) - rest.endswith("\r")
        *lines, tail = _LINE_END.split(rest[:whole])
        yield from lines
        rest = tail + rest[whole:]
    yield from _LINE_END.split(rest + decoder.decode(b"", final=True))
