"""HTML bodies to text, for mail that has nothing better.

What lives here: the extraction and the marking of quotes. What does not: the choice between an
HTML part and a plain one (`message`).
"""

import re

from resiliparse.extract.html2text import extract_plain_text

from mail_assets.mail.charsets import clean

# Characters handed to the extractor. It is quadratic in unclosed links: 9 s at this size.
MAX_HTML = 1 << 20
MAX_QUOTE_DEPTH = 20

# Private-use characters that mark where a quote begins and ends, from the tags to the text.
_BEGIN, _END = "\ue0f0", "\ue0f1"
_BLOCKQUOTE = re.compile(r"<(/?)blockquote\b([^<>]{0,2000})>", re.I)
_CITED = re.compile(r"""type\s*=\s*["']?cite|class\s*=\s*["'][^"']*quote""", re.I)
_BLANK_LINES = re.compile(r"\n(?:[ \t]*\n){2,}")


def html_to_text(html: str) -> str:
    """The visible text with its line structure, "" where there is none; never raises.

    What a mail program quoted (`<blockquote type="cite">`) gets `> ` in front of its lines, as
    in a plain-text reply; a blockquote that only indents stays as it is.
    """
    html = clean(html[:MAX_HTML]).replace(_BEGIN, "").replace(_END, "")
    text = extract_plain_text(
        _mark_quotes(html),
        main_content=False,
        preserve_formatting=True,
        alt_texts=False,
        links=False,
    )
    return _BLANK_LINES.sub("\n\n", _with_quote_marks(clean(text))).strip("\n")


def _mark_quotes(html: str) -> str:
    cited: list[bool] = []

    def mark(tag: re.Match[str]) -> str:
        if not tag[1]:
            cited.append(_CITED.search(tag[2]) is not None)
            return f"{tag[0]}<div>{_BEGIN}</div>" if cited[-1] else tag[0]
        return f"<div>{_END}</div>{tag[0]}" if cited and cited.pop() else tag[0]

    return _BLOCKQUOTE.sub(mark, html)


def _with_quote_marks(text: str) -> str:
    if _BEGIN not in text:
        return text
    lines: list[str] = []
    depth = 0
    for line in text.split("\n"):
        if line.strip() == _BEGIN:
            depth += 1
        elif line.strip() == _END:
            depth = max(0, depth - 1)
        else:
            marks = ">" * min(depth, MAX_QUOTE_DEPTH)
            lines.append(f"{marks} {line}".rstrip(" ") if marks else line)
    return "\n".join(lines).replace(_BEGIN, "").replace(_END, "")
