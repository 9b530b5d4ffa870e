"""Match attributions ("On ... X wrote:") and Outlook's header block, and what they quote.

A quote without quote marks is known only by the attribution or header block above it.
"""

import re

from mail_assets.mail.body.line_rule import BodyLines, LineBlock

_MAX_ATTRIBUTION = 330  # characters, over at most four lines

_VERBS = (
    r"wrote|writes|schrieb|écrit|escribió|schreef|skrev|ha\ scritto|escreveu|escreve|kirjoitti|"
    r"napisał|写道|寫道|пишет|написал"
)
_ATTRIBUTION = re.compile(
    rf"(?ix)(?:-{{2,4}}\s)?(?:(?:on|am|le|el|op|den|il|em|w\ dniu)\b|于|於|在|\d{{1,4}}[-/.年])"
    rf".{{0,300}}?(?:{_VERBS}).{{0,60}}$"
    r"|.{3,300}(?:\b(?:wrote|writes|said|schrieb)|写道|寫道)(?:\s+in\s+(?:message\s+)?<\S+>)?"
    r"\s*[:：]\s*$|quoting\s.+:$|\*?from\*?:\s.+\bwrote:$"
)
_WORDS = (
    *_VERBS.replace("\\ ", " ").split("|"),
    "said",
    "quoting",
)  # one is in any attribution that is not right above a quote
_ATTRIBUTION_START = re.compile(
    r"(?i)(?:on|am|le|el|op|den|il|em|w dniu)\b|[于於在]|\d{1,4}[-/.年]\d|"
    r"[^@]{0,80}<\S+(?:@|\ at )|.{3,200}\bwrote in$"
)
_DATED = re.compile(
    r"(?i)(?:-{2,4} )?(?:on|am|le|el|op|den|il|em|w dniu|[于於在]|\d{1,4}[-/.年]).*\d.*[:：]\s*$"
)
# right above a quote a day is enough, whatever verb was chosen: "On Wed, Feb 05, 2003, X scrawled:"
_DATED_ABOVE_QUOTE = re.compile(
    r"(?i)(?:(?:on|am|le|el|op|den|il|em|w dniu)\b|[*\d于於在]).{0,200}"
    r"(?:\d:\d\d|\b(?:19|20)\d\d\b).{0,100}:\s*$"
)
_NAMED = re.compile(r"[^<>]{0,80}<[^\s<>@]{1,200}+@[^\s<>]{1,250}+>[^<>]{0,60}:\s*$")
_ORIGINAL = re.compile(
    r"(?i)[ \t]*(?:-{2,}\s*(?:original (?:message|appointment)|"
    r"ursprüngliche nachricht|message d.origine|mensaje original|原始邮件|邮件原件)\s*-{2,}|"
    r"_{20,}\s*$)"
)
# mutt names the author: "----- Forwarded message from Jo <jo@example.org> -----"
_FORWARDED = re.compile(
    r"(?i)[ \t]*(?:begin forwarded message:\s*$|-{2,}\s*(?:forwarded message(?: from .{1,200}?)?|"
    r"weitergeleitete nachricht|message transféré|mensaje reenviado)\s*-{2,})"
)
_FORWARDED_END = re.compile(r"(?i)[ \t]*-{2,}\s*end (?:of )?forwarded message\s*-{2,}")
_FROM_FIELD = re.compile(r"(?i)[ \t*]*(?:from|von|de|发件人)\*?\s*[:：]\s*\S")
_OTHER_FIELD = re.compile(
    r"(?i)[ \t*]*(?:sent|date|gesendet|datum|envoyé|to|an|subject|betreff|cc|"
    r"发送时间|收件人|日期)\*?\s*[:：]"
)
_GIT_MAGIC = re.compile(r"From [0-9a-f]{7,64} Mon Sep 17 00:00:00 2001")

# what the first line of an attribution, a header block or a rule begins or ends with
_HEAD = re.compile(
    r"[ \t]*(?:--|_{20}|\*|[于於在发]|\d{1,4}[-/.年]|"
    r"(?i:sent|to|date|datum|subject|betreff|begin|von|envoyé|from|de|on|am|le|el|op|den|il|em|"
    r"w dniu)\b)|.*(?:[:：>]\s*|wrote in)$"
)


def find_quote_heads(lines: list[str]) -> set[int]:
    """Return the lines that could begin what announces a quote; the rules look at these only."""
    return {i for i, line in enumerate(lines) if _HEAD.match(line)}


def is_attribution(line: str) -> bool:
    """Tell whether a line by itself reads like "On ... X wrote:"."""
    return _ATTRIBUTION.match(line.strip()) is not None


def is_original_message_line(line: str) -> bool:
    """Tell whether a line is a rule like "-----Original Message-----"."""
    return _ORIGINAL.match(line) is not None or _FORWARDED.match(line) is not None


def match_attribution(body: BodyLines, i: int) -> LineBlock | None:
    """ "On ... X wrote:" over a quote; over unmarked text it quotes all the rest of a top post."""
    width = _attribution_width(body, i)
    if width and body.quote_follows(i + width):
        return LineBlock(i + width, "attribution")
    if width == 1 and body.text_above and body.next_quoted[i] == len(body.lines):
        below = body.next_visible(i + 1)
        if below < len(body.lines) and _DATED.match(body.lines[i].strip()):
            return LineBlock(len(body.lines), "quote")
    return None


def match_outlook_header(body: BodyLines, i: int) -> LineBlock | None:
    """ "Original Message" or From/Sent/To/Subject: all below is quoted, if nothing says otherwise.

    Otherwise means marked quotes below, or no text above: then it is a forwarded message, as it
    is where the rule says so. What is forwarded is new to the list and stays text.
    The same block under git's magic line opens a commit message, which is text.
    """
    if i and _GIT_MAGIC.search(body.lines[i - 1]):
        return None
    if _FORWARDED_END.match(body.lines[i]):
        return LineBlock(i + 1, "attribution")
    stop = _outlook_header_end(body.lines, i)
    if stop == i:
        return None
    is_answer = body.text_above and not _FORWARDED.match(body.lines[i])
    if is_answer and body.next_quoted[i] == len(body.lines):
        return LineBlock(len(body.lines), "quote")
    return LineBlock(stop, "attribution")


def _attribution_width(body: BodyLines, i: int) -> int:
    """Count the lines, 1 to 4, that form an attribution from line i on; 0 for none."""
    lines = body.lines
    if not any(body.quoted[i + 1 : i + 5]):
        window = " ".join(line.strip() for line in lines[i : i + 4]).lower()
        if not any(word in window for word in _WORDS):
            return 0
    joined = lines[i].strip()
    for width in range(1, 5):
        if _ATTRIBUTION.match(joined):
            return width
        below = i + width
        if below >= len(lines):
            return 0
        if body.quoted[below]:  # right above a quote any verb will do: "Jo scribbled:"
            return width if _DATED_ABOVE_QUOTE.match(joined) or _NAMED.match(joined) else 0
        if not _ATTRIBUTION_START.match(joined):
            return 0
        joined = f"{joined} {lines[below].strip()}"
        if len(joined) > _MAX_ATTRIBUTION:
            return 0
    return 0


def _outlook_header_end(lines: list[str], i: int) -> int:
    below = lines[i + 1 : i + 12]
    if is_original_message_line(lines[i]):
        ruled = lines[i].lstrip().startswith("_")
        found = not ruled or any(_FROM_FIELD.match(line) for line in below[:2])
    else:  # some programs put Date first
        block = lines[i : i + 6]
        found = bool(_FROM_FIELD.match(block[0]) or _OTHER_FIELD.match(block[0]))
        found = found and any(_FROM_FIELD.match(line) for line in block[:3])
        found = found and sum(_OTHER_FIELD.match(line) is not None for line in block) >= 2
    if not found:
        return i
    fields = [
        x for x, line in enumerate(below) if _FROM_FIELD.match(line) or _OTHER_FIELD.match(line)
    ]
    return i + 1 + (fields[-1] + 1 if fields else 0)
