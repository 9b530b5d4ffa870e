"""Parse a raw message into a Message, or raise UnreadableMessageError with the reason.

Separate modules read the fields and the content: headers, addresses, dates, ids, mime, body and
content_hash. This module finds the author and the list. A list server puts its own address into
From if the author's domain forbids others to send in its name (DMARC, RFC 7489). Gateways do so
too:

    Jo via Dev <dev@lists.example.org>               Mailman (translated), Google Groups, Topicbox
    Jo via groups.io <jo=example.com@groups.io>      groups.io; the IETF writes `=40` for the `@`
    "Jo" (via Dev Mailing List) <dev@example.org>    Sympa, where the words are optional
    "Jo" (jo@example.com) <dev@example.org>          Sympa with another setting
    "Dev" (on behalf of Jo) <dev@example.org>        Sympa with another setting
    "Jo jo@example.com [dev]" <dev@yahoogroups.com>  Yahoo Groups
    Jo <0000012ab34c-dmarc-request@example.org>      LISTSERV
    Jo via GitHub <git@example.org>                  gateways of trackers

List-Id (RFC 2919) or older fields name the list. The archive may belong to another list.
"""

import binascii
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from itertools import accumulate, chain, compress, pairwise, takewhile
from typing import NamedTuple

from mail_assets.errors import DamagedDataError
from mail_assets.mail.archive.mbox import MAX_MESSAGE, RawMessage, check_dialect
from mail_assets.mail.message import ids, mime
from mail_assets.mail.message.addresses import (
    MAX_ADDRESSES,
    MAX_CACHED,
    Address,
    find_charset,
    parse_addresses,
)
from mail_assets.mail.message.body import MAX_BODY, find_attachments, select_body
from mail_assets.mail.message.content_hash import hash_content
from mail_assets.mail.message.dates import (
    decide_arrival,
    decide_sent_at,
    month_bounds,
    read_hops,
    read_received,
)
from mail_assets.mail.message.decoding import compose, decode, find_codec
from mail_assets.mail.message.headers import (
    Headers,
    decode_field,
    decode_fields,
    decode_subject,
    first_value,
    parse_header_block,
    unfold,
)
from mail_assets.mail.message.message import AttachedText, Attachment, Message
from mail_assets.mail.message.subjects import MAX_SUBJECT, base_subject
from mail_assets.text.untrusted import clean_line, clean_name

#: Raise it when the same bytes would give different rows.
PARSER_VERSION = "20"


#: Pipermail's words for a missing From and a missing Subject.
_NO_SENDER, _NO_SUBJECT = "bogus@does.not.exist.com", "No subject"


class UnreadableMessageError(DamagedDataError):
    """The bytes give no message; `reason` is stored in the quarantine."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def parse_message(message: RawMessage, *, month: str, dialect: str, charset: str = "") -> Message:
    """Return the message of one archive entry.

    `month` is the month of the archive, as `YYYY-MM`. `charset` is the usual charset of the list,
    for mail that names none.

    Raises:
        UnreadableMessageError: the bytes give no message.
        ValueError: the month is not `YYYY-MM`, or the dialect is unknown.
    """
    month_bounds(month)
    check_dialect(dialect)
    if not message.raw.lstrip(b"\0 \t\r\n\v\f"):
        raise UnreadableMessageError("the message is empty")
    if (size := len(message.raw)) > MAX_MESSAGE:
        raise UnreadableMessageError(f"the message has {size} bytes, more than {MAX_MESSAGE}")
    try:
        return _parse(message, month, dialect, charset)
    except Exception as error:  # one bad message must not fail the month
        raise UnreadableMessageError(f"{type(error).__name__}: {error}") from error


def _parse(message: RawMessage, month: str, dialect: str, usual: str = "") -> Message:
    tree = mime.parse_mime(message.raw)
    headers = tree.headers
    if not usual and dialect == "pipermail":
        usual = find_charset(
            unfold(first_value(headers, "from")).decode("ascii", "surrogateescape")
        )
    body = select_body(tree, usual)
    attachments = find_attachments(tree.parts, body.used)

    named = next((part.charset for part in tree.parts if part.charset), "")
    if find_codec(named) in (None, "utf-8"):
        named = tree.declared
    charset = named or usual
    mailboxes = partial(parse_addresses, fallback=charset, obfuscated=dialect == "pipermail")
    people = {
        name: mailboxes(headers[name]) if name in headers else ()
        for name in ("reply-to", "to", "cc")
    }
    authors = mailboxes(headers.get("from", ()))
    sender = authors[0] if authors else Address("", "")
    # Pipermail split a mail at a line of its text that begins with "From "
    is_rest = dialect == "pipermail" and sender.email == _NO_SENDER
    if is_rest:
        sender = Address("", "")
    list_id = find_list_id(headers)
    enclosed = (
        parse_header_block(part.source, part.start, part.end)[0].get("from", ())
        for part in tree.parts
        if part.type == "message/rfc822"
    )
    writer = find_author(
        sender, headers, people, list_id, chain.from_iterable(map(mailboxes, enclosed))
    )
    if "\ufffd" in writer.name:  # the list lost letters of the name; Reply-To may have it whole
        whole = (x.name for x in people["reply-to"] if x.email == writer.email)
        name = next((name for name in whole if name and "\ufffd" not in name), writer.name)
        writer = writer._replace(name=name)

    hops = read_hops(headers.get("received", ()))
    topmost = next(hops, None)
    from_line = message.from_line.decode("latin-1")
    dates = decode_fields(headers, "date")
    sent = decide_sent_at(dates, chain((topmost,), hops), from_line, month)

    whole_subject = decode_subject(headers, charset)
    subject = clean_line(compose(whole_subject[:MAX_SUBJECT]))[:MAX_SUBJECT]
    if dialect == "pipermail" and subject == _NO_SUBJECT:
        subject = ""
    text, attached = _compose_body(body.text, body.attached)
    if cut := len(text) > MAX_BODY:  # NFC writes some letters as two or three
        text = text[:MAX_BODY]
        attached = tuple(one for one in attached if one.text_start <= MAX_BODY)
    addresses = {one.email for one in (*authors, *people["to"], *people["cc"])}
    parents = decode_fields(headers, "in-reply-to"), decode_fields(headers, "references")
    in_reply_to, references = ids.parse_parents(*parents, addresses)
    message_id = ids.parse_message_id(decode_fields(headers, "message-id"))
    content = hash_content(tree, body, parents, dialect)

    flags = tree.flags | _raised(
        addresses_capped=max(map(len, people.values())) > MAX_ADDRESSES,
        author_uncertain=writer.uncertain,
        charset_guessed=body.guessed or _is_guessed(headers, named, dialect),
        date_repaired=sent.repaired,
        encrypted=body.text.lstrip().startswith("-----BEGIN PGP MESSAGE-----"),
        generated_id=message_id is None,
        headers_capped=len(whole_subject) > MAX_SUBJECT,
        munged_from=writer.munged,
        no_text=not body.text and _has_content(tree),
        references_capped=len(references) == ids.MAX_REFERENCES,
        suspicious=message.suspicious or is_rest,
        text_capped=body.capped or attachments.capped or cut,
        truncated=message.truncated,
    )
    return Message(
        message_id=message_id or _generate_id(tree, sent.raw),
        content_hash=content.whole,
        subject=subject,
        subject_base=base_subject(subject),
        from_name=clean_name(compose(writer.name)),
        from_email=clean_line(writer.email),
        reply_to=_compose_people(people["reply-to"][:MAX_ADDRESSES]),
        to=_compose_people(people["to"][:MAX_ADDRESSES]),
        cc=_compose_people(people["cc"][:MAX_ADDRESSES]),
        sent_at=sent.at,
        date_source=sent.source,
        date_raw=sent.raw,
        arrival=decide_arrival(topmost, from_line, dialect),
        received=read_received(topmost),
        in_reply_to=in_reply_to,
        references=references,
        list_id=list_id,
        body_text=text,
        attached_texts=attached,
        body_kind=body.kind,
        attachments=_compose_names(attachments.found),
        patch_texts=tuple(compose(one.text) for one in attachments.patches),
        flags=tuple(sorted(flags)),
        content_outline=content.outline,
    )


def _compose_people(people: tuple[Address, ...]) -> tuple[Address, ...]:
    if not people or all(
        one.name.isascii() and (one.name + one.email).isprintable() for one in people
    ):
        return people
    return tuple(Address(clean_name(compose(name)), clean_line(email)) for name, email in people)


def _compose_names(attachments: tuple[Attachment, ...]) -> tuple[Attachment, ...]:
    # macOS decomposes file names
    if not attachments or all(one.name.isascii() for one in attachments):
        return attachments
    return tuple(replace(one, name=compose(one.name)) for one in attachments)


def _compose_body(
    text: str, attached: tuple[AttachedText, ...]
) -> tuple[str, tuple[AttachedText, ...]]:
    """Return the body in NFC, and the offsets of the attached messages in it."""
    if not attached or text.isascii():
        return compose(text), attached
    # an attached message begins on a new line, so nothing composes across these offsets
    places = sorted({0, len(text), *(place for one in attached for place in one)})
    pieces = [compose(text[start:end]) for start, end in pairwise(places)]
    moved = dict(zip(places, accumulate(map(len, pieces), initial=0), strict=True))
    return "".join(pieces), tuple(AttachedText(*map(moved.__getitem__, one)) for one in attached)


def _is_guessed(headers: Headers, named: str, dialect: str) -> bool:
    """Return whether the charset of Subject or From was guessed; pipermail's From is skipped."""
    fields = ("subject",) if dialect == "pipermail" else ("subject", "from")
    raw = [value for name in fields for value in headers.get(name, ()) if not value.isascii()]
    return bool(raw) and any(decode(value, fallback=named).guessed for value in raw)


def _generate_id(tree: mime.MimeTree, date_raw: str) -> str:
    """Return an id made from the message as sent, independent of a list's settings and of NFC."""
    named = next((part.charset for part in tree.parts if part.charset), "")
    subject = decode_subject(tree.headers, named)[:MAX_SUBJECT]
    text = select_body(tree).own_text.strip()
    return ids.generate_message_id(decode_field(tree.headers, "from"), date_raw, subject, text)


def _has_content(tree: mime.MimeTree) -> bool:
    return any(
        not part.source[part.start : part.end].isspace()
        for part in tree.parts
        if part.end > part.start
    )


def _raised(**flags: bool) -> set[str]:
    return set(compress(flags, flags.values()))


# --- the list ---

MAX_LIST_ID = 255  # characters (RFC 2919 section 3)

_IN_BRACKETS = re.compile(r"<([^<>]+)>")
_OWNER = re.compile(r"^owner-|-(?:owner|bounces|admin|request)(?=[+=@])[^@]*+(?=@)")
# Fields with the list's address, by RFC 2369; vger; ezmlm, Yahoo and Google Groups; Mailman 2
_ADDRESS_FIELDS = ("list-post", "x-mailing-list", "mailing-list", "x-beenthere")
_ORIGINAL = ("x-original-from", "original-from")
_ADDRESS = re.compile(rb"(?<![\w.+=-])[\w.+=-]{1,64}+@[\w.-]{1,255}+")


def find_list_id(headers: Headers) -> str:
    """Return `name.domain` in lower case, or "" if the message names no list.

    Sources in this order: List-Id, the address in X-Mailing-List, the list's owner in Sender.
    """
    named = decode_field(headers, "list-id")
    if named:
        inside = _IN_BRACKETS.search(named)
        words = (inside[1] if inside else named).strip("<> ").split()
        name = "".join(words) if inside else next((x for x in words[::-1] if "." in x), named)
        return name.lower().replace("@", ".", 1)[:MAX_LIST_ID]
    for name in ("x-mailing-list", "sender"):
        for address in parse_addresses(headers.get(name, ())):
            is_list = name == "x-mailing-list" or _OWNER.search(address.email)
            if is_list and "@" in address.email:
                return _as_list_id(address.email)
    return ""


def _find_list_addresses(headers: Headers, list_id: str) -> frozenset[str]:
    """Return the list's own addresses, each as `name.domain`, the form of a List-Id."""
    values = _values(headers, *_ADDRESS_FIELDS)
    own = _read_list_addresses(b" ".join(values)[:MAX_CACHED]) if values else frozenset()
    return own | {list_id} if list_id else own


def _is_list_address(email: str, own: frozenset[str]) -> bool:
    return email.replace("@", ".", 1) in own


@lru_cache(maxsize=256)  # all mail of a list has the same value
def _read_list_addresses(value: bytes) -> frozenset[str]:
    found = (x.decode("ascii").lower() for x in _ADDRESS.findall(value))
    return frozenset(_as_list_id(x.replace("-help@", "@")) for x in found)  # ezmlm's contact


def _as_list_id(email: str) -> str:
    return _OWNER.sub("", email).replace("@", ".", 1)[:MAX_LIST_ID]


# --- the author ---

_VIA = re.compile(r"(?<!\s)\s++\(?via\s++\S")
# "via" in es, pl, eo, eu and ja by Mailman's catalogues; counts only if From has a list's address
_FOREIGN_VIA = re.compile(
    r"(?<!\s)\s++(?:(?:vía|przez|tra)\s++\S"
    r"|\([^()]{1,100}+(?<= 経由)\)|,\s[^\s,]{1,100}+(?<=-en)\sbidez)"
)
# Sympa may put the author's name or address into a comment, and the list's name before it
_COMMENT = re.compile(r"\(([^()]{1,500})\)")
_BEHALF = re.compile(r"(?:on behalf of|au nom de|im Auftrag von|en nombre de)\s+(.{1,255})", re.I)
_IN_WORDS = re.compile(r"[\w.!#$%&'*+/=?^`{|}~-]{1,64}@(?:[\w-]{1,63}\.)+[\w-]{2,63}")
_LISTSERV = re.compile(r"[0-9a-f]{6,64}+-dmarc-request@")
_DOMAIN = re.compile(r"(?:[a-z0-9-]{1,63}+\.){1,10}+[a-z0-9-]{2,63}+\Z")
_WORD = re.compile(r"\w+")
MAX_SUFFIX = 3  # letters of `co` in example.co.uk; an organization's name there is longer
MIN_STEM = 4  # minimum letters that a word of a list's name shares with its address

People = Mapping[str, tuple[Address, ...]]


class Author(NamedTuple):
    """Author of a message."""

    name: str
    email: str
    munged: bool = False  # a list server or a gateway had rewritten From
    # the author's address is unknown; email is that of From, or "" if that is the list's own
    uncertain: bool = False


def find_author(
    sender: Address, headers: Headers, people: People, list_id: str, enclosed: Iterable[Address]
) -> Author:
    """Return the author of a message; `sender` is the address in From.

    `people` has the addresses of `reply-to`, `to` and `cc`. `enclosed` has the addresses in From of
    enclosed messages, because Mailman can wrap a whole mail. The address of a list belongs to no
    person. Anybody can write such fields and names, so another address than that of From is taken
    only if From has a host of the list's organization.
    """
    own = _find_list_addresses(headers, list_id)
    is_near = _is_near(sender.email, {list_id} if list_id else own)
    is_hidden = "-dmarc-request@" in sender.email and bool(_LISTSERV.match(sender.email))
    is_own = is_near and (is_hidden or _is_list_address(sender.email, own))
    for original in parse_addresses(_values(headers, *_ORIGINAL)) if is_own else ():
        if original.email != sender.email and _is_personal(original.email, own):
            return Author(original.name or _without_via(sender.name, False), original.email, True)
    name = _without_via(sender.name, is_own)
    # next to a list's address, comments in From are not names
    comments = _COMMENT.findall(decode_field(headers, "from")[:MAX_CACHED]) if is_own else ()
    for behalf in filter(None, map(_BEHALF.match, comments)):
        name = "" if "@" in behalf[1] else behalf[1].strip()
    is_munged = is_hidden or name != sender.name
    if is_near and (decoded := _decode_address(sender.email, own, is_munged)):
        return Author(name, decoded, True)
    if is_own and (person := _find_named_first(sender, (*people["reply-to"], *people["cc"]), own)):
        return Author(*person, True)
    if not is_munged and (not is_own or _is_name_of_list(sender, own)):
        return Author(*sender)
    known = [*people["reply-to"], *people["cc"], *people["to"], *enclosed]
    for email in (
        *_stated_addresses(sender, headers),
        *(email.lower() for comment in comments for email in _IN_WORDS.findall(comment)),
        *_addresses_under(name, known, people["to"]),
        *(_only_reply(people, own) if is_munged or is_own else ()),
    ):
        if is_near and email != sender.email and _is_personal(email, own):
            return Author(name, email, True)
    is_own = is_own or any(sender.email == x.email for x in (*people["to"], *people["cc"]))
    return Author(name, "" if is_own else sender.email, is_munged, True)


def _is_near(email: str, own: Iterable[str]) -> bool:
    """Return whether the host of an address belongs to the organization of a list."""
    labels = email.rpartition("@")[2].split(".")
    has_suffix = len(labels) > 2 and len(labels[-1]) == 2 and len(labels[-2]) <= MAX_SUFFIX
    domain = ".".join(labels[-3:] if has_suffix else labels[-2:])
    return any(one.endswith(f".{domain}") for one in own)


def _values(headers: Headers, *names: str) -> Sequence[bytes]:
    if headers.keys().isdisjoint(names):  # nearly all mail
        return ()
    return [value for name in names for value in headers.get(name, ())]


def _is_personal(email: str, own: frozenset[str]) -> bool:
    return "@" in email and not _is_list_address(email, own)


def _without_via(name: str, is_own: bool) -> str:
    """Return the name before `via Dev` and similar words.

    If From has a list's own address, an address ends the name too: Yahoo Groups put the author's
    there.
    """
    short = name
    found = _VIA.search(name) if "via" in name else None
    if found := found or (_FOREIGN_VIA.search(name) if is_own else None):
        short = name[: found.start()]
        if short.count("(") > short.count(")"):  # `Jo (@jo via GitHub)`
            short = short[: short.rfind("(")]
    if is_own and "@" in short:
        short = " ".join(takewhile(lambda word: "@" not in word, short.split()))
    # Mailman writes `jo---` for jo@example.org without a name
    return name if short == name else short.strip("'\" ").removesuffix("---")


def _decode_address(email: str, own: frozenset[str], is_munged: bool) -> str:
    """Return the address inside the local part of another address, or "" without one.

    Any address may contain `=`, so `jo=example.com@groups.io` counts only if the host is the
    list's. `=40` always counts: ordinary addresses do not contain it.
    """
    local, _, host = email.rpartition("@")
    if "=" not in local or "bounce" in local:
        return ""
    person, found, domain = local.rpartition("=40")
    if found and _DOMAIN.match(domain):
        return f"{binascii.a2b_qp(person.encode()).decode('ascii', 'replace')}@{domain}"
    person, _, domain = local.rpartition("=")
    is_from_list = is_munged or any(x.endswith(f".{host}") for x in own)
    if is_from_list and person and "=" not in person and _DOMAIN.match(domain):
        return f"{person}@{domain}"
    return ""


def _is_name_of_list(sender: Address, own: frozenset[str]) -> bool:
    """Return whether a list posts for itself: with no name, or with a word of its address."""
    words = _WORD.findall(sender.name.casefold())
    parts = set(_WORD.findall(" ".join([sender.email, *own])))
    return not words or any(
        word in parts
        or any(
            min(len(word), len(part)) >= MIN_STEM and word[:MIN_STEM] == part[:MIN_STEM]
            for part in parts
        )
        for word in words
    )


def _find_named_first(
    sender: Address, known: Iterable[Address], own: frozenset[str]
) -> Address | None:
    """Return the person whose name begins the name of a list's address: `Jo Roe über Dev`."""
    name = f"{sender.name.casefold()} "
    for one in known:
        named = bool(one.name) and name.startswith(f"{one.name.casefold()} ")
        if (
            named
            and _is_personal(one.email, own)
            and not _is_name_of_list(Address(one.name, sender.email), own)
        ):
            return one
    return None


def _stated_addresses(sender: Address, headers: Headers) -> Iterator[str]:
    """Yield addresses in the name (Yahoo Groups, Sympa) or in fields (Google Groups, RFC 9057)."""
    for word in sender.name.split():
        if "@" in word:
            yield word.strip("<>()[],;'\"").lower()
    for stated in parse_addresses(_values(headers, "x-original-sender", "author")):
        yield stated.email


def _addresses_under(
    name: str, known: Iterable[Address], recipients: Iterable[Address]
) -> Iterator[str]:
    """Yield addresses known under a name, except those of a recipient with another name."""
    folded = name.casefold()

    def is_same(one: Address) -> bool:
        return one.name.casefold() == folded if one.name else one.email.startswith(f"{folded}@")

    strangers = {x.email for x in recipients if not is_same(x)}
    return (x.email for x in known if folded and is_same(x) and x.email not in strangers)


def _only_reply(people: People, own: frozenset[str]) -> Iterator[str]:
    recipients = {x.email for x in people["to"]}
    replies = {x.email for x in people["reply-to"] if _is_personal(x.email, own)} - recipients
    return iter(replies if len(replies) == 1 else ())
