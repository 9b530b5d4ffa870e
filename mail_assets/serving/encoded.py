"""Mask what is encoded in a text of mail, where addresses stand that no reader of texts finds.

A public key holds the address of its owner in base64, and so do signatures, certificates and files
that are pasted. What they hold is not asked: it may be cut, compressed or encoded once more.
"""

import re

from mail_assets.serving.addresses import MASK

#: What stands before the text of a line, blanks, marks of quotes, those of a patch, and behind it.
_MARGIN, _END = r"[ \t>|+-]*+", r"[ \t\r]*+(?=\n|\Z)"
#: Lines of base64 have 64 characters (PGP, PEM) or 76 (MIME), and 20 capitals and digits among 60;
#: a path of a traceback has few, a hash no capitals.
_LONG = (
    r"(?=(?:[a-z\d+/]{0,59}[A-Z]){6})(?=(?:[A-Za-z/]{0,59}[\d+]){2})"
    rf"[A-Za-z\d+/]{{60,}}+={{0,2}}{_END}"
)
#: The lines behind it, of which the last is shorter, and a checksum.
_MORE = rf"(?:\n{_MARGIN}[A-Za-z\d+/=]++{_END})*+"
#: Of a text that was cut, the end of a line.
_CUT = rf"\A[A-Za-z\d+/]++{_END}\n"
_BASE64 = rf"(?:{_CUT})?{_MARGIN}{_LONG}{_MORE}"
#: Lines of uuencode, behind "begin" or the first of 45 bytes.
_UU_LINES = rf"(?:\n{_MARGIN}[!-`][ -`]{{4,60}}{_END})++"
_UU = rf"{_MARGIN}(?P<uu>begin [0-7]{{3,4}} [^\n]++|M[ -`]{{60}}{_END}){_UU_LINES}"
_ENCODED = re.compile(rf"^(?:{_BASE64}|{_UU})", re.MULTILINE)
_BASE64_SIGNS, _UU_SIGNS = re.compile(r"[A-Za-z\d+/=]+"), re.compile(r"\S+")
_KEY = re.compile(r"-----BEGIN PGP (?:PUBLIC|PRIVATE|SECRET) KEY BLOCK-----")


def mask_encoded(text: str) -> str:
    """Return a text of the same length with what is encoded masked; in time linear in `text`."""
    return _ENCODED.sub(_blacken, text)


def is_encoded(text: str) -> bool:
    """Return whether a text has a key of PGP, or is more than half encoded."""
    encoded = sum(match.end() - match.start() for match in _ENCODED.finditer(text))
    return bool(_KEY.search(text)) or 2 * encoded > len(text)


def _blacken(match: re.Match[str]) -> str:
    signs = _UU_SIGNS if match["uu"] else _BASE64_SIGNS
    return signs.sub(lambda found: MASK * len(found.group()), match.group())
