"""Charset labels, true or false; transfer encodings, whole or broken; and Unicode's NFC."""

import base64
import codecs
import unicodedata

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mail_assets.mail.message.decoding import (
    clean_text,
    compose,
    decode,
    decode_base64,
    decode_text,
    decode_transfer,
    find_codec,
    is_blank,
    is_legacy,
)
from mail_assets.mail.message.mime import parse_mime
from mail_assets.mail.message.part_text import decode_part


@pytest.mark.parametrize(("label", "codec"), [
    ("UTF-8", "utf-8"),
    ("utf8", "utf-8"),
    ("iso-8859-1", "cp1252"),
    ("latin1", "cp1252"),
    ("cp 1252", "cp1252"),
    ("iso-88-59-1", "cp1252"),
    ("iso-8858-1", "cp1252"),
    ("ISO_8859-15:1998", "iso8859-15"),
    ("iso-8859-2//TRANSLIT", "iso8859-2"),
    ("1251", "cp1251"),
    ("iso-8859-1,iso-8859-2", "cp1252"),
    ('"utf-8"', "utf-8"),
    ("utf-8*en", "utf-8"),
    ("iso885915", "iso8859-15"),
    ("iso-8859-8-i", "iso8859_8"),
    ("iso-latin-2", "iso8859-2"),
    ("iso-850", "cp850"),
    ("koi8r", "koi8-r"),
    ("gb2312", "gb18030"),
    ("GB2312_CHARSET", "gb18030"),
    ("x-gbk", "gb18030"),
    ("chinesebig5", "big5hkscs"),
    ("cn-big5", "big5hkscs"),
    ("ks_c_5601-1987", "cp949"),
    ("x-windows-949", "cp949"),
    ("shift-jis", "cp932"),
    ("jis", "iso2022_jp_ext"),
    ("iso-2022-jp", "iso2022_jp_ext"),
    ("windows-874", "cp874"),
    ("macintosh", "mac-roman"),
    ("x-unicode-2-0-utf-7", "utf_7"),
])  # fmt: skip
def test_labels_seen_in_mail_have_a_codec(label: str, codec: str) -> None:
    assert find_codec(label) == codec
    assert b"plain".decode(codec) == "plain"


@pytest.mark.parametrize("label", [
    *["", "us-ascii", "unknown-8bit", "x-unknown", "default_charset", "y", "de", "pt_pt"],
    *["tscii", "_autodetect_all", "0", "x-user-defined", "nonsense", "\ufffd"],
    *["punycode", "idna", "unicode_escape", "raw_unicode_escape", "undefined", "mbcs"],
    *["zlib", "hex", "base64", "rot13", "uu", "replacement"],
])  # fmt: skip
def test_unknown_labels_have_no_codec(label: str) -> None:
    assert find_codec(label) is None


@pytest.mark.parametrize(("data", "label", "text"), [
    (b"\x93hi\x94 \x80", "iso-8859-1", "“hi” €"),
    ("né".encode(), "us-ascii", "né"),
    (b"n\xe9", "us-ascii", "né"),
    (b"n\xe9", "", "né"),
    ("né".encode(), "nonsense", "né"),
    ("朱镕基".encode("gb18030"), "gb2312", "朱镕基"),
    ("né".encode(), "iso-2022-jp", "né"),
    ("日本".encode("iso2022_jp"), "iso-2022-jp", "日本"),
    # without escape characters う is `$&`; dollar signs of plain text are not decoded
    ("日うう本 and ".encode("iso2022_jp").replace(b"\x1b", b""), "iso-2022-jp", "日うう本 and "),
    (b"the price is $Best (B) or $Bx(B\n", "iso-2022-jp", "the price is $Best (B) or $Bx(B\n"),
    ("日本".encode("iso2022_jp"), "", "日本"),
    ("日本".encode("iso2022_jp"), "us-ascii", "日本"),
    ("Ж".encode("koi8-r"), "koi8-r", "Ж"),
    ("né".encode("utf-7"), "utf-7", "né"),
    ("né".encode("utf-16"), "utf-16", "né"),
    ("\ufeffx".encode(), "utf-8", "x"),
    (b"\x81\x8d\x8f\x90\x9d", "windows-1252", "\x81\x8d\x8f\x90\x9d"),
    (b"a\0b", "utf-8", "ab"),
    (b"a\r\nb\rc", "us-ascii", "a\nb\nc"),
    (b"+2AA-", "utf-7", "\ufffd"),
])  # fmt: skip
def test_bytes_are_decoded_in_spite_of_false_labels(data: bytes, label: str, text: str) -> None:
    assert decode_text(data, label) == text


# characters that Windows adds to the standards of Japanese: `①` is row 13, `髙` row 92
_JIS_OF_WINDOWS = b'\x1b$B-!$N7o!"\x1b(B OK \x1b$B|b66\x1b(J'
_EUC_OF_WINDOWS = b"\xad\xa1\xa4\xce\xb7\xef\xa1\xa2 OK \xfc\xe2\xb6\xb6"


@pytest.mark.parametrize(("data", "named", "text"), [
    (_JIS_OF_WINDOWS, ("iso-2022-jp", ""), "①の件、 OK 髙橋"),
    (_JIS_OF_WINDOWS, ("", ""), "①の件、 OK 髙橋"),
    (_JIS_OF_WINDOWS.replace(b"\x1b", b""), ("iso-2022-jp", ""), "①の件、 OK 髙橋"),
    (_EUC_OF_WINDOWS, ("euc-jp", ""), "①の件、 OK 髙橋"),
    # another charset of the language
    ("件名".encode("cp932"), ("iso-2022-jp", ""), "件名"),
    ("件名".encode("cp932"), ("euc-jp", ""), "件名"),
    ("件名".encode("euc-jp"), ("iso-2022-jp", ""), "件名"),
    ("件名です".encode("euc-jp"), ("shift_jis", ""), "件名です"),
    ("件名".encode("cp932"), ("", "iso-2022-jp"), "件名"),
    (_EUC_OF_WINDOWS, ("us-ascii", "iso-2022-jp"), "①の件、 OK 髙橋"),
    ("你好".encode("gb18030"), ("hz-gb-2312", ""), "你好"),
    ("안녕".encode("euc-kr"), ("iso-2022-kr", ""), "안녕"),
    ("€ 簡體".encode("cp950"), ("big5", ""), "€ 簡體"),
])  # fmt: skip
def test_label_names_a_language_when_its_bytes_fail(
    data: bytes, named: tuple[str, str], text: str
) -> None:
    assert decode_text(data, *named) == text


@pytest.mark.parametrize(("data", "label", "text"), [
    ("Jürgen".encode(), "iso-8859-1", "Jürgen"),
    ("publié".encode(), "windows-1252", "publié"),
    ("Привет".encode(), "koi8-r", "Привет"),
    ("日本語".encode(), "gb2312", "日本語"),
    ("über\n".encode() + b"f\xfcr", "iso-8859-1", "über\nfür"),
    # words and signs of the label's charset that could be UTF-8
    (b"N\xc3O\x85 SIM", "iso-8859-1", "NÃO… SIM"),
    (b"\x93CAF\xc9\x94", "iso-8859-1", "“CAFÉ”"),
    (b"Spa\xdf\x85", "iso-8859-1", "Spaß…"),
    ("ТА УА".encode("iso8859-5"), "iso-8859-5", "ТА УА"),
    ("联通".encode("gbk"), "gb2312", "联通"),
])  # fmt: skip
def test_sure_utf_8_is_read_despite_its_label(data: bytes, label: str, text: str) -> None:
    assert decode_text(data, label) == text


LINES = "relación, ALBARÁN\n".encode() + "línea y ALBARÁN\n".encode("cp1252")


@pytest.mark.parametrize(("data", "label", "fallback", "text"), [
    (LINES, "", "", "relación, ALBARÁN\nlínea y ALBARÁN\n"),
    (LINES, "utf-8", "", "relación, ALBARÁN\nlínea y ALBARÁN\n"),
    (LINES, "us-ascii", "iso-8859-1", "relación, ALBARÁN\nlínea y ALBARÁN\n"),
    (b"regularizaci\xf3n", "utf-8", "", "regularización"),
    ("ALBARÁN".encode() + b" y l\xednea", "", "", "ALBARÁN y línea"),
    # a capital and a closing quote look like UTF-8
    (b"\x93CAF\xc9\x94 d'\xe9t\xe9", "", "", "“CAFÉ” d'été"),
    # text that was cut within a character keeps the other characters
    ("你好吗".encode()[:-1], "utf-8", "", "你好\ufffd"),
    ("你好吗".encode()[1:] + b"\nx", "", "", "\ufffd\ufffd好吗\nx"),
    # the charset of the message's own encoded words
    ("Да\n".encode() + "Нет\n".encode("koi8-r"), "", "koi8-r", "Да\nНет\n"),
    ("联通\n中文".encode("gbk"), "", "gb2312", "联通\n中文"),
    ("联通\n中文".encode("gbk"), "utf-8", "gb2312", "联通\n中文"),
    # in another charset, a damaged line does not affect the others
    ("中文\n".encode("gbk") + b"\xd6\xff", "gb2312", "", "中文\n\ufffd\ufffd"),
    ("Ж\n".encode("koi8-r"), "koi8-r", "utf-8", "Ж\n"),
])  # fmt: skip
def test_text_against_its_label_is_decoded_by_line(
    data: bytes, label: str, fallback: str, text: str
) -> None:
    assert decode_text(data, label, fallback) == text


RUSSIAN = "Ошибка ядра\nвторая\n"


@pytest.mark.parametrize(("data", "named", "usual", "text", "guessed"), [
    # without a label: the default charset of the list, else windows-1252
    (RUSSIAN.encode("koi8-r"), ("", ""), "koi8-r", RUSSIAN, True),
    (RUSSIAN.encode("koi8-r"), ("us-ascii", ""), "koi8-r", RUSSIAN, True),
    (RUSSIAN.encode("koi8-r"), ("utf-8", "utf-8"), "koi8-r", RUSSIAN, True),
    ("復元できる".encode("euc-jp"), ("", ""), "euc-jp", "復元できる", True),
    (b"n\xe9", ("", ""), "", "né", True),
    # a label, a charset found elsewhere in the message, and unambiguous bytes have priority
    (b"n\xe9", ("iso-8859-1", ""), "koi8-r", "né", False),
    (b"n\xe9", ("", "iso-8859-1"), "koi8-r", "né", False),
    (RUSSIAN.encode(), ("", ""), "koi8-r", RUSSIAN, False),
    ("日本".encode("iso2022_jp"), ("", ""), "euc-jp", "日本", False),
    ("中文\n".encode("gbk") + b"\xd6\xff", ("gb2312", ""), "koi8-r", "中文\n\ufffd\ufffd", False),
    (b"plain", ("", ""), "koi8-r", "plain", False),
    # another line of the same text
    ("né\n".encode() + "Да".encode("koi8-r"), ("", ""), "koi8-r", "né\nДа", True),
])  # fmt: skip
def test_usual_charset_of_a_list_is_the_last_that_is_tried(
    data: bytes, named: tuple[str, str], usual: str, text: str, guessed: bool
) -> None:
    assert decode(data, *named, usual) == (text, guessed)


def test_legacy_charsets_are_those_of_8_bit_text_but_utf_8() -> None:
    labels = ["koi8-r", "windows-1251", "euc-jp", "Shift_JIS", "gb2312", "big5", "ISO-8859-7"]
    assert all(map(is_legacy, labels))
    others = ["", "utf-8", "utf8", "us-ascii", "iso-2022-jp", "hz", "utf-7", "utf-16le", "punycode"]
    assert not any(map(is_legacy, others))


@pytest.mark.parametrize("label", ["", "utf-8", "us-ascii", "windows-1252"])
@settings(max_examples=50)
@given(text=st.text(alphabet="aé ÄßñÁ\n"))
def test_no_letter_of_windows_1252_is_lost(label: str, text: str) -> None:
    data = text.encode("cp1252")
    if "\ufffd" in data.decode("utf-8", "replace"):
        assert "\ufffd" not in decode_text(data, label)


@pytest.mark.parametrize("label", ["utf-16", "utf-16le", "utf-16be"])
@pytest.mark.parametrize("codec", ["utf-16", "utf-16-le", "utf-16-be"])
def test_byte_order_of_utf_16_is_found_out(label: str, codec: str) -> None:
    assert decode_text("né\nx".encode(codec), label) == "né\nx"


def test_text_without_a_zero_byte_is_not_utf_16() -> None:
    assert decode_text("né\nxy".encode(), "utf-16") == "né\nxy"


def test_unlabelled_text_may_begin_with_a_byte_order_mark() -> None:
    assert decode_text("né".encode("utf-16")) == "né"


def test_unlabelled_bytes_try_the_fallback_first() -> None:
    data = "Привет".encode("koi8-r")
    assert decode_text(data, "", "koi8-r") == "Привет"
    assert decode_text("Привет".encode(), "", "koi8-r") == "Привет"


def test_lone_surrogates_become_replacement_characters() -> None:
    assert clean_text("a\ud800b\udfff") == "a\ufffdb\ufffd"


LABELS = st.sampled_from([
    "utf-8", "utf-7", "utf-16", "gb2312", "big5", "hz", "iso-2022-jp", "iso-2022-kr", "shift_jis",
    "euc-kr", "latin1", "nope",
])  # fmt: skip


@settings(max_examples=200)
@given(data=st.binary(max_size=80), label=LABELS | st.text(max_size=12), fallback=LABELS)
@example(data=b"+2AA-+3AA-", label="utf-7", fallback="utf-8")
def test_bytes_of_any_label_are_text_for_postgres(data: bytes, label: str, fallback: str) -> None:
    text = decode_text(data, label, fallback)
    assert "\0" not in text
    assert "\r" not in text
    assert text.encode().decode() == text


@pytest.mark.parametrize(("encoding", "data", "expected"), [
    (b"quoted-printable", b"na=EFve=\n! =XX", b"na\xefve! =XX"),
    (b"QUOTED-PRINTABLE ", b"=41", b"A"),
    (b"base64", b"aGVs\nbG8=", b"hello"),
    (b"base64;", b"aGVs*bG8", b"hello"),
    (b"base64", b"a", b""),
    (b"base64", b"aGk\x00=x", b"hi"),
    (b"7-bit", b"=41", b"=41"),
    (b"text/html", b"=41", b"=41"),
    (b"", b"=41", b"=41"),
    (b"x-uuencode", b"begin 644 a.txt\n#0V%T\n`\nend\n", b"Cat"),
    (b"x-uuencode", b"no such thing", b"no such thing"),
])  # fmt: skip
def test_transfer_encodings_are_undone_as_far_as_they_hold(
    encoding: bytes, data: bytes, expected: bytes
) -> None:
    raw = b"Content-Transfer-Encoding: " + encoding + b"\n\n" + data
    assert decode_part(parse_mime(raw).parts[0]) == expected


# letters, marks of several classes, singletons, jamo, and composition exclusions
ODD = "ae<\n\u0301\u0316\u0323\u0344\u0f71\u2126\u212b\u1100\u1161\u11a8\ufb2c\uf900\U0001d160"


@given(st.text(st.sampled_from(ODD)) | st.text())
def test_text_is_composed_as_unicode_says(text: str) -> None:
    assert compose(text) == unicodedata.normalize("NFC", text)


@pytest.mark.parametrize("marks", ["\u0301\u0316", "\u0316\u0301", "\u0344\u0316", "\u0301"])
def test_marks_without_end_are_put_in_order(marks: str) -> None:
    assert unicodedata.is_normalized("NFC", compose("a" + marks * 250_000))


def test_text_that_is_composed_already_is_not_copied() -> None:
    for text in ("plain", "présidente", "数据库"):
        assert compose(text) is text


@pytest.mark.parametrize(("labels", "codec"), [
    ("win-1251 CP-1251 windows1251 x-cp1251 x_windows_1251 Win1251 'windows-1251' ms-1251",
     "cp1251"),
    ("euc_jp eucjp-win EUC-JP-MS x-euc-jp eucJP csEUCPkdFmtJapanese", "euc_jp"),
    ("iso8859_2 iso-8859_2 8859-2 latin-2 ISO_8859-2:1987 l2 iso-ir-101 cs-isolatin2", "iso8859-2"),
    ("cp950 big5_hkscs x-big5 windows-950", "big5hkscs"),
    ("windows-936 gb2312; GB_2312-80 x-gbk cp936 MS936 gb18030-2000", "gb18030"),
    ("EUCKR euc_kr windows-949 ksc5601 cp949", "cp949"),
    ("tis620 TIS-620 iso-8859-11 windows-874 cp874", "cp874"),
    ("win1250 cp1250 WINDOWS_1250", "cp1250"),
    ("cp-850 ibm-850 dos-850 IBM850", "cp850"),
    ("latin-9 latin9 iso8859_15 ISO-8859-15; iso-ir-203 l9 8859_15", "iso8859-15"),
    ("iso-ir-111 ECMA-cyrillic koi8-e", "koi8-u"),
    ("shift-jis sjis x-sjis ms932 Windows-31J cp932 shift_jis;", "cp932"),
    ("charset=utf-8 UTF_8 utf.8 utf-8;format=flowed x-utf-8", "utf-8"),
    ("iso-ir-100 latin-1 iso8859_1 cp-1252 csISOLatin1", "cp1252"),
    ("KOI-8-R koi8r KOI8_R cskoi8r", "koi8-r"),
])  # fmt: skip
def test_labels_are_compared_by_letters_and_digits(labels: str, codec: str) -> None:
    found = {find_codec(label) for label in labels.split()}
    assert {name and codecs.lookup(name).name for name in found} == {codecs.lookup(codec).name}


@pytest.mark.parametrize("text", [
    *["", " \n\t", "\u200b", "\u2060", "\xad", "\u034f", "\u200e", "\u3164", "\u2800", "\ufeff"],
    *["\u180e", "\u061c", "\u115f\u1160", "\uffa0", "\u2028", "\xa0\u200c \u200d", "\u3000",
      "\ufe0f"],
    *["\U000e0020", "\x01", "\ufffc", "\u0301"],
])  # fmt: skip
def test_text_without_a_visible_letter_is_blank(text: str) -> None:
    assert is_blank(text)
    assert not is_blank(text + "x")
    assert not is_blank(text + "。")


PIECES = [b"Gr\xc3\xbc\xc3\x9fe\n", b"second piece, and all that follows\n", b"third\n", b"x" * 400]


@pytest.mark.parametrize("joint", [b"\n", b"\r\n", b"", b"\n\n", b" \n", b"\n \n\n"])
def test_base64_of_padded_pieces_is_decoded_whole(joint: bytes) -> None:
    assert decode_base64(joint.join(map(base64.b64encode, PIECES))) == b"".join(PIECES)


@pytest.mark.parametrize(("data", "decoded"), [
    (b"aGk=\nc2Vj*b25kIHBpZWNl\n", b"hisecond piece"),
    (b"aGk=\nc2Vjb25kIHA", b"hisecond p"),
    (b"aGk=\n____________\nlist mailing list\n", b"hi"),
    (b"aGk=\n-- \nBest\n", b"hi"),
    (b"aGk=\nRegards\n", b"hi"),
    (b"aGk====\nYQ==", b"hia"),
])  # fmt: skip
def test_text_after_padding_is_base64_if_it_looks_so(data: bytes, decoded: bytes) -> None:
    assert decode_base64(data) == decoded


@pytest.mark.parametrize(
    "unit", [b"=", b"=A", b"aGk=\n", b"aG=aG", b"aGk=\n\n\n", b"=\t\n", b"= ", b"A*=", b"a=\n \n"]
)
def test_padding_without_end_is_read_once(unit: bytes) -> None:
    data = unit * (2_000_000 // len(unit))
    for encoding in ("base64", "quoted-printable"):
        assert len(decode_transfer(data, encoding)) <= len(data)


@pytest.mark.parametrize("blanks", [b" ", b"\t", b"   ", b" \t "])
@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_blanks_after_a_soft_break_do_not_count(blanks: bytes, end: bytes) -> None:
    data = b"soft exam=" + blanks + end + b"ple=" + blanks
    assert decode_transfer(data, "quoted-printable") == b"soft example"
    assert decode_transfer(b"a = b" + end, "quoted-printable") == b"a = b" + end


def test_line_ends_that_were_converted_twice_are_one() -> None:
    assert clean_text("a\r\r\nb\r\nc\rd") == "a\nb\nc\nd"
