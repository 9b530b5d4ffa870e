"""Parse a raw message: any bytes give a Message, or an UnreadableMessageError with the reason.

A module of its own reads each field: headers, addresses, authors, dates, ids, mime, body,
attachments and content_hash.
"""

from dataclasses import replace
from functools import partial
from itertools import accumulate, chain, compress, pairwise

from mail_assets.errors import DamagedDataError
from mail_assets.mail.archive.dialects import check_dialect
from mail_assets.mail.archive.mbox import MAX_MESSAGE, RawMessage
from mail_assets.mail.message import ids, mime
from mail_assets.mail.message.addresses import MAX_ADDRESSES, Address, find_charset, parse_addresses
from mail_assets.mail.message.attachments import find_attachments
from mail_assets.mail.message.authors import find_author, find_list_id
from mail_assets.mail.message.body import MAX_BODY, select_body
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
    first_value,
    parse_header_block,
    unfold,
)
from mail_assets.mail.message.message import Message
from mail_assets.mail.message.part import AttachedText, Attachment
from mail_assets.mail.message.subjects import MAX_SUBJECT, base_subject
from mail_assets.text.untrusted import clean_line, clean_name

#: Raise it when rows would come out differently from the same bytes.
PARSER_VERSION = "14"


class UnreadableMessageError(DamagedDataError):
    """Bytes give no message; `reason` says why, for the quarantine."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def parse_message(message: RawMessage, *, month: str, dialect: str, charset: str = "") -> Message:
    """Return the message of one archive entry; `month` is the archive's, as `YYYY-MM`.

    `charset` is the usual charset of the list, for mail that names none.

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
    list_id = find_list_id(headers)
    enclosed = (
        parse_header_block(part.source, part.start, part.end)[0].get("from", ())
        for part in tree.parts
        if part.type == "message/rfc822"
    )
    writer = find_author(
        sender, headers, people, list_id, chain.from_iterable(map(mailboxes, enclosed))
    )

    hops = read_hops(headers.get("received", ()))
    topmost = next(hops, None)
    from_line = message.from_line.decode("latin-1")
    dates = decode_fields(headers, "date")
    sent = decide_sent_at(dates, chain((topmost,), hops), from_line, month)

    whole_subject = decode_field(headers, "subject", charset)
    subject = clean_line(compose(whole_subject[:MAX_SUBJECT]))[:MAX_SUBJECT]
    text, attached = _compose_body(body.text, body.attached)
    if cut := len(text) > MAX_BODY:  # some letters are written as two or three in NFC
        text = text[:MAX_BODY]
        attached = tuple(one for one in attached if one.text_start <= MAX_BODY)
    addresses = {one.email for one in (*authors, *people["to"], *people["cc"])}
    parents = decode_fields(headers, "in-reply-to"), decode_fields(headers, "references")
    in_reply_to, references = ids.parse_parents(*parents, addresses)
    message_id = ids.parse_message_id(decode_fields(headers, "message-id"))

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
        suspicious=message.suspicious,
        text_capped=body.capped or attachments.capped or cut,
        truncated=message.truncated,
    )
    return Message(
        message_id=message_id or _generate_id(tree, sent.raw),
        content_hash=hash_content(tree, body, parents, dialect),
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
    """Return the body in NFC, and the places of the attached messages in it."""
    if not attached or text.isascii():
        return compose(text), attached
    # an attached message begins on a line of its own, so nothing composes across these places
    places = sorted({0, len(text), *(place for one in attached for place in one)})
    pieces = [compose(text[start:end]) for start, end in pairwise(places)]
    moved = dict(zip(places, accumulate(map(len, pieces), initial=0), strict=True))
    return "".join(pieces), tuple(AttachedText(*map(moved.__getitem__, one)) for one in attached)


def _is_guessed(headers: Headers, named: str, dialect: str) -> bool:
    """Return whether the charset of Subject or From was guessed, except for pipermail's mark."""
    fields = ("subject",) if dialect == "pipermail" else ("subject", "from")
    raw = [value for name in fields for value in headers.get(name, ()) if not value.isascii()]
    return bool(raw) and any(decode(value, fallback=named).guessed for value in raw)


def _generate_id(tree: mime.MimeTree, date_raw: str) -> str:
    """Return an id from the message as sent, independent of a list's settings and of NFC."""
    named = next((part.charset for part in tree.parts if part.charset), "")
    subject = decode_field(tree.headers, "subject", named)[:MAX_SUBJECT]
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
