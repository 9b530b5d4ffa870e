"""Find the mailing list that a message names: by List-Id, or what lists wrote before RFC 2919.

The list whose archive holds the message may be another one; the pipeline knows it by the archive.
"""

import re

from mail_assets.mail.message.addresses import parse_addresses
from mail_assets.mail.message.headers import Headers, decode_field

MAX_LIST_ID = 255  # characters (RFC 2919 section 3)

_IN_BRACKETS = re.compile(r"<([^<>\s]+)>")
_OWNER = re.compile(r"^owner-|-(owner|bounces|admin|request)\b")
_LIST_AT = re.compile(r"(?:owner-)?([\w.+-]+?)(?:-(?:owner|bounces|admin|request)(?:[+=][^@]*)?)?@")


def find_list_id(headers: Headers) -> str:
    """`name.domain` in lower case, "" where the message names no list.

    List-Id, else the address in X-Mailing-List, else the list's owner in Sender.
    """
    named = decode_field(headers, "list-id")
    if named:
        inside = _IN_BRACKETS.search(named)
        return (inside[1] if inside else named).lower()[:MAX_LIST_ID]
    for name in ("x-mailing-list", "sender"):
        for address in parse_addresses(headers.get(name, ())):
            is_list = name == "x-mailing-list" or _OWNER.search(address.email)
            if is_list and "@" in address.email:
                return _LIST_AT.sub(r"\1.", address.email, count=1)[:MAX_LIST_ID]
    return ""
