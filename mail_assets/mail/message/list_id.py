"""Find the mailing list that a message names: by List-Id, or what lists wrote before RFC 2919.

The list whose archive holds the message may be another one; the pipeline knows it by the archive.
"""

import re
from functools import lru_cache

from mail_assets.mail.message.addresses import MAX_CACHED, parse_addresses
from mail_assets.mail.message.headers import Headers, decode_field

MAX_LIST_ID = 255  # characters (RFC 2919 section 3)

_IN_BRACKETS = re.compile(r"<([^<>]+)>")
_OWNER = re.compile(r"^owner-|-(?:owner|bounces|admin|request)(?=[+=@])[^@]*+(?=@)")
#: Fields with an address of the list: RFC 2369; vger; ezmlm, Yahoo and Google Groups; Mailman 2
_ADDRESS_FIELDS = ("list-post", "x-mailing-list", "mailing-list", "x-beenthere")
_ADDRESS = re.compile(rb"(?<![\w.+=-])[\w.+=-]{1,64}+@[\w.-]{1,255}+")


def find_list_id(headers: Headers) -> str:
    """`name.domain` in lower case, "" where the message names no list.

    List-Id, else the address in X-Mailing-List, else the list's owner in Sender.
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


def find_list_addresses(headers: Headers, list_id: str) -> frozenset[str]:
    """The addresses that are the list's own, each as `name.domain`, the form of a List-Id."""
    values = [value for name in _ADDRESS_FIELDS for value in headers.get(name, ())]
    own = _read_list_addresses(b" ".join(values)[:MAX_CACHED]) if values else frozenset()
    return own | {list_id} if list_id else own


def is_list_address(email: str, own: frozenset[str]) -> bool:
    """Tell whether an address is one of find_list_addresses."""
    return email.replace("@", ".", 1) in own


@lru_cache(maxsize=256)  # all mail of a list has the same
def _read_list_addresses(value: bytes) -> frozenset[str]:
    found = (x.decode("ascii").lower() for x in _ADDRESS.findall(value))
    return frozenset(_as_list_id(x.replace("-help@", "@")) for x in found)  # ezmlm's contact


def _as_list_id(email: str) -> str:
    """The address of a list, or of its owner, as a List-Id."""
    return _OWNER.sub("", email).replace("@", ".", 1)[:MAX_LIST_ID]
