"""Match signatures below a text: names, "-- " and its block, PGP armour, lines by phones.

A sign-off is a name that people put below their text, with the lines under it. A closing
("Regards,") is text. A signature is the name below it, with the lines that give titles or contact
data, and also a closing with a name: "Regards, Jo". The name must be the author's own or stand
below a closing. A sentence is never a signature.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import groupby, takewhile

from mail_assets.mail.body.attributions import is_attribution
from mail_assets.mail.body.footers import begins_ending, match_list_footer
from mail_assets.mail.body.lines import (
    FOOTER,
    PATCH,
    SIGNATURE,
    TEXT,
    BodyLines,
    LineBlock,
    find_runs,
    is_sentence,
)
from mail_assets.mail.body.phrases import (
    CLOSINGS,
    DEVICE_PHRASES,
    FOREIGN_DEVICE_PHRASES,
    THANKS,
)
from mail_assets.mail.body.quotes import separator_kind
from mail_assets.text.words import remove_accents

# --- names ---

_MAX_WORDS = 4  # words of a name
_MIN_SHORT = 3  # letters that a short form shares with the name: "Serg" of "Sergio"
_MAX_LOWER = 12  # letters of a lower-case name: "sam"
_NAME_EDGES = " \t-–—~_=*/\\.,;!()<>\"'"
_IDEOGRAPHS = re.compile(r"[\u3400-\u9fff]{2,}")  # a family name, or a given one
_COMMENT = re.compile(r"\([^()]{0,80}\)")
_WORD = re.compile(r"[^\W\d_]+")
_UMLAUT = re.compile(r"([aou])e(?=[^\W\d_])")  # within names without umlauts
_COLUMN = re.compile(r"[ \t]{3,}|\t|[ \t]*\|")  # start of a drawing: "Jo Roe          |  ___"
_NOT_NAMES = frozenset(
    (
        *("a", "all", "and", "any", "anybody", "anyone", "applied", "committed", "done", "for"),
        *("everybody", "everyone", "fixed", "folks", "from", "guys", "in", "is", "it", "lists"),
        *("lot", "me", "merged", "much", "my", "no", "none", "not", "of", "ok", "on", "or", "yes"),
        *("pushed", "that", "the", "there", "this", "to", "very", "we", "what", "with", "you"),
        "your",
    )
)


@lru_cache(maxsize=4096)
def name_words(name: str, address: str) -> frozenset[str]:
    """Return the words of an author's name and of the local part of the address.

    They are in lower case, as written and in plain letters.
    """
    words = _WORD.findall(f"{_COMMENT.sub(' ', name)} {address.partition('@')[0]}".casefold())
    return frozenset([*words, *map(_plain_letters, words)])


def _plain_letters(word: str) -> str:
    """Return a word without accents: "jorg" for "jörg" and for "joerg"."""
    return _UMLAUT.sub(r"\1", remove_accents(word))


def _is_name_of(line: str, words: frozenset[str]) -> bool:
    """Return whether a line is a form of a name: "- Jo", "jo roe", "Jo R. Roe", "J"."""
    if not words:
        return False
    text = _first_column(line).strip(_NAME_EDGES)
    found = text.split()
    if not 1 <= len(found) <= _MAX_WORDS or not all(_is_word(word) for word in found):
        return False
    first, *further = (each.strip(_NAME_EDGES).casefold() for each in found)
    if len(text) == 1:
        return any(word[0] == first for word in words)
    return _begins_any(first, words) and all(
        len(word) == 1 or not word.isascii() or _begins_any(word, words) for word in further
    )


def _looks_like_name(line: str) -> bool:
    """Return whether a line could be a name: one word, or up to four that are not in lower case."""
    found = _first_column(line).strip(_NAME_EDGES).split()
    if not 1 <= len(found) <= _MAX_WORDS or not all(_is_word(word) for word in found):
        return False
    if any(word.casefold() in _NOT_NAMES for word in found):
        return False
    if len(found) == 1:
        return len(found[0]) <= _MAX_LOWER or found[0][0].isupper()
    return all(not word[0].islower() for word in found)


def _first_column(line: str) -> str:
    if "   " in line or "\t" in line or "|" in line:
        return _COLUMN.split(line.strip(), maxsplit=1)[0]
    return line.strip()


def _begins_any(short: str, words: frozenset[str]) -> bool:
    plain = _plain_letters(short)
    return any(_is_form(plain, word) for word in words)


def _is_form(short: str, word: str) -> bool:
    """Return whether `short` equals or begins `word`; "?" replaces a lost letter."""
    if "?" in short and len(short) == len(word):
        return all(mine in ("?", letter) for mine, letter in zip(short, word, strict=True))
    if short == word:
        return True
    if _IDEOGRAPHS.fullmatch(short):  # such names have no blank
        return word.startswith(short) or word.endswith(short)
    return len(short) >= _MIN_SHORT and word.startswith(short)


def _is_word(word: str) -> bool:
    return (
        word.isalpha()
        or word.replace(".", "").replace("-", "").replace("'", "").replace("?", "").isalpha()
    )


# --- separators, PGP armour, phones ---

_MAX_SIGNATURE = 40  # lines; a longer "signature" is text under a separator
# A damaged separator within _NEAR_END lines of the body's end counts. One farther away counts if at
# most _MAX_DAMAGED visible lines follow it.
_NEAR_END, _MAX_DAMAGED = 12, 8
_MAX_ABOVE_NAME = 2  # lines of a signature down to the author's name: a rule, a saying
_MAX_LONE_SIGNATURE = 4  # lines of a signature without text above (RFC 1855 section 2.1.1)
_MAX_ARMOUR = 60  # lines

_SEPARATOR = "-- "  # RFC 3676 section 4.3
# without its blank, with a no-break blank, in quoted-printable, escaped by PGP, as a dash
_DAMAGED = re.compile(r"(?:--[ \xa0\t]{0,3}|--=20|- -- ?|[–—] ?)$")
_GIT_VERSION = re.compile(r"\d{1,2}\.\d{1,3}(?:\.[\w-]{1,20}){1,6}$")  # git signs a patch with it
_DASHES = frozenset("-–—")
_ITEM = re.compile(r"(?:[-*•]|\d{1,2}[.)]) \S")
_QUOTATION = frozenset("\"'“”„«»‘’")
_SQL_COMMENT = re.compile(r"--(?!-)")  # next to a damaged separator
_SQL_COMMENT_TEXT = re.compile(r"-- \S")  # next to a "-- "
_ARMOUR = re.compile(
    r"-----(BEGIN PGP (?:SIGNED MESSAGE|SIGNATURE|PUBLIC KEY BLOCK)|END PGP SIGNATURE)-----\s*$"
)
_ARMOUR_FIELD = re.compile(r"[A-Z][A-Za-z-]{1,30}: \S")
_DEVICE = re.compile(rf"(?i)[\W_]{{0,4}}(?:{'|'.join((*DEVICE_PHRASES, *FOREIGN_DEVICE_PHRASES))})")
#: The same for ASCII lines, ten times as fast.
_ASCII_DEVICE = re.compile(rf"(?i)[\W_]{{0,4}}+(?:{'|'.join(DEVICE_PHRASES)})")


def match_signature(body: BodyLines, i: int) -> LineBlock | None:
    """Match "-- " and the lines below it, up to a quote, a patch, another block or the end.

    A damaged separator needs a short block, or the author's name below it. A long letter below a
    separator, with nothing above it, is not a signature. A separator right above a list's footer
    belongs to the footer.
    """
    lines = body.lines
    if not _is_separator(lines[i]):
        return None
    comment = _SQL_COMMENT_TEXT if lines[i] == _SEPARATOR else _SQL_COMMENT
    if lines[i][:2] == "--" and any(comment.match(line) for line in body.neighbours(i)):
        return None
    if _GIT_VERSION.match("".join(body.texts[i + 1 : i + 2])):
        return LineBlock(body.next_visible(i + 2), SIGNATURE)
    limit = min(len(lines), i + 1 + _MAX_SIGNATURE)
    stop = i + 1
    while stop < limit and (_rules_name(body, i, stop) or not _ends_signature(body, stop)):
        stop += 1
    if stop == i + 1 + _MAX_SIGNATURE:
        return None
    visible = sum(map(bool, body.texts[i + 1 : stop]))
    if lines[i] != _SEPARATOR and not _begins_with_name(body, i + 1, stop):
        between = stop < len(lines) and _is_separator(lines[stop])  # as in the output of grep
        if len(lines) + bool(lines[-1]) - i > _NEAR_END and (between or visible > _MAX_DAMAGED):
            return None
        if _divides_text(body, i, stop):
            return None
    if not visible and stop == i + 1 < len(lines) and lines[stop][:1] not in "-_":
        footer = match_list_footer(body, stop)
        if footer is not None:
            return footer
    above = body.text_above or 0 <= body.first_quote < i
    if not above and visible > _MAX_LONE_SIGNATURE:
        return LineBlock(i + 1, SIGNATURE)
    return LineBlock(stop, SIGNATURE)


def _begins_with_name(body: BodyLines, start: int, stop: int) -> bool:
    """Return whether one of the first lines of a block is the author's name."""
    texts = [text for text in body.texts[start:stop] if text][:_MAX_ABOVE_NAME]
    return any(_is_name_of(text, body.author) for text in texts)


def _rules_name(body: BodyLines, i: int, stop: int) -> bool:
    """Return whether a rule is the first line below a separator, and the author's name follows."""
    if not (_RULE.match(body.texts[stop]) and body.next_visible(i + 1) == stop):
        return False
    below = "".join(body.texts[slice(body.next_visible(stop + 1), None)][:1])
    return _is_name_of(below, body.author)


def _divides_text(body: BodyLines, i: int, stop: int) -> bool:
    """Return whether a damaged separator is a rule between paragraphs of text.

    It is one if sentences or list items follow. A saying in a signature is a sentence too, so signs
    of a signature exclude it: a name or a closing above the separator, quotation marks, an address,
    or the escape of a clear-signed mail.
    """
    paragraphs = _paragraphs(body, i + 1, stop)
    if not paragraphs or body.lines[i].startswith("- -"):
        return False
    sentences = [is_sentence(paragraph) for paragraph in paragraphs]
    first = body.texts[body.next_visible(i + 1)]
    if first[0] in _QUOTATION or _CONTACT.search(first):
        return sum(sentences) > 1 and sentences[0]
    if sum(sentences) > 1 or sum(bool(_ITEM.match(text)) for text in body.texts[i + 1 : stop]) > 1:
        return True
    above = next((body.texts[x] for x in range(i - 1, -1, -1) if body.texts[x]), "")
    signed = is_closing(above) or (above and _is_closing_with_name(above, frozenset()))
    return not (signed or _looks_like_name(above) or _looks_like_name(first)) and any(sentences)


def _paragraphs(body: BodyLines, start: int, stop: int) -> list[str]:
    runs = groupby(body.texts[start:stop], key=bool)
    return [" ".join(texts) for visible, texts in runs if visible]


def match_pgp_armour(body: BodyLines, i: int) -> LineBlock | None:
    """Match a PGP signature or key; of a clear-signed message only the frame."""
    match = _ARMOUR.match(body.lines[i])
    if not match:
        return None
    block = body.lines[i : i + _MAX_ARMOUR]
    if match[1] == "BEGIN PGP SIGNED MESSAGE":
        stop = len([*takewhile(_ARMOUR_FIELD.match, block[1:])])
        stop += block[stop + 1 : stop + 2] != [] and not block[stop + 1].strip()
    elif match[1].startswith("BEGIN"):
        stop = next((x for x, line in enumerate(block) if line.startswith("-----END PGP")), 0)
    else:
        stop = 0
    return LineBlock(i + stop + 1, SIGNATURE)


def match_device_signature(body: BodyLines, i: int) -> LineBlock | None:
    """Match "Sent from my phone" under a blank line, a name or a quote.

    Elsewhere it could be the start of a line in a wrapped sentence.
    """
    above = body.texts[i - 1] if i else ""
    if not _names_device(body.texts[i]):
        return None
    if above and not body.quoted[i - 1] and not _looks_like_name(above):
        return None
    below = "".join(body.texts[i + 1 : i + 2])
    ended = (
        not below
        or i + 1 in body.quote_heads
        or _ends_signature(body, i + 1)
        or is_attribution(below)
    )
    return LineBlock(i + 1, SIGNATURE) if ended else None


_ARMOURED = re.compile(r"-----BEGIN PGP .*?(?:-----END PGP [A-Z ]{1,30}-----|\Z)", re.DOTALL)


def without_programs_lines(signature: str) -> str:
    """Return the text of a signature without PGP armour and lines such as "Sent from my phone"."""
    text = _ARMOURED.sub("", signature)
    return "".join(line for line in text.splitlines(keepends=True) if not _names_device(line))


def _names_device(line: str) -> bool:
    return (_ASCII_DEVICE if line.isascii() else _DEVICE).match(line) is not None


def _is_separator(line: str) -> bool:
    return line == _SEPARATOR or (line[:1] in _DASHES and _DAMAGED.match(line) is not None)


def _ends_signature(body: BodyLines, i: int) -> bool:
    line = body.lines[i]
    return (
        bool(body.quoted[i])
        or body.kinds[i] == PATCH
        or _is_separator(line)
        or bool(separator_kind(line))
        or _ARMOUR.match(line) is not None
        or (begins_ending(body.texts, i) and match_list_footer(body, i) is not None)
        or (i in body.quote_heads and body.quote_heads[i].kind != "text")
        or (bool(body.texts[i]) and body.quote_follows(i + 1) and is_attribution(line))
    )


# --- sign-offs ---

_MAX_LINES = 12  # lines of a sign-off
_MAX_LINE = 76  # characters of a line
_MAX_TITLE = 50  # characters of a line that gives a title or a company
_MAX_ALONE = 30  # characters of a name between blank lines
_MAX_CLOSING = 40  # characters of a closing
_MAX_CLOSING_WORDS = 4

_UNDERSCORES = "_" * 20
_CONTACT = re.compile(
    r"(?i)@|://|www\.|\S at \S{1,60}(?:\.| dot )\S|\(\d{2,4}\)|\+?\d[\d ().-]{7}|"
    r"\b(?:tel|fax|phone|mobile|cell|e-?mail|icq|jabber|irc|web|skype|pgp|gpg)\b"
)
_PHONE = re.compile(
    r"(?i)(?:(?:tele?|fax|phone|mobile?|cell|office|home|work|[tmpcof])\b[.:]{0,2} {0,3})?"
    r"[+(]?\d[\d ().+/-]{5,23}\d$"
)
_RULE = re.compile(r"[-_=*~#+\u2500-\u257f\uff1d\uff3f]{4,}$")  # also of drawn lines
_LONG_RULE = re.compile(r"[^\w\s]{20,}$")
_ANCHOR = re.compile(r"[-_=*~#+\u2014\u2501]{3,}|-- ?$")  # a rule, or the separator
_CODE = re.compile(r"[{};$`]|(?<!=)=(?!=)|[A-Za-z_]\(|::")
_VERDICT = re.compile(
    r"(?i)\W*(?:n?ack(?:ed)?|nak|lgtm|[+-] ?1|yes|no|never|(?:dis)?agree[ds]?|reject(?:ed)?|"
    r"applied|pushed|merged|queued|reverted|withdrawn|wontfix|done|fixed|confirmed|denied)\b"
)
_WISH = re.compile(
    r"(?:have an? \w{1,12} (?:day|one|week|weekend|evening|time)|"
    r"thanks? (?:you )?(?:in advance|again|for \w{1,12}(?: \w{1,12}){0,3})|"
    r"looking forward to .{1,24})$"
)
_CLOSING_EDGES = " \t,.!;:-–—~*"
_NAME_MARK = re.compile(r"(?:~|[–—] ?)(?=[^\W\d_])")  # some lists hide the author
# first words of all closings; "" if a mark precedes one
_FIRST_WORDS = frozenset({"", *(closing.split()[0].strip(_CLOSING_EDGES) for closing in CLOSINGS)})


def mark_sign_offs(body: BodyLines) -> None:
    """Set the kind SIGNATURE for the sign-offs at the ends of the text."""
    author = body.author
    first = body.next_visible(0)
    for start, stop, kind in reversed([*find_runs(body.kinds)]):
        run = range(max(start, first + 1), stop)
        if kind == FOOTER:
            for i in reversed(run):
                if body.lines[i].startswith(_UNDERSCORES):
                    _claim_ruled(body, i, author)
        elif kind == TEXT:
            _mark_run(body, run, author)


def _mark_run(body: BodyLines, run: range, author: frozenset[str]) -> None:
    """Mark the sign-off at the end of a run of text, and lone names above a postscript."""
    lines, texts = body.lines, body.texts
    last = _last_visible(texts, run)
    while last in run:
        start = max(_sign_off_start(body, last, author), run.start)
        body.fill(start, LineBlock(last + 1, SIGNATURE))
        if start >= last:
            break
        last = _last_visible(texts, range(run.start, start))
    above = range(run.start, last)
    short = [i for i in above if texts[i] and not texts[i + 1] and len(lines[i]) <= _MAX_ALONE]
    for end in reversed(short):
        i = end
        while i > run.start and texts[i][-1:].isdigit() and _PHONE.match(texts[i]):
            i -= 1
        stands_alone = not texts[i - 1] or is_closing(texts[i - 1])
        if stands_alone and texts[i] and _is_signed(body, i, author):
            body.fill(i, LineBlock(end + 1, SIGNATURE))


def _last_visible(texts: list[str], run: range) -> int:
    return next((i for i in reversed(run) if texts[i]), run.start - 1)


def is_closing(line: str) -> bool:
    """Return whether a line is a closing, such as "Best regards,"."""
    text = line.strip(_CLOSING_EDGES)
    if len(text) > _MAX_CLOSING:
        return False
    text = text.casefold()
    return len(text) <= _MAX_CLOSING and (text in CLOSINGS or _WISH.match(text) is not None)


def trim_sign_off(lines: Sequence[str], block: list[int], author: frozenset[str]) -> list[int]:
    """Return the part of a learnt block, the last line first, that may be a sign-off.

    That part begins a paragraph or follows a closing, is not a sentence, and has the author's name
    or a rule. The last condition is needed because others may write under the author's name, and
    because authors write addresses and links in their texts too.
    """
    block = list(block)
    while block and not _begins_sign_off(lines, block[-1]):
        block.pop()
    return block if any(_is_anchor(lines[i], author) for i in block) else []


def _is_anchor(line: str, author: frozenset[str]) -> bool:
    return _ANCHOR.match(line.strip()) is not None or names_author(line, author)


def names_author(line: str, author: frozenset[str]) -> bool:
    """Return whether a line has a word of the author's name that is longer than one letter."""
    return any(len(word) > 1 for word in author.intersection(_WORD.findall(line.casefold())))


def is_code_or_verdict(line: str) -> bool:
    """Return whether a line is code, is a prompt, or begins with a decision: "NAK", "Applied"."""
    if line.rstrip("`* ").endswith("$") or _VERDICT.match(line):
        return True
    words = (word for word in line.split() if "://" not in word and "@" not in word)
    return _CODE.search(" ".join(words)) is not None


def _begins_sign_off(lines: Sequence[str], i: int) -> bool:
    line, above = lines[i].strip(), lines[i - 1].strip() if i else ""
    if is_closing(line) or (line[-1] in ".,!?:" and not _CONTACT.search(line)):
        return False
    if not above or is_closing(above) or _LONG_RULE.match(line):
        return True
    return _RULE.match(above) is not None or above == "--"


def _claim_ruled(body: BodyLines, i: int, author: frozenset[str]) -> None:
    """Turn a footer below a rule into a signature if it begins with the author's name."""
    kinds = body.kinds
    if i + 1 < len(kinds) and _is_name_of(body.texts[i + 1], author):
        while i < len(kinds) and kinds[i] == FOOTER:
            kinds[i] = SIGNATURE
            i += 1


def _sign_off_start(body: BodyLines, last: int, author: frozenset[str]) -> int:
    """Return the first line of the sign-off that ends in line `last`, or last + 1 without one."""
    start = last + 1
    for i in range(last, max(last - _MAX_LINES, -1), -1):
        text = body.texts[i]
        if not text or body.kinds[i] != TEXT:
            break
        if _is_signed(body, i, author):
            start = i
        elif _RULE.match(text) and (start == i + 1 <= last or _names_own(body, i, last)):
            return i
        elif not _says_who(text):
            break
    return start


def _names_own(body: BodyLines, i: int, last: int) -> bool:
    """Return whether a line below the rule `i` has the author's name in an address or a link."""
    texts = body.texts[i + 1 : last + 1]
    return any(_has_contact(text) and names_author(text, body.author) for text in texts)


def _is_signed(body: BodyLines, i: int, author: frozenset[str]) -> bool:
    text = body.texts[i]
    if len(text) > _MAX_LINE or text[-1] == "," or is_closing(text):  # "Jo," greets
        return False
    if _is_name_of(text, author) or _is_closing_with_name(text, author):
        return True
    if _NAME_MARK.match(text) and not (i and body.texts[i - 1]):
        return _looks_like_name(text)
    return _closing_above(body, i) and _looks_like_name(text)


def _is_closing_with_name(line: str, author: frozenset[str]) -> bool:
    words = line.split()
    if words[0].strip(_CLOSING_EDGES).casefold() not in _FIRST_WORDS:
        return False
    for count in range(min(_MAX_CLOSING_WORDS, len(words) - 1), 0, -1):
        closing = " ".join(words[:count]).strip(_CLOSING_EDGES).casefold()
        if closing in CLOSINGS:
            name = " ".join(words[count:])
            if _is_name_of(name, author):
                return True
            known = not closing.startswith(THANKS) and words[count - 1][-1] in ",.-"
            return known and len(words) - count <= 3 and _looks_like_name(name.title())
    return False


def _closing_above(body: BodyLines, i: int) -> bool:
    for x in range(i - 1, max(i - 4, -1), -1):
        if body.kinds[x] != TEXT:
            return False
        if body.texts[x]:
            return is_closing(body.texts[x])
    return False


def _says_who(line: str) -> bool:
    if len(line) > _MAX_LINE:
        return False
    return (len(line) <= _MAX_TITLE and line[-1] not in ".?!:;,") or _has_contact(line)


@lru_cache(maxsize=4096)  # people sign with the same lines
def _has_contact(line: str) -> bool:
    return _CONTACT.search(line) is not None
