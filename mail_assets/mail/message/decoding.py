"""Decode bytes of mail to clean text: transfer encodings (RFC 2045), and charsets.

Labels follow the WHATWG Encoding Standard (so `iso-8859-1` is windows-1252, which real mail means
by it), then a table of labels seen in mailing-list archives. No label reaches Python's codec
registry by itself: `punycode` and `idna` are quadratic there, `zlib` and `hex` are no text.

If the label fails, each line is decoded on its own: mail quotes other mail, and many programs
copied its bytes unchecked into text of another charset. No charset is guessed by statistics, which
would invent words.
"""

import binascii
import codecs
import re
import unicodedata
from functools import lru_cache
from itertools import groupby
from typing import NamedTuple

import webencodings

# lines of one text, and characters of one line, that are decoded one by one
MAX_LINES = MAX_RUNS = 100_000

# WHATWG name -> the Python codec that decodes most: a superset if senders label a subset.
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
# Labels that say nothing about the charset: the bytes decide.
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
_UTF_16 = frozenset({"utf-16", "utf-16-le", "utf-16-be"})  # their line ends have two bytes
_UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")
# Text in another charset fails in these, so one that decodes all is true; any bytes are koi8-r.
_MULTIBYTE = _STATEFUL | {"big5hkscs", "cp932", "cp949", "euc_jp", "euc-jp", "gb18030"}
_UTF_8 = frozenset({"utf-8", "utf_8"})
# The WHATWG index: the five bytes that Python's cp1252 refuses are control characters.
_WINDOWS_1252 = "".join(
    chr(byte) if byte in b"\x81\x8d\x8f\x90\x9d" else bytes([byte]).decode("cp1252")
    for byte in range(256)
)
_UTF_8_PAIR = re.compile(rb"[\xc2-\xf4][\x80-\xbf]")
_NON_ASCII = re.compile(rb"[\x80-\xff]++")
_JAPANESE_ESCAPE = re.compile(rb"\x1b\$[@B]")
# The same after an archive dropped its escape characters: always a match, so linear
_CUT_JAPANESE = re.compile(rb"\$[@B](?:(?!\([BJ])[!-~]{2})*+(\([BJ])?")
_SURROGATE = re.compile("[\ud800-\udfff]")


class Decoded(NamedTuple):
    """Clean text; `guessed` if no label named its true charset."""

    text: str
    guessed: bool


@lru_cache(maxsize=256)  # few labels, many parts
def find_codec(label: str) -> str | None:
    """Return the Python codec for a charset label, None if it is unknown or means nothing."""
    name = label.strip(" \t\"'").lower().split(",")[0].split("*")[0].strip().replace(" ", "-")
    if name in _UNKNOWN:
        return None
    if name in _ALIASES:
        return _ALIASES[name]
    encoding = webencodings.lookup(name)
    if encoding is None or encoding.name in ("replacement", "x-user-defined"):
        return None
    return _WHATWG_CODECS.get(encoding.name) or str(encoding.codec_info.name)


def is_legacy(label: str) -> bool:
    """Return whether a label names an 8-bit charset that its bytes do not reveal."""
    return find_codec(label) not in {None} | _UTF_8 | _UTF_16 | _STATEFUL


def clean_text(text: str) -> str:
    """Return text that Postgres takes: LF line ends, no NUL, U+FFFD for lone surrogates."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if "\0" in text:
        text = text.replace("\0", "")
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def compose(text: str) -> str:
    """Return the text in Unicode's normal form NFC, in which letters are stored and compared.

    Some programs send `e` with a combining accent for `é`, and Python's windows-1258 decodes
    Vietnamese so. Ids, addresses and the input of hashes stay as they were sent.

    Linear but for a sort: CPython's normalization orders combining marks by swapping neighbours,
    which is quadratic (80,000 marks take 20 s), so it gets them in their order.
    """
    if text.isascii() or unicodedata.is_normalized("NFC", text):
        return text
    decomposed = "".join([unicodedata.normalize("NFD", one) for one in text])
    ordered: list[str] = []
    for _, run in groupby(decomposed, lambda one: unicodedata.combining(one) != 0):
        ordered += sorted(run, key=unicodedata.combining)  # letters have 0
    return unicodedata.normalize("NFC", "".join(ordered))


def decode_text(data: bytes, label: str = "", fallback: str = "") -> str:
    """Return the text of `decode`."""
    return decode(data, label, fallback).text


def decode(data: bytes, label: str = "", fallback: str = "", usual: str = "") -> Decoded:
    """Decode to clean text; never raises.

    The first codec that decodes without fault: the label's, UTF-8, that of `fallback`, a label
    elsewhere in the message. If the message has no label but UTF-8, that of `usual`, the charset of
    its list, takes the place of `fallback`. If none decodes all, each line is decoded on its own by
    the first that can. In a line that none decodes, UTF-8 stays UTF-8 and the rest is windows-1252,
    or U+FFFD if a label names another charset.
    """
    codec = find_codec(label) if label else None
    if data.isascii() and codec not in _STATEFUL:
        if codec is not None or b"\x1b" not in data or not _JAPANESE_ESCAPE.search(data):
            return Decoded(clean_text(data.decode("ascii")), False)
        codec = "iso2022_jp_ext"
    if codec in _UTF_16 or data.startswith(_UTF_16_MARKS):
        codec = _find_utf_16(data, codec)
    if codec == "iso2022_jp_ext" and b"\x1b" not in data:
        data = _restore_escapes(data)
    candidates = ["utf-8"] if codec is None else [codec, "utf-8"]
    text = _decode_strictly(data, candidates)
    if text is not None:
        return Decoded(clean_text(text.removeprefix("\ufeff")), False)
    other = find_codec(fallback) if fallback else None
    if other in _UTF_8:
        other = None
    guessed = other is None and (codec is None or codec in _UTF_8)
    if guessed and usual:
        other = find_codec(usual)
    text = _decode_strictly(data, [other]) if other in _MULTIBYTE else None
    if text is None:
        text = _decode_lines(data, [*candidates, other] if other else candidates)
    return Decoded(clean_text(text.removeprefix("\ufeff")), guessed)


def _restore_escapes(data: bytes) -> bytes:
    """Return ISO-2022-JP with its lost escape characters, or as it is if that gives no text."""
    restored = _CUT_JAPANESE.sub(
        lambda run: b"\x1b%b\x1b%b" % (run[0][:-2], run[1]) if run[1] else run[0], data
    )
    try:
        restored.decode("iso2022_jp_ext")
    except UnicodeError:
        return data
    return restored


def _find_utf_16(data: bytes, codec: str | None) -> str | None:
    """Return the codec by the byte order mark or the zero bytes; None if no byte is zero.

    A space or a line end has a zero byte in UTF-16, so text without one has a false label. Senders
    write either byte order without a mark, against RFC 2781 section 4.3.
    """
    if data.startswith(_UTF_16_MARKS):
        return "utf-16"
    first, second = data[::2].count(0), data[1::2].count(0)
    if not first and not second:
        return None
    return codec if first == second else "utf-16-be" if first > second else "utf-16-le"


def _decode_strictly(data: bytes, candidates: list[str]) -> str | None:
    for codec in candidates:
        if codec == "cp1252":
            return _decode_windows_1252(data)
        try:
            return data.decode(codec)
        except UnicodeError:
            continue
    return None


def _decode_lines(data: bytes, candidates: list[str]) -> str:
    """Decode line by line; all lines after MAX_LINES count as one."""
    other = next((name for name in candidates if name not in _UTF_8), None)
    if other in _UTF_16:
        return data.decode(other, "replace")
    if other is None and not _UTF_8_PAIR.search(data):
        return _decode_windows_1252(data)
    text: list[str] = []
    for line in data.split(b"\n", MAX_LINES):
        read = _decode_strictly(line, candidates)
        if read is None:
            read = line.decode(other, "replace") if other else _decode_mixed(line)
        text.append(read)
    return "\n".join(text)


def _decode_mixed(line: bytes) -> str:
    """Decode UTF-8 and windows-1252 in one line, each run of bytes beyond ASCII on its own.

    A line with more faults than characters of UTF-8 is windows-1252, in which a capital letter
    and a closing quote look like UTF-8.
    """
    text = line.decode("utf-8", "replace")
    beyond_ascii = len(text) - len(text.encode("ascii", "ignore"))
    if 2 * text.count("\ufffd") > beyond_ascii:
        return _decode_windows_1252(line)
    if beyond_ascii > MAX_RUNS:
        return text
    return _NON_ASCII.sub(lambda run: _decode_run(run[0]), line).decode()


def _decode_run(run: bytes) -> bytes:
    """Return a run as UTF-8: from windows-1252, or damaged UTF-8 with U+FFFD."""
    text = run.decode("utf-8", "replace")
    damaged = text.strip("\ufffd")
    return (text if damaged else _decode_windows_1252(run)).encode()


def _decode_windows_1252(data: bytes) -> str:
    return codecs.charmap_decode(data, "strict", _WINDOWS_1252)[0]


# --- transfer encodings ---

MAX_FOOTER = 4 << 10  # bytes at the end of base64 that are searched for a plain footer

_NOT_BASE64 = re.compile(rb"[^A-Za-z0-9+/]+")
# A rule, or spaces between words: no line of base64 has them.
_FOOTER = re.compile(rb"^(?:[-_*]{2}|[^\s]{1,200}+[ \t]{1,20}+[^\s])", re.M)
_YENC_LINE = re.compile(rb"^=y(?:begin|part|end) [^\n]*\n?|[\r\n]+", re.M)
_YENC = bytes((byte - 42) % 256 for byte in range(256))
# NUL, tab, line ends, full stop, space; the equals sign last, since it begins an escape
_YENC_ESCAPED = b"@IJMn`}"
_UU_BEGIN = re.compile(rb"^begin [0-7]{3,4} [^\n]*\n", re.M)


def decode_transfer(data: bytes, encoding: str) -> bytes:
    """Undo a content transfer encoding; data in an unknown one stays as it is."""
    if encoding == "quoted-printable":
        return binascii.a2b_qp(data)
    if encoding == "base64":
        return decode_base64(data)
    if encoding in ("x-uuencode", "uuencode", "x-uue", "uue"):
        return _decode_uuencode(data)
    if encoding == "x-yenc":
        return _decode_yenc(data)
    return data


def split_off_footer(data: bytes) -> tuple[bytes, bytes]:
    """Split base64 from the footer in plain text that a list server added.

    If the first line is plain text, all is: some senders name an encoding that they do not use.
    """
    is_plain = _FOOTER.search(data, 0, 200)
    footer = is_plain or _FOOTER.search(data, max(0, len(data) - MAX_FOOTER))
    return (data[: footer.start()], data[footer.start() :]) if footer else (data, b"")


def decode_base64(data: bytes) -> bytes:
    """Decode base64 tolerantly: junk is skipped, padding added, a lone last character dropped."""
    try:
        return binascii.a2b_base64(data)
    except binascii.Error:
        data = _NOT_BASE64.sub(b"", data)
        data = data[: len(data) - (len(data) % 4 == 1)]
        return binascii.a2b_base64(data + b"=" * (-len(data) % 4))


def _decode_uuencode(data: bytes) -> bytes:
    begin = _UU_BEGIN.search(data)
    if begin is None:
        return data
    out = bytearray()
    for line in data[begin.end() :].split(b"\n"):
        if line.rstrip() == b"end":
            break
        if not line.strip():
            continue  # binascii reads an empty line as 32 bytes
        try:
            out += binascii.a2b_uu(line.rstrip(b"\r"))
        except binascii.Error:
            continue
    return bytes(out)


def _decode_yenc(data: bytes) -> bytes:
    """Decode the content between `=ybegin` and `=yend`.

    http://www.yenc.org/yenc-draft.1.3.txt
    """
    data = _YENC_LINE.sub(b"", data)
    for escaped in _YENC_ESCAPED:
        data = data.replace(b"=%c" % escaped, b"%c" % (escaped - 64))
    return data.translate(_YENC)
