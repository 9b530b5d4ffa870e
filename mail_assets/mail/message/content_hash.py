"""Hash the content of a message so that faithful copies agree, and find copies that lost letters.

Archives render a message differently: line ends, folding, added fields. None of it counts here.
"""

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterable

from mail_assets.mail.message import mime
from mail_assets.mail.message.encoded_words import decode_value
from mail_assets.mail.message.headers import Headers

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
    body = raw[tree.body_start :]
    if b"\r" in body:  # found at 20 GB/s, a pair at 1.5
        body = body.replace(b"\r\n", b"\n")
    body = body.rstrip(b"\n")
    if dialect == "pipermail":
        body = _SCRUBBED.sub(_scrubbed, body + b"\n").rstrip(b"\n")
    return b"%s\n%s" % (_fields(tree.headers), body)


def _fields(headers: Headers) -> bytes:
    """The fields that are hashed, decoded, with one space for any white space.

    What has nothing to decode is not, which is known by a look at all of them at once: decoding
    all took a twelfth of the parser's time, a look at each an eighth of what is left.
    """
    named = [(name, value) for key, name in _HASHED.items() for value in headers.get(key, ())]
    fields = b"".join([b"%s:%s\n" % (name, b" ".join(value.split())) for name, value in named])
    if fields.isascii() and b"=?" not in fields and _is_printable(fields):
        return fields
    return b"".join([b"%s:%s\n" % (name, _squeezed(value)) for name, value in named])


def _is_printable(lines: bytes) -> bool:
    return lines.replace(b"\n", b"").decode("ascii").isprintable()


def _squeezed(value: bytes) -> bytes:
    """A value, decoded, with one space for any white space."""
    return " ".join(decode_value(value).split()).encode()


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
