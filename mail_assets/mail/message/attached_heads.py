"""The lines above the text of an attached message: who wrote it, when, and about what."""

from mail_assets.mail.message.headers import Headers, decode_field

MAX_FIELD = 500  # characters

_FIELDS = (("From", "from"), ("Date", "date"), ("Subject", "subject"))


def format_head(headers: Headers, usual: str = "") -> str:
    """Author, date and subject of a message, a line each, and a blank line; "" without any.

    `usual` is the charset of its list.
    """
    lines = [
        f"{label}: {value[:MAX_FIELD]}\n"
        for label, field in _FIELDS
        if (value := decode_field(headers, field, usual))
    ]
    return "".join([*lines, "\n"]) if lines else ""
