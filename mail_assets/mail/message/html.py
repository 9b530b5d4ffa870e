"""Convert HTML bodies to text, with quote marks in front of quoted lines."""

import re

from resiliparse.extract.html2text import extract_plain_text

from mail_assets.mail.message.charsets import clean_text

MAX_HTML = 2 << 20  # characters of HTML in one message that are read
MAX_QUOTE_DEPTH = 20
#: Lists within lists whose lines are indented: by all of them, 64 KB of `<ul>a` become 172 MB.
MAX_LIST_DEPTH = 20

# Private-use characters that mark where a quote begins and ends, from the tags to the text.
_BEGIN, _END = "\ue0f0", "\ue0f1"
# Each alternative ends at the end of the text if nothing else ends it, so no part is read twice.
_MARKUP = re.compile(
    r"<!--.*?(?:-->|\Z)|<(?P<hidden>script|style)\b.*?(?:</(?P=hidden)\b[^>]*(?:>|\Z)|\Z)|"
    r"<(?P<name>/?[a-z][a-z0-9]*+)"
    r"""(?P<rest>(?:=\s*+(?:"[^"]*+"|'[^']*+')|[^>])*+)(?:>|\Z)""",
    re.I | re.S,
)
_SHAPING = re.compile(
    r"/?(?:html|head|title|body|p|div|br|hr|pre|blockquote|center|address|section|article|header|"
    r"footer|h[1-6]|ul|ol|li|dl|dt|dd|table|caption|thead|tbody|tfoot|tr|td|th)\Z"
)
_LISTS, _TABLES = frozenset({"ul", "ol"}), frozenset({"table", "caption", "td", "th"})
# A blockquote is a quote but where its style draws no line at its side: that one only indents.
_CITED = re.compile(
    r"""type\s*=\s*["']?cite|class\s*=\s*["'][^"']*quote|border-left[^:;"']{0,20}:(?!\s*(?:none|0))""",
    re.I,
)
_STYLE = re.compile(r"\bstyle\s*=", re.I)
# What Outlook and Yahoo! Mail draw around a quoted mail.
_CITED_DIV = re.compile(
    r"""border:\s*none;\s*border-left:\s*solid|class\s*=\s*["']?yahoo_quoted""", re.I
)
_CITED_WITHIN = 2_000  # characters of attributes
_BLANK_LINES = re.compile(r"\n(?:[ \t]*\n){2,}")


def html_to_text(html: str) -> str:
    """The visible text of at most MAX_HTML characters with its line structure; never raises.

    What a mail program quoted gets `> ` in front of its lines, as in a plain-text reply; a
    blockquote that only indents stays as it is.
    """
    html = clean_text(html[:MAX_HTML]).replace(_BEGIN, "").replace(_END, "")
    text = extract_plain_text(
        _shape(html),
        main_content=False,
        preserve_formatting=True,
        alt_texts=False,
        links=False,
    )
    return _BLANK_LINES.sub("\n\n", _with_quote_marks(clean_text(text))).strip("\n")


def _shape(html: str) -> str:
    """HTML reduced to the tags that shape its text, without attributes, the quotes marked.

    The extractor is quadratic in unclosed links and fonts (9 s for 1 MB), in the attributes of
    one tag (11 s for 256 KB), neither of which changes the text, and in lists within lists.
    """
    cited: dict[str, list[bool]] = {"blockquote": [], "div": []}  # whether each open one is
    lists = _OpenLists()

    def shape(markup: re.Match[str]) -> str:
        name = (markup["name"] or "").lower()
        if not _SHAPING.match(name):
            return ""
        kind = name.removeprefix("/")
        if kind in _LISTS or kind in _TABLES:
            depth = lists.enter_or_leave(name)
            if kind in _LISTS and depth > MAX_LIST_DEPTH:
                return "</div>" if name.startswith("/") else "<div>"
        if name in cited:
            is_cited = _is_cited(name, markup["rest"][:_CITED_WITHIN])
            cited[name].append(is_cited)
            return f"<{name}><div>{_BEGIN}</div>" if is_cited else f"<{name}>"
        if (opened := cited.get(name[1:])) and opened.pop():
            return f"<div>{_END}</div><{name}>"
        return f"<{name}>"

    return _MARKUP.sub(shape, html)


class _OpenLists:
    """The lists that are open at a tag, never fewer than a parser of HTML has open.

    The end of a list counts where it is the last that was opened, with no table begun in it:
    another may be passed over by the parser, which then leaves the list open.
    https://html.spec.whatwg.org/multipage/parsing.html#has-an-element-in-scope
    """

    def __init__(self) -> None:
        self._open: list[str] = []
        self._depth = 0

    def enter_or_leave(self, name: str) -> int:
        """Take a tag of a list or table over, and return how many lists it is within, its own too.

        0 where the end of a list is not that of the last.
        """
        depth = self._depth
        if not name.startswith("/"):
            self._open.append(name)
            self._depth += name in _LISTS
            return self._depth
        if not self._open or self._open[-1] != name[1:]:
            return 0
        self._depth -= self._open.pop() in _LISTS
        return depth


def _is_cited(name: str, attributes: str) -> bool:
    if name == "div":
        return _CITED_DIV.search(attributes) is not None
    return _CITED.search(attributes) is not None or not _STYLE.search(attributes)


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
