"""Decode bytes of mail to clean text, by a charset label that may be wrong.

Labels are read by the WHATWG Encoding Standard (so `iso-8859-1` is windows-1252, which real mail
means by it), then by a table of labels seen in mailing-list archives. No label reaches Python's
codec registry by itself: `punycode` and `idna` are quadratic there, `zlib` and `hex` are no text.
"""

import re

import webencodings

# WHATWG name -> the Python codec that decodes most: supersets where senders label a subset.
_WHATWG_CODECS = {
    "big5": "big5hkscs",
    "euc-kr": "cp949",
    "gbk": "gb18030",
    "iso-2022-jp": "iso2022_jp_ext",
    "iso-8859-8-i": "iso8859_8",
    "shift_jis": "cp932",
    "windows-1252": "cp1252",
    "x-mac-cyrillic": "mac_cyrillic",
}
# Says nothing about the charset: the bytes decide.
_UNKNOWN = frozenset(
    [
        "0",
        "8bit",
        "_autodetect_all",
        "ansi_x3.4-1968",
        "ascii",
        "binary",
        "de",
        "default",
        "default_charset",
        "none",
        "pt_pt",
        "tscii",
        "unknown",
        "unknown-8bit",
        "us-ascii",
        "x-unknown",
        "x-user-defined",
        "y",
    ]
)
_ALIASES = {
    label: codec
    for codec, labels in {
        "big5hkscs": "chinesebig5 big5-hkscs x-x-big5",
        "cp1252": "cp-1252 iso-8858-1 iso-88-59-1 iso-8859-1-windows-3.1-latin-1 iso8859_1 x-ansi",
        "cp437": "cp437 ibm437 ibm-437",
        "cp850": "cp850 ibm850 iso-850",
        "cp852": "cp852 ibm852",
        "cp949": "x-windows-949 ms949 cp949",
        "gb18030": "gb2312_charset gb_2312-80 euc-cn cp936 x-gb2312",
        "hz": "hz-gb-2312 hz",
        "iso2022_jp_ext": "jis iso-2022-jp-2 iso-2022-jp-3 iso-2022-jp-ext",
        "iso2022_kr": "iso-2022-kr",
        "iso8859_2": "iso-latin-2",
        "koi8-r": "koi8r",
        "mac_roman": "macroman mac-roman",
        "utf_7": "utf-7 utf7 unicode-1-1-utf-7 x-unicode-2-0-utf-7",
        "utf_8": "utf-8-sig utf_8 utf-8mb4 x-utf-8",
    }.items()
    for label in labels.split()
}
_STATEFUL = frozenset({"hz", "iso2022_jp_ext", "iso2022_kr", "utf_7", "utf-16-le", "utf-16-be"})
_JAPANESE_ESCAPE = re.compile(rb"\x1b\$[@B]")
_SURROGATE = re.compile("[\ud800-\udfff]")


def find_codec(label: str) -> str | None:
    """The Python codec for a charset label, None where the label is unknown or means nothing."""
    name = label.strip(" \t\"'").lower().split(",")[0].split("*")[0].strip().replace(" ", "-")
    if name in _UNKNOWN:
        return None
    if name in _ALIASES:
        return _ALIASES[name]
    encoding = webencodings.lookup(name)
    if encoding is None or encoding.name in ("replacement", "x-user-defined"):
        return None
    return _WHATWG_CODECS.get(encoding.name) or str(encoding.codec_info.name)


def clean_text(text: str) -> str:
    """Text that Postgres takes: LF line ends, no NUL, U+FFFD instead of lone surrogates."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if "\0" in text:
        text = text.replace("\0", "")
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def decode_text(data: bytes, label: str = "", fallback: str = "") -> str:
    """Clean text by the label; never raises.

    The label's codec if it decodes without fault, else UTF-8 if that does, else the fallback
    label's, else the label's codec with U+FFFD for what it cannot read, else windows-1252.
    """
    codec = find_codec(label) if label else None
    if data.isascii() and codec not in _STATEFUL:
        if codec is not None or not _JAPANESE_ESCAPE.search(data):
            return clean_text(data.decode("ascii"))
        codec = "iso2022_jp_ext"
    for name in (codec, "utf-8", find_codec(fallback) if fallback else None):
        if name is not None:
            try:
                return clean_text(data.decode(name).removeprefix("\ufeff"))
            except UnicodeError:
                continue
    return clean_text(data.decode(codec or "cp1252", "replace"))
