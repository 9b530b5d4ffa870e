"""Match the footers below a mail by the phrases that programs write.

Covered are list managers, services, companies' disclaimers and the notes of Mailman 2. Mailman's
Scrubber.py flattens a mail of several parts for its archive. It puts a line between two parts,
names the parts that it leaves out, and adds a note with the address of each stored part. Everything
but that address is translated into the list's language (catalogues of Mailman 2.1,
messages/*/LC_MESSAGES/mailman.po, up to 2.1.39):

    Skipped content of type multipart/alternative-------------- next part --------------
    A non-text attachment was scrubbed...
    Name: crane.png
    URL: <http://lists.example.org/pipermail/dev/attachments/20040105/5e5fcbf6/crane.png>

Other footers need no phrase: blocks that repeat are learnt (`endings`).
"""

import re

from mail_assets.mail.body.lines import FOOTER, BodyLines, LineBlock
from mail_assets.mail.body.phrases import (
    DISCLAIMER_PHRASES,
    DISCLAIMER_WORDS,
    LIST_PHRASES,
    SERVICE_PHRASES,
)

_NEXT_PART_PHRASES = (
    *("next part", "القسم الثاني", "siguiente parte", "part següent", "další část", "næste del"),
    *("nächster Teil", "επόμενο μέρος", "sekvanta parto", "próxima parte", "hurrengo zatia"),
    *("قسمت بعدی", "seuraava osa", "section suivante", "·הקטע הבא·", "sljedeći dio"),
    *("következő rész", "proxime parte", "parte successiva", "volgend deel", "neste del"),
    *("następna część", "partea următoare", "следующая часть", "ďalšia časť", "naslednji del"),
    *("следећи дио", "sonraki bölüm", "наступна частина", "phần kế tiếp", "下一部分", "下一部份"),
)
# An optional note on a part that was left out, then the line between two parts. No line end
# separates the two.
_NEXT_PART = re.compile(
    r"(?:[^\n]{0,60}[a-z]/[a-z][\w.+-]{0,60}?)?"
    rf"(?:-{{9,20}}+|━{{6}}) ?(?:{'|'.join(_NEXT_PART_PHRASES)}) ?(?:-{{9,20}}|━{{6}})$",
    re.I,
)
_SCRUBBED = re.compile(r"An? .{1,40} was scrubbed\.\.\.$")
_NAMED_VALUE = re.compile(r"\w[^\n:：]{0,30}[:：] {0,4}\S")
_STORED_PART = re.compile(
    r"\w[^\n:：]{0,30}[:：] {0,4}<?(?:https?:/)?/\S{1,400}/attachments/\d{8}/"
)
_MAX_NOTE = 8  # lines

# ends of a line between two parts, and of the first line of a note
_SCRUBBED_ENDS = ("----", "━━━━", "...", "…", "hellip;")


def _match_scrubbed_part(body: BodyLines, i: int) -> LineBlock | None:
    # the line between two parts with the note below it, or a note alone
    text = body.texts[i]
    if not text.endswith(_SCRUBBED_ENDS):
        return None
    if not _NEXT_PART.match(text):
        stop = _note_end(body.lines, i)
        return LineBlock(stop, FOOTER) if stop > i else None
    return LineBlock(max(i + 1, _note_end(body.lines, i + 1)), FOOTER)


def _note_end(lines: list[str], i: int) -> int:
    """Return the line after the note that begins at line i, or i if none begins there."""
    below = [*lines[i + 1 : i + _MAX_NOTE], ""][: _MAX_NOTE - 1]
    for x, line in enumerate(below, i + 1):
        if _STORED_PART.match(line):
            return x + 1
        if not _NAMED_VALUE.match(line):
            return x if _SCRUBBED.match("".join(lines[i : i + 1])) else i
    return i


_MAX_LINKED = 8  # lines of a footer that are searched for its link
_MAX_PARAGRAPH = 16  # lines of a footer or a disclaimer
_MAX_ADVERT = 14  # lines between two rules
_MIN_DISCLAIMER_WORDS = 2
_MAX_COMPANY = 30  # characters of a company's name between a rule and its disclaimer
_MAX_BLANKS = 5  # lines from the company's name to the disclaimer

_CLEAR = re.compile(rf"(?i)(?:{'|'.join((*LIST_PHRASES, *SERVICE_PHRASES))})")
_DISCLAIMER = re.compile(rf"(?i)(?:{'|'.join(DISCLAIMER_PHRASES)})")
_DISCLAIMER_WORD = re.compile(rf"(?i)(?:{DISCLAIMER_WORDS})")
_BROADCAST = re.compile(r"-{20,}\(end of broadcast\)-{20,}$")
_NAMED_LIST = re.compile(r"(?i)[\w.+-]{2,60} mailing list$")
_LINE_RULE = re.compile(r"(?:[-_=*~#]{10,}|(?:[-_=][-.=:]){6,50}[-_=]{0,9})$")
_UNDERSCORES = re.compile(r"_{30,}$")
_STARS = re.compile(r"\*{12}$")  # PostgreSQL's lists in 1999 and 2000
_LONE_LINE = re.compile(r"[ \t]*(?:https?://|Message ID: )\S+\s*$")  # "Message ID" is by GitHub
_LIST_LINK = re.compile(r"(?i)mailing list|https?://|@")


def match_list_footer(body: BodyLines, i: int) -> LineBlock | None:
    """Match the footer of a list or a service, up to a blank line or a lone link below it."""
    if (scrubbed := _match_scrubbed_part(body, i)) is not None:
        return scrubbed
    text = body.texts[i]
    if _BROADCAST.match(text) or _CLEAR.match(text):
        if _LINE_RULE.match(text) and not _clear_below(body, i):
            return None
        return LineBlock(_paragraph_end(body, i), FOOTER)
    if _STARS.match(text) and body.next_visible(i + 1) == len(body.lines):
        return LineBlock(len(body.lines), FOOTER)
    if _LINE_RULE.match(text):
        return _match_ruled(body, i)
    if _NAMED_LIST.match(text) and _has_link(body, i, 1):
        return LineBlock(_paragraph_end(body, i), FOOTER)
    return None


def match_disclaimer(body: BodyLines, i: int) -> LineBlock | None:
    """Match a company's disclaimer: a paragraph about recipients and confidentiality."""
    if not _DISCLAIMER.match(body.texts[i]):
        return None
    stop = i
    limit = min(len(body.lines), i + _MAX_PARAGRAPH)
    while stop < limit and body.texts[stop] and (stop == i or stop not in body.quote_heads):
        stop += 1
    words = {word.lower() for word in _DISCLAIMER_WORD.findall(" ".join(body.lines[i:stop]))}
    return LineBlock(stop, FOOTER) if len(words) >= _MIN_DISCLAIMER_WORDS else None


def _match_ruled(body: BodyLines, i: int) -> LineBlock | None:
    """Match a footer below a rule, or an advert between a rule and the list's own footer."""
    if _UNDERSCORES.match(body.texts[i]) and _has_link(body, i, 4):
        return LineBlock(_paragraph_end(body, i), FOOTER)
    if _clear_below(body, i):
        return LineBlock(i + 1, FOOTER)
    if below := _below_company(body, i + 1):
        return LineBlock(below, FOOTER)
    limit = body.first_quoted(i, i + _MAX_ADVERT)
    for x in range(i + 1, limit):
        if _UNDERSCORES.match(body.texts[x]):
            return LineBlock(x, FOOTER) if _names_list(body, x) and _has_link(body, i, 8) else None
    return None


def _clear_below(body: BodyLines, i: int) -> bool:
    """Return whether the next visible line begins a known footer or a disclaimer."""
    below = body.next_visible(i + 1)
    if below >= len(body.lines) or below > i + 2:
        return False
    text = body.texts[below]
    clear = _CLEAR.match(text) and not _LINE_RULE.match(text)
    return bool(clear) or match_disclaimer(body, below) is not None


def _below_company(body: BodyLines, i: int) -> int | None:
    """Return the first line of a disclaimer whose paragraph follows the short line i, or None."""
    if i >= len(body.lines) or not 0 < len(body.texts[i]) <= _MAX_COMPANY:
        return None
    below = body.next_visible(i + 1)
    is_near = i + 1 < below < min(len(body.lines), i + _MAX_BLANKS)
    return below if is_near and match_disclaimer(body, below) else None


def _names_list(body: BodyLines, i: int) -> bool:
    below = body.next_visible(i + 1)
    return below < len(body.lines) and "mailing list" in body.lines[below].lower()


def _has_link(body: BodyLines, i: int, lines: int) -> bool:
    below = body.lines[i + 1 : body.first_quoted(i, i + _MAX_LINKED)]
    near = [line for line in below if line.strip()][:lines]
    return any(_LIST_LINK.search(line) for line in near)


def _ends_paragraph(line: str) -> bool:
    return line[:2] == "--" and (line.rstrip() == "--" or _NEXT_PART.match(line) is not None)


def _paragraph_end(body: BodyLines, i: int) -> int:
    """Return the line after the paragraph, or after a lone link or message id below it."""
    lines = body.lines
    limit = body.first_quoted(i, i + _MAX_PARAGRAPH)
    stop = i + 1
    while stop < limit and lines[stop].strip() and not _ends_paragraph(lines[stop]):
        if stop in body.quote_heads:
            return stop
        stop += 1
    below = body.next_visible(stop)
    return below + 1 if below < limit and _LONE_LINE.match(lines[below]) else stop


# --- a quick pre-check: few lines can begin an ending ---

_MARKS = "-_=*~#–—"
_MAX_ABOVE = 30  # characters of the line above, a name or part of a rule; longer lines are prose
_LAST_LATIN = "\u024f"
_EDGES = '!<>*()[]{}_-=:,;."“”¡¿~# '
_LIST = frozenset({"list", "List", "LIST"})
_LAST_LETTERS = frozenset("tT") | {end[-1] for end in _SCRUBBED_ENDS}
_RULE_ENDS = ("-", "_", "=", "*", "~", "#")
_DEVICE_ENDS = ("送信", "küldve", "gönderildi", "보냄", "보냈습니다")
# first letters of the phrases in non-Latin scripts
_FOREIGN_LETTERS = frozenset("онσςנأت发從从傳發本此こ본이")

# first words of all phrases of footers and signatures in phrases.py
_FIRST_WORDS = frozenset(
    (
        *("to", "sent", "for", "you", "list", "subscribe", "unsubscribe", "yahoo", "community"),
        *("groups", "groups.io", "this", "these", "reply", "visit", "mailing", "email", "e-mail"),
        *("configure", "if", "no", "internal", "checked", "incoming", "outgoing", "virus-free"),
        *(
            "virus",
            "the",
            "diese",
            "der",
            "ce",
            "l",
            "este",
            "esta",
            "questo",
            "le",
            "dit",
            "deze",
            "ta",
            "niniejsza",
        ),
        *("do", "get", "join", "confidentiality", "disclaimer", "legal", "important", "notice"),
        *("privileged", "information", "content", "contents", "any", "please", "your", "posted"),
        *("written", "von", "mit", "aus", "gesendet", "verschickt", "versendet", "envoyé"),
        *("envoyer", "envoye", "skickat", "skickades", "sendt", "lähetetty", "verzonden"),
        *("verstuurd", "enviado", "enviat", "inviato", "wysłano", "wysłane", "wysłany"),
        *("odesláno", "odoslané", "elküldve", "trimis", "poslano", "detta", "dette"),
        *("denne", "данное", "настоящее", "это", "това"),
    )
)


def find_ending_heads(texts: list[str], own: list[int]) -> list[int]:
    """Return the lines of `own` where a signature or footer may begin; `texts` are stripped."""
    return [
        i
        for i in own
        if len(texts[i - 1]) <= _MAX_ABOVE
        or texts[i - 1][-1] in _MARKS
        or texts[i][0] in _MARKS
        or texts[i][-1] in _LAST_LETTERS
        or i == 0
        if begins_ending(texts, i)
    ]


def begins_ending(texts: list[str], i: int) -> bool:
    """Return whether a signature or a footer could begin at line i."""
    text = texts[i]
    if not text:
        return False
    if text[0] in _MARKS:
        return text[:2] == "--" or text[:3] == "- -" or text[-1] in _MARKS or text[0] in "*_–—"
    if text[-1] in _LAST_LETTERS and (text[-4:] in _LIST or text.endswith(_SCRUBBED_ENDS)):
        return True
    above = texts[i - 1] if i else ""
    if len(above) > _MAX_ABOVE and not above.endswith(_RULE_ENDS):
        return False
    word = text.split(None, 1)[0].strip(_EDGES).lower()
    return (
        word in _FIRST_WORDS
        or text[0] == "<"
        or " mailing list -- " in text
        or ("'" in word and word.partition("'")[0] in _FIRST_WORDS)
        or (not text.isascii() and _is_foreign_ending(text, word))
    )


def _is_foreign_ending(text: str, word: str) -> bool:
    if text.rstrip(".!").endswith(_DEVICE_ENDS) or word.partition("’")[0] in _FIRST_WORDS:
        return True
    if text[0] <= _LAST_LATIN:
        return False
    lower = text.lower()
    return (
        not lower[0].isalpha()
        or lower[0] in _FOREIGN_LETTERS
        or any(word in lower for word in _DEVICE_ENDS)
        or "mailing list" in lower
    )
