"""Decode bytes of mail to clean text, by a charset label that may be wrong.

Labels are read by the WHATWG Encoding Standard (so `iso-8859-1` is windows-1252, which real mail
means by it), then by a table of labels seen in mailing-list archives. No label reaches Python's
codec registry by itself: `punycode` and `idna` are quadratic there, `zlib` and `hex` are no text.

Where the label fails, each line is decoded on its own: mail quotes other mail, and mail programs
of many years copied its bytes into text of another charset without a look at them. No charset is
guessed by statistics, which would invent words.

[transfer_encoding] Content transfer encodings undone: base64, quoted-printable, uuencode, yEnc.
"""

import binascii
import codecs
import re
from functools import lru_cache
from typing import NamedTuple

import webencodings

#: Lines of one text, and characters of one line, that are looked at one by one.
MAX_LINES = MAX_RUNS = 100_000

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
_UTF_16 = frozenset({"utf-16", "utf-16-le", "utf-16-be"})  # their line ends have two bytes
_UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")
# Text in another charset fails in these, so one that reads it all is true; any text is koi8-r.
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
# The same without its escape characters, as some archives left it: always a match, so linear
_CUT_JAPANESE = re.compile(rb"\$[@B](?:(?!\([BJ])[!-~]{2})*+(\([BJ])?")
_SURROGATE = re.compile("[\ud800-\udfff]")


class Decoded(NamedTuple):
    """Clean text, and whether its charset had to be guessed: nothing named one that is true."""

    text: str
    guessed: bool


@lru_cache(maxsize=256)  # few labels, many parts
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


def is_legacy(label: str) -> bool:
    """Tell whether a label is of a charset of 8-bit text that does not show by its bytes."""
    return find_codec(label) not in {None} | _UTF_8 | _UTF_16 | _STATEFUL


def clean_text(text: str) -> str:
    """Text that Postgres takes: LF line ends, no NUL, U+FFFD instead of lone surrogates."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if "\0" in text:
        text = text.replace("\0", "")
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def decode_text(data: bytes, label: str = "", fallback: str = "") -> str:
    """Clean text by the label, as `decode` gives it."""
    return decode(data, label, fallback).text


def decode(data: bytes, label: str = "", fallback: str = "", usual: str = "") -> Decoded:
    """Clean text by the label; never raises.

    The label's codec if it decodes without fault, else UTF-8 if that does, else the codec of
    `fallback`, a label found elsewhere in the message; where the message has no label but UTF-8,
    that of `usual`, which its list usually has. Where none reads all, each line is decoded on its
    own by the first that reads it; of a line that none reads, what is UTF-8 stays UTF-8 and the
    rest is windows-1252, or U+FFFD where a label names a charset that is neither.
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
    beside = find_codec(fallback) if fallback else None
    if beside in _UTF_8:
        beside = None
    guessed = beside is None and (codec is None or codec in _UTF_8)
    if guessed and usual:
        beside = find_codec(usual)
    text = _decode_strictly(data, [beside]) if beside in _MULTIBYTE else None
    if text is None:
        text = _decode_lines(data, [*candidates, beside] if beside else candidates)
    return Decoded(clean_text(text.removeprefix("\ufeff")), guessed)


def _restore_escapes(data: bytes) -> bytes:
    """ISO-2022-JP with the escape characters that it lost; as it is where that gives no text."""
    restored = _CUT_JAPANESE.sub(
        lambda run: b"\x1b%b\x1b%b" % (run[0][:-2], run[1]) if run[1] else run[0], data
    )
    try:
        restored.decode("iso2022_jp_ext")
    except UnicodeError:
        return data
    return restored


def _find_utf_16(data: bytes, codec: str | None) -> str | None:
    """The codec by the byte order mark or the zero bytes; None where no byte is zero.

    A space or a line end has a zero byte in UTF-16, so text without one has a false label. Senders
    write either byte order without a mark, whatever RFC 2781 section 4.3 says.
    """
    if data.startswith(_UTF_16_MARKS):
        return "utf-16"
    first, second = data[::2].count(0), data[1::2].count(0)
    if not first and not second:
        return None
    return codec if first == second else "utf-16-be" if first > second else "utf-16-le"


def _decode_strictly(data: bytes, candidates: list[str]) -> str | None:
    """The text by the first of the codecs that decodes it without fault."""
    for codec in candidates:
        if codec == "cp1252":
            return _decode_windows_1252(data)
        try:
            return data.decode(codec)
        except UnicodeError:
            continue
    return None


def _decode_lines(data: bytes, candidates: list[str]) -> str:
    """The text line by line; all lines behind MAX_LINES count as one."""
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
    """UTF-8 and windows-1252 in one line, told apart at the runs of bytes beyond ASCII.

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
    """A run as UTF-8: a letter of windows-1252, or UTF-8 with U+FFFD for what was cut off it."""
    text = run.decode("utf-8", "replace")
    damaged = text.strip("\ufffd")
    return (text if damaged else _decode_windows_1252(run)).encode()


def _decode_windows_1252(data: bytes) -> str:
    return codecs.charmap_decode(data, "strict", _WINDOWS_1252)[0]


MAX_FOOTER = 4 << 10  # bytes

_NOT_BASE64 = re.compile(rb"[^A-Za-z0-9+/]+")
# No line of base64 has a rule or spaces between words.
_FOOTER = re.compile(rb"^(?:[-_*]{2}|[^\s]{1,200}+[ \t]{1,20}+[^\s])", re.M)
_YENC_LINE = re.compile(rb"^=y(?:begin|part|end) [^\n]*\n?|[\r\n]+", re.M)
_YENC = bytes((byte - 42) % 256 for byte in range(256))
# NUL, tab, line ends, full stop, space; the equals sign last, since it begins an escape
_YENC_ESCAPED = b"@IJMn`}"
_UU_BEGIN = re.compile(rb"^begin [0-7]{3,4} [^\n]*\n", re.M)


def decode_transfer(data: bytes, encoding: str) -> bytes:
    """The data with its transfer encoding undone; an unknown encoding leaves them as they are."""
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
    """Encoded base64, and the footer in plain text that a list server added behind it.

    All is plain text where the first line is: some senders name an encoding that they do not use.
    """
    is_plain = _FOOTER.search(data, 0, 200)
    footer = is_plain or _FOOTER.search(data, max(0, len(data) - MAX_FOOTER))
    return (data[: footer.start()], data[footer.start() :]) if footer else (data, b"")


def decode_base64(data: bytes) -> bytes:
    """Tolerant base64: junk is skipped, missing padding added, a lone last character dropped."""
    try:
        return binascii.a2b_base64(data)
    except binascii.Error:
        data = _NOT_BASE64.sub(b"", data)
        data = data[: len(data) - (len(data) % 4 == 1)]
        return binascii.a2b_base64(data + b"=" * (-len(data) % 4))


def _decode_uuencode(data: bytes) -> bytes:
    """Tolerant uuencode: the lines between `begin` and `end`, broken ones left out."""
    begin = _UU_BEGIN.search(data)
    if begin is None:
        return data
    out = bytearray()
    for line in data[begin.end() :].split(b"\n"):
        if line.rstrip() == b"end":
            break
        if not line.strip():
            continue  # binascii takes an empty line for 32 bytes
        try:
            out += binascii.a2b_uu(line.rstrip(b"\r"))
        except binascii.Error:
            continue
    return bytes(out)


def _decode_yenc(data: bytes) -> bytes:
    """Content between the lines `=ybegin` and `=yend` (http://www.yenc.org/yenc-draft.1.3.txt)."""
    data = _YENC_LINE.sub(b"", data)
    for escaped in _YENC_ESCAPED:
        data = data.replace(b"=%c" % escaped, b"%c" % (escaped - 64))
    return data.translate(_YENC)
