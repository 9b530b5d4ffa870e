"""Hash the content of a message so that copies agree, and find copies that lost letters.

Within one archive the content is hashed with few changes. Copies in archives of different kinds are
compared by their text: see `TextIdentity`.

Archives render a message in different ways: line ends, folding, added fields, another charset or
transfer encoding. Pipermail keeps only From, Date, Subject, the ids and the text, and rewrites
addresses. Therefore the hash covers the content that all archives keep, in a common form: the
author's address, decoded fields and decoded text.
"""

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from mail_assets.mail.message import mime
from mail_assets.mail.message.addresses import AT_MARKS, parse_addresses
from mail_assets.mail.message.body import Body
from mail_assets.mail.message.headers import Headers, decode_fields, decode_value
from mail_assets.mail.message.ids import find_ids
from mail_assets.mail.message.message import Message, Part, TextIdentity
from mail_assets.mail.message.part_text import decode_part_text

MAX_RENDERINGS = 20  # versions of one message that are compared with each other

_HASHED = {name: b"%s:%%s\n" % name.encode() for name in ("date", "subject", "message-id")}
_IDS = ("in-reply-to", "references")
Parents = Sequence[Sequence[str]]  # decoded values of In-Reply-To, and of References

# Charsets that decode ASCII bytes without escapes to ASCII.
_ASCII_SUPERSETS = frozenset({"", "us-ascii", "ascii", "utf-8", "iso-8859-1", "iso-8859-15"})
# mbox writers add this ">" to a line of the body, and readers do not always remove it.
_ESCAPED_FROM = re.compile(rb"^>(?=From )", re.M)
# pipermail's notice of a removed attachment, and the fields below it
_SCRUBBED = re.compile(
    rb"^An? [^\n]{1,60} was scrubbed\.\.\.\n(?:[A-Z][A-Za-z]{2,6} ?:[^\n]*\n(?:[ \t][^\n]*\n)*)++",
    re.M,
)
_NAMED = re.compile(rb"^(?:Name|Desc):[^\n]*\n(?:[ \t][^\n]*\n)*", re.M)
_LINK = re.compile(rb"^(?:Url|URL) ?:[^\n]*/attachments/(\d{8}/[0-9a-f]+)/[^\n]*", re.M)
_UNSURE = re.compile(rb"[?\x80-\xff]+")
_UNSURE_TO_MARKS = bytes(range(0x80)) + b"?" * 0x80
_LOST = re.compile(rb"\?\?+")
# an address that pipermail hid: "jo at example.org", in the languages with an ASCII word for `@`
_AT_WORDS = [m for m in AT_MARKS if m.isascii() and m.strip() and m == f" {m.strip()} "]
_HIDDEN_AT = re.compile(rb"(?<=[\w.+-])(?:%s)(?=[\w-]{1,63}\.[\w-])" % "|".join(_AT_WORDS).encode())


class ContentHashes(NamedTuple):
    """Hashes of the content of a message: the whole in hex, and its outline.

    An outline has one `?` for each run of letters that pipermail can lose. It is empty in other
    dialects. Only messages with equal outlines and different contents can be lossy copies of each
    other.
    """

    whole: str
    outline: bytes


def hash_content(tree: mime.MimeTree, body: Body, parents: Parents, dialect: str) -> ContentHashes:
    """Return the SHA-256 of the content of a message, equal for every faithful copy of it.

    Covered: the address of From, Date, Subject, Message-ID, In-Reply-To, References and the text.

    Ignored: names, recipients, header folding, the charset and transfer encoding of a text, line
    ends, blank lines at the end, the From_ line, the escape of lines that look like one, and fields
    that relays and list servers add.

    A message of several parts is hashed by its raw bytes. Pipermail renders its mail again from
    time to time, so of the address of a scrubbed attachment only its date and hash count. `body` is
    the result of `select_body`.
    """
    content = _content(tree, body, parents, dialect)
    outline = _outline(content) if dialect == "pipermail" else b""
    return ContentHashes(hashlib.sha256(content).hexdigest(), outline)


def find_lossy_copies(raws: Iterable[bytes], dialect: str) -> frozenset[str]:
    """Return the content hashes of messages that differ from another one by what pipermail loses.

    Old pipermail wrote one or more `?` for every non-ASCII character, and hid addresses. Copies
    with any other difference are different messages, for example `what?` and `what??`.
    """
    seen: defaultdict[bytes, dict[tuple[bytes, ...], _Rendering]] = defaultdict(dict)
    lossy: set[str] = set()
    for raw in raws:
        content = _read_content(raw, dialect)
        own = _Rendering(hashlib.sha256(content).hexdigest(), len(_HIDDEN_AT.findall(content)))
        renderings = seen[_outline(content)]
        letters = tuple(_UNSURE.findall(_HIDDEN_AT.sub(b"@", content)))
        if same := renderings.get(letters):
            if own.hidden != same.hidden:
                best, worst = sorted((own, same), key=lambda one: one.hidden)
                lossy.add(worst.hash)
                renderings[letters] = best
            continue
        if len(renderings) == MAX_RENDERINGS:
            continue
        for others, other in renderings.items():
            if _lost(letters, others):
                lossy.add(own.hash)
            elif _lost(others, letters):
                lossy.add(other.hash)
        renderings[letters] = own
    return frozenset(lossy)


class _Rendering(NamedTuple):
    hash: str  # of the content
    hidden: int  # addresses


def _outline(content: bytes) -> bytes:
    shown = _HIDDEN_AT.sub(b"@", content)
    return hashlib.sha256(_LOST.sub(b"?", shown.translate(_UNSURE_TO_MARKS))).digest()


def _read_content(raw: bytes, dialect: str) -> bytes:
    tree = mime.parse_mime(raw)
    return _content(tree, None, [decode_fields(tree.headers, name) for name in _IDS], dialect)


def _content(tree: mime.MimeTree, read: Body | None, parents: Parents, dialect: str) -> bytes:
    body = _body(tree, read)
    if b">From" in body:
        body = _ESCAPED_FROM.sub(b"", body)
    if dialect == "pipermail" and b" was scrubbed..." in body:
        body = _SCRUBBED.sub(_scrubbed, body.rstrip() + b"\n")
    return b"%s\n%s" % (_fields(tree.headers, parents, dialect), body.rstrip())


def _body(tree: mime.MimeTree, read: Body | None) -> bytes:
    """Return the decoded text of a message with one text part, else the raw body with its type."""
    body = tree.source[tree.body_start :]
    if len(tree.parts) == 1 and tree.parts[0].source is tree.source and not tree.parts[0].message:
        part = tree.parts[0]
        if part.type == "text/plain":
            if _is_plain(part, body):
                return body
            if read and not (part.flowed or read.capped or read.guessed or not read.text):
                return read.text.encode("utf-8", "replace")  # decoded already
            return _decoded(part, body)
        return b"%s\n%s" % (part.type.encode("utf-8", "replace"), body.replace(b"\r\n", b"\n"))
    kinds = b"".join(b"%s\n" % _squeezed(value) for value in tree.headers.get("content-type", ()))
    return kinds + body.replace(b"\r\n", b"\n")


def _is_plain(part: Part, body: bytes) -> bool:  # decoding would change nothing
    return (
        body.isascii()
        and part.encoding not in ("base64", "quoted-printable")
        and part.charset.lower() in _ASCII_SUPERSETS
        and b"\r" not in body
        and b"\x1b" not in body
        and b"\0" not in body
    )


def _decoded(part: Part, body: bytes) -> bytes:
    text, capped, _ = decode_part_text(part._replace(flowed=False))
    return body if capped else text.encode("utf-8", "replace")


def _fields(headers: Headers, parents: Parents, dialect: str) -> bytes:
    """Return the address of From, decoded values (plain ones as they are), and bare ids."""
    authors = parse_addresses(headers.get("from", ()), obfuscated=dialect == "pipermail")
    address = authors[0].email if authors else ""
    lines = [b"from:%s\n" % address.encode("utf-8", "replace")]
    for name, line in _HASHED.items():
        lines += [line % _squeezed(value) for value in headers.get(name, ())]
    for name, values in zip(_IDS, parents, strict=True):
        ids = [one for value in values for one in find_ids(value)]
        lines.append(f"{name}:{' '.join(ids)}\n".encode("utf-8", "replace"))
    return b"".join(lines)


def _squeezed(value: bytes) -> bytes:
    squeezed = b" ".join(value.split())
    if b"=?" not in squeezed and squeezed.isascii() and squeezed.decode("ascii").isprintable():
        return squeezed
    return " ".join(decode_value(value).split()).encode()


def _scrubbed(notice: re.Match[bytes]) -> bytes:
    return _LINK.sub(rb"URL:\1", _NAMED.sub(b"", notice[0]))


def _lost(ours: tuple[bytes, ...], theirs: tuple[bytes, ...]) -> bool:
    """Return whether `ours` has question marks wherever it differs from `theirs`.

    Each lost character has at least one, and at most one per byte; UTF-8 has the most bytes.
    """
    return all(
        our == their
        or (not our.strip(b"?") and len(their.decode("utf-8", "ignore")) <= len(our) <= len(their))
        for our, their in zip(ours, theirs, strict=True)
    )


# --- one text in several archives ---

#: Maximum characters and lines of a notice that a list adds below "-- ".
_NOTICE_SIZE, _NOTICE_LINES = 300, 5
_NOTICE = re.compile(r"\bmailing list\b|/listinfo\b|\bunsubscribe\b", re.I)
#: Links, addresses and names of lists; and list phrases that contain a word such as "stop" or
#: "ignore". Such a word alone could revoke a mail, so it is not in `_OWN_WORDS`.
_NOTICE_NAME = re.compile(
    r"""(?x) <?(?:https?|ftp|mailto)://?\S+ | www\.\S+ | [^\s@]{1,64}@\S+
    | \S{1,64}\ at\ [\w-]{1,64}(?:\.[\w-]{1,64})+
    | ^(?:sent\ via\ )?(?:the\ )?[\w.+-]{2,60}(?=\ (?:mailing[ -]?list|mailingliste)\b)
    | google\ groups\ "[^"]{1,60}"
    | (?:un)?subscribe\ [\w.+-]{2,60}(?="?\ in$)
    | stop\ receiving | don't\ 'kill | don't\ forget\ to | the\ planner\ will\ ignore
    | datatypes\ do\ not"""
)
#: A line of pipermail's note on an attached file.
_SCRUB_LINE = re.compile(r"an? .{1,60} was scrubbed\.\.\.$|(?:name|type|size|desc|url) ?: ")
_NOTICE_WORD = re.compile(r"[^\W\d_]+")
#: Words of notices by lists: their names, how to leave them, and tips of the PostgreSQL lists.
_OWN_WORDS = """
    a all also an analyze and appropriate archive archives are as at attachment available be
    because been below body broadcast by bytes can change changes checked choose cleanly click
    column command commands datatypes desc description desire digest discussion display do edit
    email emails end explain extensive faq for forum found free friend from general get go
    google group groups had have help here home html http https if in increase index info
    information instructions is it its join joining leave line lines link list listinfo listproc
    lists listserv mail mailing mailinglist mailingliste mailinglists mailman majordomo make
    manage map match member message messages more my next nomail non of off on once online only
    options or our owner page part password please post posting postmaster posts preferences re
    read reading receive received receiving reply request s scan scrubbed searched see send sent
    set settings site so sourceforge space subject subscribe subscribed subscriber subscribers
    subscribing subscription subscriptions text that the this thread through tip to topic
    unavailable unregister unsub unsubscribe unsubscribed unsubscribing url use usenet using
    versions via view visit web website with word write www yahoo you your youremailaddresshere
    """
_NOTICE_WORDS = frozenset(_OWN_WORDS.split())
_TO_BLANKS = bytes.maketrans(b"\t\n\v\f\r\x1c\x1d\x1e\x1f", b" " * 9)
_BLANKS = re.compile(rb"  +")
_NO_BREAK = "\N{NO-BREAK SPACE}"


def identify_text(message: Message, parts: Sequence[str], dialect: str) -> TextIdentity:
    """Return the identity of a message; `parts` are the pieces of its body without footers.

    Pipermail keeps no attachments. If it wrote `?` for letters, only the outline is known. If it
    kept no text, nothing is known.
    """
    sent = message.sent_at if message.date_source == "date" else message.date_raw
    text = _cut_notice("".join(parts))
    text = text.replace("\n>From ", "\nFrom ").replace("(a)", "@").replace(" at ", "@")
    # servers fold long subjects again, which adds blanks
    whole = f"{sent}\n{''.join(message.subject_base.casefold().split())}\n{text}"
    if whole.isascii():
        squeezed = _squeeze(whole.encode())
        plain = outline = _digest(squeezed)
        if b"??" in squeezed:
            outline = _digest(_LOST.sub(b"?", squeezed))
    else:
        # archives can lose a no-break blank like a letter
        spaced, lost = whole.replace(_NO_BREAK, " "), whole.replace(_NO_BREAK, "?")
        plain = _digest(_squeeze(spaced.encode("utf-8", "replace")))
        outline = _digest(_LOST.sub(b"?", _squeeze(lost.encode("ascii", "replace"))))
    if dialect != "pipermail":
        names = sorted(one.sha256 for one in message.attachments)
        return TextIdentity(
            plain, outline, _digest(" ".join(names).encode()) if names else _NO_FILES
        )
    if not text.strip():
        return TextIdentity(None, None, None)
    return TextIdentity(None if "?" in text and text.isascii() else plain, outline, None)


def _cut_notice(text: str) -> str:
    """Return a text without the notice that the list added at the end, below a "-- " line."""
    above, mark, notice = text.rpartition("\n-- \n")
    is_short = len(notice) <= _NOTICE_SIZE and notice.strip().count("\n") < _NOTICE_LINES
    is_notice = mark and is_short and _NOTICE.search(notice) and not drop_notices(notice)
    return above if is_notice else text


def drop_notices(footer: str, dialect: str = "") -> str:
    """Return the lines of a footer that are more than notices of a list or an archive.

    Anybody can write their own words in the place of a list's footer.
    """
    own = (line for line in footer.split("\n") if not _is_notice(line, dialect == "pipermail"))
    return "\n".join(own)


@lru_cache(maxsize=4096)
def _is_notice(line: str, scrubs: bool) -> bool:
    plain = " ".join(line.lower().split())
    if scrubs and _SCRUB_LINE.match(plain):
        return True
    return _NOTICE_WORDS.issuperset(_NOTICE_WORD.findall(_NOTICE_NAME.sub(" ", plain)))


def _squeeze(data: bytes) -> bytes:
    """Return a text with each run of blanks as one blank, faster than by splitting."""
    return _BLANKS.sub(b" ", data.translate(_TO_BLANKS)).strip(b" ")


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=16).digest()


_NO_FILES = _digest(b"")
