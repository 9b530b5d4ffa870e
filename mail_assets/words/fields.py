"""What a search of words can filter by."""

from collections.abc import Mapping
from typing import NamedTuple

from mail_assets.vectors.filters import FieldType, Filter, check_filter


class Fields(NamedTuple):
    """The fields of an index and their types, as `check_filter` takes them."""

    name: str
    fields: Mapping[str, FieldType]


#: `month` is a number, 202405; `flags` holds several values, and matches where one of them does.
FIELDS = Fields(
    "words",
    {
        "list": "string",
        "month": "number",
        "sent_at": "number",
        "sender": "string",
        "message_id": "string",
        "flags": "string",
    },
)


def check_word_filter(where: Filter) -> None:
    """Refuse a filter that does not fit an index of words.

    Raises:
        FilterError: where and what is allowed.
    """
    check_filter(where, FIELDS)
