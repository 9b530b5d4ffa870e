"""What pipermail writes for the `@` of an address, in the languages of Mailman 2.

HyperArch.py replaces `@` by its translation of " at " into the list's language and charset, so
that an archive says `From: ana en example.org (Ana Gil)`. The table is from the catalogues of
Mailman 2.1 (messages/*/LC_MESSAGES/mailman.po, up to 2.1.39). Korean, Norwegian and Swedish leave
the entry empty, which gives the English one; the former Catalan `a`, with no blank on either side,
cannot be told from a letter of the address.
"""

import re

#: Mark -> charset of the catalogue, languages.
AT_MARKS = {
    " at ": ("ascii", "en da de fi fr hr hu ko lt no sv tr"),
    " a ": ("ascii", "ca ia it"),
    " a bildua ": ("ascii", "eu"),
    " -n ": ("ascii", "eu, before 2.1.6"),
    " em ": ("ascii", "pt_BR"),
    " en ": ("ascii", "ast es gl"),
    " la ": ("ascii", "ro"),
    " na ": ("ascii", "cs sk sl"),
    " op ": ("ascii", "nl"),
    " w ": ("ascii", "pl"),
    " at": ("ascii", "et"),
    "  ": ("ascii", "pt"),
    " ĉe ": ("iso8859-3", "eo"),
    " tại ": ("utf-8", "vi"),
    " στο ": ("iso8859-7", "el"),
    " на ": ("koi8-r", "ru sr uk"),
    " ב ": ("iso8859-8", "he"),
    " عند ": ("utf-8", "ar"),
    "در": ("utf-8", "fa"),
    " ＠ ": ("euc-jp", "ja"),
    "在": ("gb2312", "zh_CN"),
    "於": ("big5", "zh_TW"),
}
# In ASCII and surrogates, as a field is taken apart; longest first, so that `at` does not hide
# behind ` at `.
_WRITTEN = sorted(
    {
        mark.encode(charset).decode("ascii", "surrogateescape")
        for mark, (legacy, _) in AT_MARKS.items()
        for charset in (legacy, "utf-8")
    },
    key=len,
    reverse=True,
)
_OBFUSCATED = re.compile(
    r"([^\s@<>()\[\]\",:;\udc80-\udcff]{1,64}?)(" + "|".join(map(re.escape, _WRITTEN)) + r")"
    r"((?:[A-Za-z0-9_-]{1,63}+\.){1,10}+[A-Za-z0-9-]{2,63}+)[ ]*+(?=\(|\Z)"
)
#: Mark as it is written -> its charset, where that is neither ASCII nor UTF-8.
_LEGACY = {
    mark.encode(charset).decode("ascii", "surrogateescape"): charset
    for mark, (charset, _) in AT_MARKS.items()
    if charset not in ("ascii", "utf-8")
}
ENGLISH_AT = re.compile(r"(?<!\s)\s++at\s++")


def restore_at(value: str) -> str:
    """A From field with the `@` of pipermail's `user at host.org (Name)` put back.

    The whole field must have that form, since `en` and `a` are words of names too.
    """
    found = _OBFUSCATED.match(value)
    return f"{found[1]}@{found[3]} {value[found.end() :]}" if found else value


def find_charset(value: str) -> str:
    """The charset of a list whose mark, with letters beyond ASCII, is in a From field; else "".

    Pipermail writes its marks in the charset of the list, and takes bodies for that charset too.
    """
    found = _OBFUSCATED.match(value)
    return _LEGACY.get(found[2], "") if found else ""
