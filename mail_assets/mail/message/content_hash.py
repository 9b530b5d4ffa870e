"""Hash the content of a message so that faithful copies agree, and find copies that lost letters.

Archives render a message differently: line ends, folding, added fields. None of it counts here.
"""

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterable

from mail_assets.mail.message import mime
from mail_assets.mail.message.encoded_words import decode_value

MAX_RENDERINGS = 20  # of one message that are compared with each other

_HASHED = {
    name: name.encode()
    for name in (
        "from",
        "to",
        "cc",
        "date",
        "subject",
        "message-id",
        "in-reply-to",
        "references",
        "content-type",
        "content-transfer-encoding",
    )
}
_CONTROL = re.compile(rb"[^\t\n\r -~]")
# pipermail's notice of an attachment that it took out, and the fields below it
_SCRUBBED = re.compile(
    rb"^An? [^\n]{1,60} was scrubbed\.\.\.\n(?:[A-Z][A-Za-z]{2,6} ?:[^\n]*\n(?:[ \t][^\n]*\n)*)++",
    re.M,
)
_NAMED = re.compile(rb"^(?:Name|Desc):[^\n]*\n(?:[ \t][^\n]*\n)*", re.M)
_LINK = re.compile(rb"^(?:Url|URL) ?:[^\n]*/attachments/(\d{8}/[0-9a-f]+)/[^\n]*", re.M)
_UNSURE = re.compile(rb"[?\x80-\xff]+")


def hash_content(raw: bytes, tree: mime.MimeTree, dialect: str) -> str:
    """Hex sha256 of the content of a message: the same for every faithful copy of it.

    Header folding, line ends, trailing blank lines, the From_ line and fields that relays and
    list servers add do not count; the fields of _HASHED and the body's bytes do. In an archive
    of pipermail, which renders its mail again from time to time, the name and description of a
    scrubbed attachment and all but date and hash of its address do not count either.
    """
    return hashlib.sha256(_content(raw, tree, dialect)).hexdigest()


def find_lossy_copies(raws: Iterable[bytes], dialect: str) -> frozenset[str]:
    """Content hashes of messages that equal another one but for `?` instead of letters.

    Old pipermail wrote one or more `?` for every character outside of ASCII. Copies that differ
    in anything else, `what?` from `what??` included, are different messages.
    """
    seen: defaultdict[bytes, dict[tuple[bytes, ...], str]] = defaultdict(dict)
    lossy: set[str] = set()
    for raw in raws:
        content = _content(raw, mime.parse_mime(raw), dialect)
        renderings = seen[_outline(content)]
        letters = tuple(_UNSURE.findall(content))
        if letters in renderings or len(renderings) == MAX_RENDERINGS:
            continue
        own = hashlib.sha256(content).hexdigest()
        for others, other in renderings.items():
            if _lost(letters, others):
                lossy.add(own)
            elif _lost(others, letters):
                lossy.add(other)
        renderings[letters] = own
    return frozenset(lossy)


def hash_outline(raw: bytes, dialect: str) -> bytes:
    """Sha256 of the content with one `?` for each run of letters that pipermail may have lost.

    Only messages with one outline and several contents can be lossy copies of each other.
    """
    return _outline(_content(raw, mime.parse_mime(raw), dialect))


def _outline(content: bytes) -> bytes:
    return hashlib.sha256(_UNSURE.sub(b"?", content)).digest()


def _content(raw: bytes, tree: mime.MimeTree, dialect: str) -> bytes:
    """The fields and the body that are hashed."""
    fields = b"".join(
        b"%s:%s\n" % (name, _squeezed(value))
        for key, name in _HASHED.items()
        for value in tree.headers.get(key, ())
    )
    body = raw[tree.body_start :].replace(b"\r\n", b"\n").rstrip(b"\n")
    if dialect == "pipermail":
        body = _SCRUBBED.sub(_scrubbed, body + b"\n").rstrip(b"\n")
    return fields + b"\n" + body


def _squeezed(value: bytes) -> bytes:
    """A field's value, decoded, with one space for any white space.

    What has nothing to decode is not: decoding all took a twelfth of the parser's time.
    """
    if b"=?" in value or _CONTROL.search(value):
        return " ".join(decode_value(value).split()).encode()
    return b" ".join(value.split())


def _scrubbed(notice: re.Match[bytes]) -> bytes:
    return _LINK.sub(rb"URL:\1", _NAMED.sub(b"", notice[0]))


def _lost(ours: tuple[bytes, ...], theirs: tuple[bytes, ...]) -> bool:
    """Tell whether ours has a question mark for each letter wherever it differs.

    One for each character or one for each byte of its charset, of which UTF-8 has the most.
    """
    return all(
        our == their
        or (not our.strip(b"?") and len(their.decode("utf-8", "ignore")) <= len(our) <= len(their))
        for our, their in zip(ours, theirs, strict=True)
    )
