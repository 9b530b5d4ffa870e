"""Privacy: hides mail addresses in everything that is published, unless the operator shows them.

Every document passes through `Publication.publish`. Values of a new key are masked unless the key
is listed here as an id.

Encoded text is masked too. A public key contains the address of its owner in base64; signatures,
certificates and pasted files may do so too. They are not decoded, because they may be cut,
compressed or encoded twice.
"""

import hashlib
import hmac
import mimetypes
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from secrets import token_bytes
from typing import Any, NamedTuple, TypeVar

from mail_assets.mail.message.text_addresses import CONTEXT, MASK, mask_addresses
from mail_assets.search.language.request import Request
from mail_assets.tables.removals import KEY_BYTES, KeySource
from mail_assets.text.lookalikes import find_lookalikes

T = TypeVar("T")

#: Values of MAIL_WEB_ADDRESSES.
HIDDEN, SHOWN = "hidden", "shown"

#: Keys of addresses, and of counts by address.
_PRIVATE = frozenset({"from_email", "recipients", "cc", "reply_to", "authors"})
#: Keys that are not masked: ids, which look like addresses, URLs, spans, and the client's input.
_OPEN = frozenset(
    {
        "message_id", "thread_id", "parent_id", "parent_message_id", "in_reply_to", "references",
        "copies", "best", "others", "also", "patches", "key", "mentions", "url", "next", "previous",
        "pages", "mbox_url", "atom_url", "thread_url", "parent_url", "archive_url", "earlier_url",
        "later_url", "query", "query_id", "permalink", "parameters", "question", "message_ids",
        "series_id", "previous_id", "reason_id", "old_id", "new_id",
        "deciding_id", "other_versions", "best_version", "series_url", "list_url", "segments",
    }
)  # fmt: skip
#: Keys that report what was hidden in the text next to them; only if addresses are hidden.
_SAYS_HIDDEN = frozenset({"addresses_hidden", "patch_altered"})
#: Keys of counts by name; a name may be an address.
_KEYED_BY_NAMES = frozenset({"senders"})


#: Most bytes of an attachment that is masked; masking 1 MB of a patch takes about a second.
MAX_MASKED = 512 << 10
#: Types that are always refused: messages, multiparts, and keys, which contain addresses.
REFUSED = ("message/", "multipart/", "application/pgp-keys")
#: Types that are not text, unless they are XML.
_BINARY = (
    *("image/", "audio/", "video/", "font/", "application/pdf", "application/zip"),
    *("application/gzip", "application/x-gzip", "application/x-tar", "application/x-bzip2"),
    *(
        "application/x-xz",
        "application/x-7z",
        "application/zstd",
        "application/vnd.",
        "application/ms",
    ),
    *("application/pgp-signature", "application/pkcs7", "application/x-pkcs7"),
)

#: Letters of marks: easy to distinguish, and without vowels, so that they make no words.
_LETTERS = "bcdfghjkmnpqrstvwxz23456789"
#: Letters of a mark. The 500,000 possible marks distinguish the people of a thread, but identify
#: nobody.
MARK_LETTERS = 4


def mark_person(key: bytes, address: str) -> str:
    """Return the mark of an address, the same in all messages; "" without an address.

    Guessing the address of a mark needs the key, and many addresses have the same mark.
    """
    if not address:
        return ""
    digest = hmac.digest(key, f"sender {address.strip().lower()}".encode(), hashlib.sha256)
    number = int.from_bytes(digest[:8])
    letters = []
    for _ in range(MARK_LETTERS):
        number, at = divmod(number, len(_LETTERS))
        letters.append(_LETTERS[at])
    return "".join(letters)


def find_mark_key(source: KeySource) -> bytes:
    """Return the key of people's marks: its own key, or MAIL_FORGET_KEY.

    If no key can be stored, marks change when the server restarts.
    """
    if source.given or source.file is None:
        return source.read() or token_bytes(KEY_BYTES)
    own = replace(source, file=source.file.with_name("marks.key"), may_create=True)
    try:
        return own.read() or own.create()
    except OSError:  # a home that cannot be written
        return token_bytes(KEY_BYTES)


@dataclass(frozen=True)
class Publication:
    """Prepares documents for publication.

    `mark_key` is the key of people's marks. With `marks_all`, each document whose sender's address
    is removed gets the sender's `mark`.
    """

    addresses: str = HIDDEN
    mark_key: bytes = field(default=b"", repr=False)
    marks_all: bool = False

    @property
    def hides(self) -> bool:
        """True if addresses are hidden."""
        return self.addresses == HIDDEN

    @property
    def private_keys(self) -> frozenset[str]:
        """The keys that are removed from documents."""
        return _PRIVATE if self.hides else _SAYS_HIDDEN

    def publish(self, document: T, ids: Collection[str] = ()) -> T:
        """Return a document of plain values for publication, without its private keys.

        Addresses and encoded text are masked and keep their length. `ids` are known Message-IDs and
        stay readable. Each document with a text gets the number of addresses hidden in it.
        """
        key = self.mark_key if self.marks_all else b""
        published: T = _mask(document, ids, key) if self.hides else document
        return published

    def offers(self, name: str, media_type: str, size: int) -> bool:
        """Return whether an attachment gets a link."""
        return not self.hides or _may_be_text(media_type, size, name)

    def tell_namesakes(self, messages: Iterable[Any]) -> None:
        """Add `namesake` to unpublished messages, to distinguish senders with the same name.

        It is the mark, or the address if addresses are shown; empty for senders without namesakes.
        """
        some = [*messages]
        alike = find_lookalikes((one["from_name"], one["from_email"].lower()) for one in some)
        for one in some:
            person = one["from_email"] if one["from_name"] in alike else ""
            one["namesake"] = self.mark(person)

    def tell_people_apart(self, document: Any) -> None:
        """Add `namesake` to everybody whom an unpublished document names with an address."""
        self.tell_namesakes(_find_people(document))

    def mark(self, address: str) -> str:
        """Return what distinguishes a person: the mark, or the address if addresses are shown."""
        return mark_person(self.mark_key, address) if self.hides else address

    def restrict(self, request: Request) -> Request:
        """Return a request whose hits cannot confirm a guessed address."""
        return replace(request, names_only=True) if self.hides else request

    def publish_part(self, text: str, start: int, end: int) -> str:
        """Return a part of a text for publication, without addresses that its borders cut.

        CONTEXT characters around it are read, so that the same addresses are hidden as in the whole
        text.
        """
        if not self.hides:
            return text[start:end]
        first = max(0, start - CONTEXT)
        return _mask_text(text[first : end + CONTEXT], ())[start - first : end - first]

    def publish_sentence(self, text: str, around: tuple[str, str]) -> str:
        """Return a sentence for publication; `around` is the text before and after it."""
        before, after = around
        start = len(before)
        return self.publish_part(before + text + after, start, start + len(text))


def _find_people(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        if "from_name" in value and "from_email" in value:
            yield value
        value = [*value.values()]
    for inner in value if isinstance(value, list) else ():
        yield from _find_people(inner)


def _mask(value: Any, ids: Collection[str], key: bytes = b"") -> Any:
    match value:
        case str():
            return _mask_text(value, ids)
        case dict():
            document = {
                name: inner if name in _OPEN else _mask_under(name, inner, ids, key)
                for name, inner in value.items()
                if name not in _PRIVATE
            }
            if key and isinstance(address := value.get("from_email"), str):
                document["mark"] = mark_person(key, address)
            if isinstance(text := value.get("body_text"), str):
                hidden = find_hidden(text, document["body_text"])
                document |= {
                    "addresses_hidden": hidden.addresses,
                    "patch_altered": hidden.patch_altered,
                }
            return document
        case list() | tuple():
            return [_mask(inner, ids, key) for inner in value]
    return value


def _mask_under(name: str, value: Any, ids: Collection[str], key: bytes) -> Any:
    masked = _mask(value, ids, key)
    if name not in _KEYED_BY_NAMES:
        return masked
    counts: Counter[str] = Counter()
    for one, count in masked.items():  # different names may be equal after masking
        counts[_mask_text(one, ())] += count
    return dict(counts)


def _mask_text(text: str, ids: Collection[str]) -> str:
    masked = mask_addresses(mask_encoded(text), ids)
    if MASK not in masked or "://" not in text:
        return masked
    for url in _MAIL_URL.finditer(text):  # a masked text keeps its length
        start, end = url.span("id")
        masked = masked[:start] + text[start:end] + masked[end:]
    return masked


#: URLs of archives that contain a Message-ID. Unlike a person's address, an id has a digit among at
#: least eight characters before its "@". Such a URL is shorter than CONTEXT.
_MAIL_URL = re.compile(
    r"\bhttps?://(?:lore\.kernel\.org/[\w.-]{1,40}/|lkml\.kernel\.org/r/|(?:patch\.)?msgid\.link/"
    r"|(?:www\.)?postgresql\.org/message-id/(?:flat/|raw/)?|public-inbox\.org/[\w.-]{1,40}/"
    r"|inbox\.[\w.-]{1,40}/[\w.-]{1,40}/|patchwork\.[\w.-]{1,40}/project/[\w.-]{1,40}/patch/"
    r"|marc\.info/|mid\.gmane\.org/)"
    r"(?P<id>(?:\?i=)?(?=[^\s@\d]{0,99}\d)[^\s<>\"@/?#&]{8,200}(?:@|%40)[\w.\[\]:-]{1,80})",
    re.IGNORECASE,
)


class Hidden(NamedTuple):
    """The number of addresses that were hidden in a text, and whether a patch was altered."""

    addresses: int
    patch_altered: bool


#: A hunk of a unified diff, and the lines before its first one.
_HUNK = re.compile(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")
_FILE_LINES = ("diff ", "--- ", "+++ ", "Index: ", "rename ", "copy ")
_RUN = re.compile(f"{MASK}+")


def find_hidden(text: str, published: str) -> Hidden:
    """Compare a text with its published form."""
    if text == published:
        return Hidden(0, patch_altered=False)
    hidden = [one.start() for one in _RUN.finditer(published) if text[one.start()] != MASK]
    last = hidden[-1] if hidden else 0
    lines = find_patch_lines(text, last)
    altered = any(start <= one < end for start, end, _ in lines for one in hidden)
    return Hidden(len(hidden), altered)


def find_patch_lines(text: str, last: int | None = None) -> Iterator[tuple[int, int, int]]:
    """Yield the parts of patches in a text: start, end, and the end of the hunk's first line.

    A part is a hunk with the lines above it that name its file. Parts that begin after `last` are
    left out.
    """
    first = 0 if text.startswith("@@ -") else text.find("\n@@ -") + 1
    if not text.startswith("@@ -", first):
        return
    at = start = max(0, text.rfind("\n\n", 0, first))  # a blank line ends the lines above
    if last is not None and at > last:
        return
    begins, old, new, head = -1, 0, 0, 0
    for line in text[at:].split("\n"):
        end = min(len(text), at + len(line) + 1)
        if old > 0 or new > 0:
            sign = line[:1]
            old -= sign in ("-", " ", "")
            new -= sign in ("+", " ", "")
            if old <= 0 and new <= 0:
                yield start, end, head
        elif found := _HUNK.match(line):
            start, begins, head = (begins if begins >= 0 else at), -1, end
            old, new = (int(count or 1) for count in found.groups())
        elif line.startswith(_FILE_LINES):
            begins = at if begins < 0 else begins
        elif not line.strip():
            begins = -1
        at = end
    if old > 0 or new > 0:
        yield start, len(text), head


#: Notices in a text with hidden addresses. The second one makes programs refuse the patch.
NOTICE = "[{count} hidden in this text{patch}]\n"
HUNK_NOTICE = "[an address is hidden in this hunk: it does not apply]\n"


def say_hidden(published: str, hidden: Hidden) -> str:
    """Add a notice to a text with hidden addresses, and make each altered hunk invalid."""
    if not hidden.addresses:
        return published
    pieces, at = [], 0
    if hidden.patch_altered:
        for start, end, head in find_patch_lines(published):
            if MASK in published[start:end]:
                pieces += [published[at:head], HUNK_NOTICE]
                at = head
    count = "1 address is" if hidden.addresses == 1 else f"{hidden.addresses} addresses are"
    patch = ": its patch does not apply" if hidden.patch_altered else ""
    notice = NOTICE.format(count=count, patch=patch)
    return "".join([notice, "\n", *pieces, published[at:]])


#: Before the text of a line: blanks, quote marks and signs of a patch. After it: blanks.
_MARGIN, _END = r"[ \t>|+-]*+", r"[ \t\r]*+(?=\n|\Z)"
#: Lines of base64 have 64 characters (PGP, PEM) or 76 (MIME), and 20 capitals and digits among 60;
#: a path of a traceback has few, a hash no capitals.
_LONG = (
    r"(?=(?:[a-z\d+/]{0,59}[A-Z]){6})(?=(?:[A-Za-z/]{0,59}[\d+]){2})"
    rf"[A-Za-z\d+/]{{60,}}+={{0,2}}{_END}"
)
#: The lines after it, the last one shorter, and a checksum.
_MORE = rf"(?:\n{_MARGIN}[A-Za-z\d+/=]++{_END})*+"
#: The rest of a line at the beginning of a cut text.
_CUT = rf"\A[A-Za-z\d+/]++{_END}\n"
_BASE64 = rf"(?:{_CUT})?{_MARGIN}{_LONG}{_MORE}"
#: Lines of uuencode, after "begin" or the first line of 45 bytes.
_UU_LINES = rf"(?:\n{_MARGIN}[!-`][ -`]{{4,60}}{_END})++"
_UU = rf"{_MARGIN}(?P<uu>begin [0-7]{{3,4}} [^\n]++|M[ -`]{{60}}{_END}){_UU_LINES}"
_ENCODED = re.compile(rf"^(?:{_BASE64}|{_UU})", re.MULTILINE)
#: A line that each encoded text has; it begins with a character that a search finds fast.
_MAY_BE_ENCODED = re.compile(rf"\n{_MARGIN}(?:[A-Za-z\d+/]{{60}}|begin [0-7]|M[ -`]{{60}})")
_BASE64_SIGNS, _UU_SIGNS = re.compile(r"[A-Za-z\d+/=]+"), re.compile(r"\S+")
_KEY = re.compile(r"-----BEGIN PGP (?:PUBLIC|PRIVATE|SECRET) KEY BLOCK-----")


def mask_encoded(text: str) -> str:
    """Mask the encoded lines of a text and keep its length; takes time linear in the text."""
    return _ENCODED.sub(_blacken, text) if _MAY_BE_ENCODED.search(f"\n{text}") else text


def is_encoded(text: str) -> bool:
    """Return whether a text has a PGP key, or is more than half encoded."""
    encoded = sum(match.end() - match.start() for match in _ENCODED.finditer(text))
    return bool(_KEY.search(text)) or 2 * encoded > len(text)


def _blacken(match: re.Match[str]) -> str:
    signs = _UU_SIGNS if match["uu"] else _BASE64_SIGNS
    return signs.sub(lambda found: MASK * len(found.group()), match.group())


def _may_be_text(media_type: str, size: int, name: str) -> bool:
    """Return whether an attachment may be text, which is served even if addresses are hidden.

    The content decides, but what is certainly not text gets no link.
    """
    plain = media_type.lower()
    if plain == "application/octet-stream":
        plain = mimetypes.guess_type(name)[0] or plain
    is_binary = plain.startswith(_BINARY) and not plain.endswith(("+xml", "/mbox", "json"))
    return size <= MAX_MASKED and not plain.startswith(REFUSED) and not is_binary
