"""Fold texts so that those are equal which mean the same to a reader of any program's mail."""

import re
import unicodedata

# marks of writing direction, soft hyphens, zero width spaces; the typographic apostrophe
_IGNORED = {
    0xAD: None,
    0x61C: None,
    **dict.fromkeys(range(0x200B, 0x2010)),
    **dict.fromkeys(range(0x202A, 0x202F)),
    **dict.fromkeys(range(0x2066, 0x206A)),
    0xFEFF: None,
    0x2019: "'",
}
_ACCENTS = re.compile(r"[\u0300-\u036f\u0591-\u05bd\u05bf-\u05c7\u064b-\u0652\u0670]+")
_UNSPACED = re.compile(r" ?([\u3040-\u30ff\u3400-\u9fff]) ?")  # kana and ideographs


def fold(text: str) -> str:
    """Take away case, accents, width, kinds of space, marks of direction, blanks at a colon."""
    if text.isascii():
        return " ".join(text.lower().split()).replace(" :", ":")
    # NFKD makes full-width colons and all no-break spaces ASCII
    text = unicodedata.normalize("NFKD", text.translate(_IGNORED)).casefold()
    text = unicodedata.normalize("NFC", _ACCENTS.sub("", text))
    return _UNSPACED.sub(r"\1", " ".join(text.split())).replace(" :", ":")
