"""Decode bytes of mail to clean text: transfer encodings (RFC 2045) and charsets.

Labels follow the WHATWG Encoding Standard. So `iso-8859-1` means windows-1252, as it does in real
mail. A table adds labels seen in mailing-list archives. A label is never passed to Python's codec
registry unchecked: `punycode` and `idna` are quadratic there, `zlib` and `hex` are not text.

If the label fails, each line is decoded on its own, because mail quotes other mail and many
programs copied its bytes unchecked into text of another charset. A label also names a language:
bytes that it cannot mean are read in the other charsets of that language. Charsets are not guessed
by statistics, which would invent words.
"""

import binascii
import codecs
import re
import unicodedata
from functools import lru_cache
from itertools import groupby
from typing import NamedTuple

import webencodings

# limits of lines per text and of runs of characters per line that are decoded one by one
MAX_LINES = MAX_RUNS = 100_000

# WHATWG name -> Python codec that decodes the most: a superset if senders label a subset.
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
        *["", "0", "8bit", "ansix341968", "ascii", "autodetectall", "binary", "de", "default"],
        *["defaultcharset", "none", "ptpt", "tscii", "unknown", "unknown8bit", "usascii"],
        *["xunknown", "xuserdefined", "y"],
    ]
)
# Letters and digits of labels that neither the WHATWG standard nor the rules of `find_codec` know
_LABELS = {
    label: codec
    for codec, labels in {
        "big5hkscs": "chinesebig5 big5hkscs2004 xxbig5 big5eten",
        "cp1252": "iso88591windows31latin1 ansi iso8858 iso88581",
        "cp932": "sjiswin windows31j shiftjisx0213 mskanji",
        "cp949": "ksc5601 ksc56011992 uhc",
        "euc_jp": "eucjpwin eucjpms ujis",
        "gb18030": "gb2312charset gb231280 euccn gbkeuc cngb gb180302000 gb180302022",
        "hz": "hzgb2312 hz",
        "iso2022_jp_ext": "jis jis7 iso2022jp1 iso2022jp2 iso2022jp3 iso2022jp2004 iso2022jpext "
        "iso2022jpms cp50220 cp50221",
        "iso2022_kr": "iso2022kr",
        "koi8-r": "koi8 koi8ru",
        "koi8-u": "ecmacyrillic koi8e isoir111",  # same letters for Russian and Ukrainian
        "mac_latin2": "macce maccentraleurope maclatin2",
        "mac_roman": "macroman mac",
        "utf-16": "ucs2 iso10646ucs2",
        "utf_7": "utf7 unicode11utf7 unicode20utf7",
        "utf_8": "utf8sig utf8mb4 uft8 unicode11utf8 unicode20utf8 cp65001",
    }.items()
    for label in labels.split()
}
# Code pages of DOS and Windows, by their numbers
_CODE_PAGES = {
    number: f"cp{number}"
    for number in (
        *(437, 720, 737, 775, 850, 852, 855, 857, 858, 860, 861, 862, 863, 864, 865, 866, 869),
        *(874, 932, 949, 1250, 1251, 1252, 1253, 1254, 1255, 1256, 1257, 1258),
    )
} | {936: "gb18030", 950: "big5hkscs", 54936: "gb18030", 20866: "koi8-r", 21866: "koi8-u"}
_CODE_PAGE = re.compile(r"(?:windows|win|cp|ms|ibm|dos|ansi|iso)?(\d{3,5})\Z")
_ISO_8859 = re.compile(r"(?:iso|is)?8859(\d{1,2})(?:e|i)?\Z")
_LATIN = re.compile(r"(?:iso)?(?:latin|l)(\d{1,2})\Z")
_REGISTERED = re.compile(r"isoir(\d{1,3})\Z")
# Number of a Latin alphabet -> part of ISO 8859; number in the ISO-IR register -> label
_LATIN_PARTS = {1: 1, 2: 2, 3: 3, 4: 4, 5: 9, 6: 10, 7: 13, 8: 14, 9: 15, 10: 16}
_REGISTER = {
    **{6: "usascii", 58: "gb2312", 87: "iso2022jp", 149: "ksc5601", 159: "iso2022jp"},
    **{100: "88591", 101: "88592", 109: "88593", 110: "88594", 126: "88597", 127: "88596"},
    **{138: "88598", 144: "88595", 148: "88599", 157: "885910", 166: "tis620", 179: "885913"},
    **{199: "885914", 203: "885915", 226: "885916"},
}
_NO_LETTER = re.compile(r"[^a-z0-9]+")
_LABEL_END = re.compile(r"[;,*]|:(?=\d{4}\Z)|//")  # `ISO_8859-15:1998`, `ASCII//TRANSLIT`
MAX_LABEL = 100  # characters
# The labels of the WHATWG standard by their letters and digits
_STANDARD = {_NO_LETTER.sub("", label): label for label in webencodings.LABELS}
_STATEFUL = frozenset({"hz", "iso2022_jp_ext", "iso2022_kr", "utf_7", "utf-16-le", "utf-16-be"})
_UTF_16 = frozenset({"utf-16", "utf-16-le", "utf-16-be"})  # line ends have two bytes
_UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")
# Text in another charset fails to decode in these, so success confirms the label. Any bytes decode
# as koi8-r.
_MULTIBYTE = _STATEFUL | {"big5hkscs", "cp932", "cp949", "euc_jp", "euc-jp", "gb18030"}
_UTF_8 = frozenset({"utf-8", "utf_8"})
# Codec -> codecs of the same language whose text is sent under its label
_SAME_LANGUAGE = {
    "big5hkscs": ["cp950"],
    "cp932": ["euc_jp"],
    "euc_jp": ["cp932"],
    "hz": ["gb18030"],
    "iso2022_jp_ext": ["euc_jp", "cp932"],
    "iso2022_kr": ["cp949"],
}
# The WHATWG table: five bytes that Python's cp1252 rejects are control characters.
_WINDOWS_1252 = "".join(
    chr(byte) if byte in b"\x81\x8d\x8f\x90\x9d" else bytes([byte]).decode("cp1252")
    for byte in range(256)
)
_UTF_8_PAIR = re.compile(rb"[\xc2-\xf4][\x80-\xbf]")
# UTF-8 that is no word in another charset: a capital with a sign inside a word, or 3 such letters
_SURE_UTF_8 = re.compile(
    rb"[a-z][\xc3-\xc5][\x80-\xbf]|[\xc3-\xc5][\x80-\xbf][a-z]|"
    rb"(?:[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}){3}"
)
_NON_ASCII = re.compile(rb"[\x80-\xff]++")
_JIS_RUN = re.compile(rb"\x1b\$[@B]((?:[!-~]{2})*+)(?:\x1b\([BJ])?")
_EUC_RUN = re.compile(rb"((?:[\xa1-\xfe]{2})++)")
_EUC = re.compile(rb"(?:[\x00-\x7f]++|(?:[\xa1-\xfe]{2})++)*+")
_JAPANESE_ESCAPE = re.compile(rb"\x1b\$[@B]")
# The same without the escape characters that an archive dropped; always matches, so it is linear
_CUT_JAPANESE = re.compile(rb"\$[@B](?:(?!\([BJ])[!-~]{2})*+(\([BJ])?")
# Unicode categories without a visible form; invisible characters of other categories: Hangul
# fillers, the empty Braille pattern, the object replacement character
_UNSEEN = frozenset({"Cc", "Cf", "Cn", "Me", "Mn", "Zl", "Zp", "Zs"})
_FILLERS = frozenset("\u115f\u1160\u3164\uffa0\u2800\ufffc")
_TWICE_CONVERTED = re.compile(r"(?<!\r)\r{2,9}\n")
_SURROGATE = re.compile("[\ud800-\udfff]")


class Decoded(NamedTuple):
    """Clean text; `guessed` if no label named its true charset."""

    text: str
    guessed: bool


@lru_cache(maxsize=256)  # few labels, many parts
def find_codec(label: str) -> str | None:
    """Return the Python codec for a charset label, or None if it is unknown or means nothing.

    Only letters and digits count, up to a second label or a parameter.
    """
    words = _LABEL_END.split(label.strip(" \t\"';,*").lower()[:MAX_LABEL])
    name = _NO_LETTER.sub("", words[0].removeprefix("charset"))
    for prefix in ("", "cs", "x", "xx"):
        short = name.removeprefix(prefix)
        if short in _UNKNOWN:
            return None
        if codec := _find_by_rule(short):
            return codec
    return None


def _find_by_rule(name: str) -> str | None:
    if codec := _LABELS.get(name):
        return codec
    if standard := _STANDARD.get(name):
        encoding = webencodings.LABELS[standard]
        if encoding in ("replacement", "x-user-defined"):
            return None
        return _WHATWG_CODECS.get(encoding) or str(webencodings.lookup(standard).codec_info.name)
    page = _CODE_PAGE.match(name)
    if page and (codec := _CODE_PAGES.get(int(page[1]))):
        return codec
    if registered := _REGISTERED.match(name):
        return _find_by_rule(_REGISTER.get(int(registered[1]), ""))
    latin, part = _LATIN.match(name), _ISO_8859.match(name)
    number = _LATIN_PARTS.get(int(latin[1])) if latin else int(part[1]) if part else None
    return _find_by_rule(f"iso8859{number}") if number and not name.startswith("iso8859") else None


def is_legacy(label: str) -> bool:
    """Return whether a label names an 8-bit charset that its bytes do not reveal."""
    return find_codec(label) not in {None} | _UTF_8 | _UTF_16 | _STATEFUL


def clean_text(text: str) -> str:
    """Return text that PostgreSQL accepts: LF line ends, no NUL, U+FFFD for lone surrogates."""
    if "\r" in text:
        if "\r\r\n" in text:  # line ends that were converted twice
            text = _TWICE_CONVERTED.sub("\n", text)
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if "\0" in text:
        text = text.replace("\0", "")
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def is_blank(text: str) -> bool:
    """Return whether a text shows nothing: blanks, controls, marks without a letter, fillers."""
    return not "!" <= text[:1] <= "~" and all(map(_is_unseen, text.lstrip()))


def _is_unseen(letter: str) -> bool:
    return unicodedata.category(letter) in _UNSEEN or letter in _FILLERS


def compose(text: str) -> str:
    """Return the text in Unicode's normal form NFC, the form that is stored and compared.

    Some programs send `e` with a combining accent for `é`, and Python's windows-1258 decodes
    Vietnamese so. Ids, addresses and the input of hashes are not composed.

    Combining marks are sorted here, because CPython's normalization sorts them by swapping
    neighbours. That is quadratic: 80,000 marks take 20 s. Everything else is linear.
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

    UTF-8 that can hardly be another charset is read as UTF-8 despite its label. Else the first
    codec without a fault decodes all. They are tried in this order: the label's, UTF-8, others of
    its language, that of `fallback`, which is a label elsewhere in the message. If the message has
    no label except UTF-8, the codec of `usual`, the charset of the list, replaces that of
    `fallback`.

    If none decodes all, each line is decoded by the first codec that can. If none can decode a
    line, its UTF-8 stays UTF-8 and the rest is windows-1252, or U+FFFD if a label names another
    charset.
    """
    codec = find_codec(label) if label else None
    if data.isascii() and codec not in _STATEFUL:
        if codec is not None or b"\x1b" not in data or not _JAPANESE_ESCAPE.search(data):
            return Decoded(clean_text(data.decode("ascii")), False)
        codec = "iso2022_jp_ext"
    if codec in _UTF_16 or data.startswith(_UTF_16_MARKS):
        codec = _find_utf_16(data, codec)
    if codec == "iso2022_jp_ext" and b"\x1b" not in data and data.isascii():
        data = _restore_escapes(data)
    candidates = [codec, "utf-8", *_SAME_LANGUAGE.get(codec, ())] if codec else ["utf-8"]
    text = _decode_sure_utf_8(data, codec) if codec else None
    text = text if text is not None else _decode_strictly(data, candidates)
    if text is not None:
        return Decoded(clean_text(text.removeprefix("\ufeff")), False)
    other = find_codec(fallback) if fallback else None
    if other in _UTF_8:
        other = None
    guessed = other is None and (codec is None or codec in _UTF_8)
    if guessed and usual:
        other = find_codec(usual)
    others = [other, *_SAME_LANGUAGE.get(other, ())] if other else []
    text = _decode_strictly(data, others) if other in _MULTIBYTE else None
    if text is None:
        text = _decode_lines(data, candidates + others)
    return Decoded(clean_text(text.removeprefix("\ufeff")), guessed)


def _restore_escapes(data: bytes) -> bytes:
    """Return ISO-2022-JP with its lost escape characters restored, or the data if that fails."""
    restored = _CUT_JAPANESE.sub(
        lambda run: b"\x1b%b\x1b%b" % (run[0][:-2], run[1]) if run[1] else run[0], data
    )
    text = _decode_strictly(restored, ["iso2022_jp_ext"])
    return restored if text is None or "\ufffd" not in text else data


def _find_utf_16(data: bytes, codec: str | None) -> str | None:
    """Return the codec by the byte order mark or the zero bytes, or None if no byte is zero.

    A space or a line end in UTF-16 has a zero byte, so text without one has a wrong label. Senders
    write either byte order without a mark, against RFC 2781 section 4.3.
    """
    if data.startswith(_UTF_16_MARKS):
        return "utf-16"
    first, second = data[::2].count(0), data[1::2].count(0)
    if not first and not second:
        return None
    return codec if first == second else "utf-16-be" if first > second else "utf-16-le"


def _decode_sure_utf_8(data: bytes, codec: str) -> str | None:
    """Decode UTF-8 that has another label, as a whole, or those lines that the label cannot mean.

    Scripts and web forms send UTF-8 as iso-8859-1, and programs copy its bytes into other mail.
    """
    if codec in _UTF_16 or not _SURE_UTF_8.search(data):
        return None
    text = _decode_strictly(data, ["utf-8"])
    if text is not None or codec in _MULTIBYTE:
        return text
    lines = (
        _decode_strictly(line, ["utf-8", codec] if _SURE_UTF_8.search(line) else [codec])
        for line in data.split(b"\n", MAX_LINES)
    )
    read = [line for line in lines if line is not None]
    return "\n".join(read) if len(read) == data.count(b"\n") + 1 else None


def _decode_strictly(data: bytes, candidates: list[str]) -> str | None:
    for codec in candidates:
        if codec == "cp1252":
            return _decode_windows_1252(data)
        try:
            return data.decode(codec)
        except UnicodeError:
            if text := _decode_japanese(data, codec):
                return text
    return None


def _decode_japanese(data: bytes, codec: str) -> str | None:
    """Decode EUC-JP or 7-bit ISO-2022-JP that has characters of Windows.

    Windows adds numbers in circles, Roman numerals and kanji of names to JIS X 0208. In ISO-2022-JP
    other faults are U+FFFD, because its 7 bits are no text in another charset.
    """
    if codec == "iso2022_jp_ext" and data.isascii():
        return _JIS_RUN.sub(_to_shift_jis, data, MAX_RUNS).decode("cp932", "replace")
    if codec == "euc_jp" and _EUC.fullmatch(data):
        return _decode_strictly(_EUC_RUN.sub(_to_shift_jis, data, MAX_RUNS), ["cp932"])
    return None


def _to_shift_jis(run: re.Match[bytes]) -> bytes:
    text = bytearray()
    for first, second in zip(run[1][::2], run[1][1::2], strict=True):
        row, cell = first & 0x7F, second & 0x7F
        text.append((row + 1) // 2 + (0x70 if row < 0x5F else 0xB0))
        text.append(cell + (0x7E if row % 2 == 0 else 0x1F if cell < 0x60 else 0x20))
    return bytes(text)


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
    """Decode UTF-8 and windows-1252 in one line, each run of non-ASCII bytes on its own.

    A line with more faults than UTF-8 characters is windows-1252: a capital letter and a closing
    quote in it look like UTF-8.
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

MAX_PIECES = 100_000  # pieces of one content, each with its own padding

# Blanks that a relay added to a soft line break (RFC 2045 section 6.7, rule 3)
_SOFT_BREAK = re.compile(rb"=[ \t]++(?=\r?\n|\Z)")
_PADDED = re.compile(rb"[^=]*+=++")
# White space, then a line without blanks that is not a word: it has padding, or a capital or digit
# inside. A few stray characters are allowed. The limits keep the time linear.
_PIECE = re.compile(
    rb"\s*+(?=\S{0,80}?(?:[a-z0-9][A-Z0-9+/]|=))"
    rb"(?:[A-Za-z0-9+/=]{100}|"
    rb"[A-Za-z0-9+/=]{1,99}+(?:[^A-Za-z0-9+/=\s][A-Za-z0-9+/=]{1,99}+){0,3}+[ \t\r]{0,9}+$)",
    re.M,
)
_NOT_BASE64 = re.compile(rb"[^A-Za-z0-9+/]+")
# A rule, or spaces between words: neither is in base64.
_FOOTER = re.compile(rb"^(?:[-_*]{2}|[^\s]{1,200}+[ \t]{1,20}+[^\s])", re.M)
_YENC_LINE = re.compile(rb"^=y(?:begin|part|end) [^\n]*\n?|[\r\n]+", re.M)
_YENC = bytes((byte - 42) % 256 for byte in range(256))
# NUL, tab, line ends, full stop, space; the equals sign last, since it begins an escape
_YENC_ESCAPED = b"@IJMn`}"
_UU_BEGIN = re.compile(rb"^begin [0-7]{3,4} [^\n]*\n", re.M)


def decode_transfer(data: bytes, encoding: str) -> bytes:
    """Undo a content transfer encoding; data in an unknown encoding stays as it is."""
    if encoding == "quoted-printable":
        if b"= " in data or b"=\t" in data:
            data = _SOFT_BREAK.sub(b"=", data)
        return binascii.a2b_qp(data)
    if encoding == "base64":
        return decode_base64(data)
    if encoding in ("x-uuencode", "uuencode", "x-uue", "uue"):
        return _decode_uuencode(data)
    if encoding == "x-yenc":
        return _decode_yenc(data)
    return data


def split_off_footer(data: bytes) -> tuple[bytes, bytes]:
    """Split base64 from the plain-text footer that a list server added.

    If the first line is plain text, everything is: some senders name an encoding that they do not
    use.
    """
    is_plain = _FOOTER.search(data, 0, 200)
    footer = is_plain or _FOOTER.search(data, max(0, len(data) - MAX_FOOTER))
    return (data[: footer.start()], data[footer.start() :]) if footer else (data, b"")


def decode_base64(data: bytes) -> bytes:
    """Decode base64 tolerantly: skip junk, add padding, drop a lone last character.

    Padding ends a piece, not the content, because some senders encode line by line and list servers
    add an encoded footer. Text after a piece that does not look like base64 is not content.
    """
    piece = _PADDED.match(data)
    if piece is None or not _PIECE.match(data, piece.end()):
        return _decode_piece(data)
    pieces: list[bytes] = []
    at = 0
    while piece and len(pieces) < MAX_PIECES:
        pieces.append(_decode_piece(data[at : piece.end()]))
        at = piece.end()
        piece = _PADDED.match(data, at) if _PIECE.match(data, at) else None
    if _PIECE.match(data, at):
        pieces.append(_decode_piece(data[at:]))
    return b"".join(pieces)


def _decode_piece(data: bytes) -> bytes:
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
    """Decode between `=ybegin` and `=yend` (http://www.yenc.org/yenc-draft.1.3.txt)."""
    data = _YENC_LINE.sub(b"", data)
    for escaped in _YENC_ESCAPED:
        data = data.replace(b"=%c" % escaped, b"%c" % (escaped - 64))
    return data.translate(_YENC)
