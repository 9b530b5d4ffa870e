"""Extract the visible text of HTML mail, with quote marks before quoted lines."""

import re
from collections import Counter

from resiliparse.extract.html2text import extract_plain_text

from mail_assets.mail.message.decoding import clean_text

MAX_HTML = 2 << 20  # characters of HTML read of one message
MAX_QUOTE_DEPTH = 20
MAX_LIST_DEPTH = 20  # indented levels; without a limit, 64 KB of `<ul>a` become 172 MB

# Private-use characters that carry the beginning and end of a quote from the tags to the text.
_BEGIN, _END = "\ue0f0", "\ue0f1"
# Each alternative also matches up to the end of the text, so nothing is read twice. Comments end as
# in https://html.spec.whatwg.org/multipage/parsing.html#comment-start-state
_MARKUP = re.compile(
    r"<!--(?:-?>|.*?(?:--!?>|\Z))|<(?P<hidden>script|style)\b.*?(?:</(?P=hidden)\b[^>]*(?:>|\Z)|\Z)|"
    r"<(?P<name>/?[a-z][a-z0-9]*+)"
    r"""(?P<rest>(?:=\s*+(?:"[^"]*+"|'[^']*+')|[^>])*+)(?:>|\Z)""",
    re.I | re.S,
)
_SHAPING_TAG = re.compile(
    r"/?(?:html|head|title|body|p|div|br|hr|pre|blockquote|center|address|section|article|header|"
    r"footer|h[1-6]|ul|ol|li|dl|dt|dd|table|caption|thead|tbody|tfoot|tr|td|th)\Z"
)
# Other elements that begin a line. The extractor treats them as inline, so they become `div`.
_LINE_TAG = re.compile(
    r"/?(?:main|nav|aside|figure|figcaption|details|summary|fieldset|legend|form|dialog|menu|search)\Z"
)
_LISTS, _TABLES = frozenset({"ul", "ol"}), frozenset({"table", "caption", "td", "th"})
# A blockquote is a quote, unless it has a style without a line at its side: then it only indents.
_CITED = re.compile(
    r"""type\s*=\s*["']?cite|class\s*=\s*["'][^"']*quote|border-left[^:;"']{0,20}:(?!\s*(?:none|0))""",
    re.I,
)
_STYLE = re.compile(r"\bstyle\s*=", re.I)
# Outlook and Yahoo! Mail put this around a quoted mail.
_CITED_DIV = re.compile(
    r"""border:\s*none;\s*border-left:\s*solid|class\s*=\s*["']?yahoo_quoted""", re.I
)
_STYLED_WITHIN = 2_000  # characters of attributes
_BLANK_LINES = re.compile(r"\n(?:[ \t]*\n){2,}")


def html_to_text(html: str) -> str:
    """Return the visible text, with line breaks, of at most MAX_HTML characters; never raises.

    Invisible text is left out: hidden elements, templates, comments. Lines in a quote get `> ` as
    in a plain-text reply. A blockquote that only indents gets no mark.
    """
    html = clean_text(html[:MAX_HTML]).replace(_BEGIN, "").replace(_END, "")
    text = extract_plain_text(
        _shape(html), main_content=False, preserve_formatting=True, alt_texts=False, links=False
    )
    return _BLANK_LINES.sub("\n\n", _with_quote_marks(clean_text(text))).strip("\n")


def _shape(html: str) -> str:
    """Reduce HTML to the tags that shape its visible text, without attributes, and mark quotes.

    The extractor takes quadratic time for unclosed links and fonts, for the attributes of one tag
    and for nested lists. Links, fonts and attributes do not change the text, so they are dropped.
    """
    cited: dict[str, list[bool]] = {"blockquote": [], "div": []}  # per open element: is a quote
    lists = _OpenLists()
    hidden = _Hidden()
    shaped: list[str] = []
    at = 0
    for markup in _MARKUP.finditer(html):
        if not hidden.hides:
            shaped.append(html[at : markup.start()])
        at = markup.end()
        name = (markup["name"] or "").lower()
        if _LINE_TAG.match(name):
            name = "/div" if name.startswith("/") else "div"
        if not name:
            if (markup["hidden"] or "").lower() == "style":
                hidden.read_rules(markup[0])
            continue
        rest = markup["rest"][:_STYLED_WITHIN]
        was_hidden = hidden.hides
        hidden.enter_or_leave(name, rest)
        if (was_hidden and hidden.hides) or not _SHAPING_TAG.match(name):
            continue
        shaped.append(_shape_tag(name, rest, lists, cited))
    if not hidden.hides:
        shaped.append(html[at:])
    return "".join(shaped)


def _shape_tag(name: str, rest: str, lists: "_OpenLists", cited: dict[str, list[bool]]) -> str:
    kind = name.removeprefix("/")
    if kind in _LISTS or kind in _TABLES:
        depth = lists.enter_or_leave(name)
        if kind in _LISTS and depth > MAX_LIST_DEPTH:
            return "</div>" if name.startswith("/") else "<div>"
    if name in cited:
        is_cited = _is_cited(name, rest)
        cited[name].append(is_cited)
        return f"<{name}><div>{_BEGIN}</div>" if is_cited else f"<{name}>"
    if (opened := cited.get(name[1:])) and opened.pop():
        return f"<div>{_END}</div><{name}>"
    return f"<{name}>"


# An element is hidden by an attribute or a style. A font size of zero does not hide inner elements
# that set another size.
_MAY_HIDE = re.compile(
    r"hid|:\s*none|collapse|opacity|font-size|font\s*:|height\s*:|width\s*:|-\d{3}", re.I
)
_QUOTED = re.compile(r"""=\s*(?:"[^"]*+"|'[^']*+'|[^\s>]++)""")
_HIDDEN_ATTRIBUTE = re.compile(r"(?:^|[\s/])hidden(?=[\s/=]|$)", re.I)
_STYLE_VALUE = re.compile(r"""\bstyle\s*=\s*(?:"([^"]*+)"|'([^']*+)'|([^\s>]++))""", re.I)
_ZERO = r"\s*:\s*(?:0++(?:\.0++)?|\.0++)(?:px|pt|em|rem|%|in|cm|mm)?\s*+"
_ZERO += r"(?:!\s*+important\s*+)?(?:;|$)"
_HIDING = re.compile(
    r"(?:^|[;\s])(?:display\s*:\s*none|visibility\s*:\s*(?:hidden|collapse)|mso-hide\s*:\s*all|"
    r"opacity" + _ZERO + r"|(?:text-indent|left|top)\s*:\s*-(?:\d{4}|9\d\d))",
    re.I,
)
_NO_ROOM = re.compile(r"(?:^|[;\s])(?:max-)?(?:height|width)" + _ZERO, re.I)
_CLIPS = re.compile(r"(?:^|[;\s])overflow(?:-[xy])?\s*:\s*hidden", re.I)
_NO_SIZE = re.compile(r"(?:^|[;\s])font(?:-size)?" + _ZERO, re.I)
_SIZE = re.compile(r"(?:^|[;\s])font-size\s*:\s*(?!0*\.?0+(?![\d.]))\S", re.I)
_VOID = frozenset(
    [
        *["area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param"],
        *["source", "track", "wbr"],
    ]
)
_ROWS = frozenset(["tbody", "td", "tfoot", "th", "thead", "tr", "li"])
_BLOCKS = frozenset(
    [
        *["article", "blockquote", "body", "center", "div", "dl", "footer", "header", "html"],
        *["main", "ol", "p", "section", "table", "ul"],
    ]
)
# The end of one of these elements also ends an unclosed hidden element inside it.
_OUTER = _BLOCKS | _ROWS
# Tags that end a hidden element whose end tag may be left out.
_ENDS = {
    "p": _BLOCKS | {"h1", "h2", "h3", "h4", "hr", "pre"},
    "li": {"li"},
    "td": {"td", "th", "tr"},
    "th": {"td", "th", "tr"},
    "tr": {"tr", "tbody", "tfoot"},
    "dt": {"dt", "dd"},
    "dd": {"dt", "dd"},
    "option": {"option"},
}


# Rules of a style sheet for one class or id; rules for kinds of screens do not count.
_COMMENT = re.compile(r"/\*(?:.*?\*/|.*+)", re.S)
_FOR_SCREENS = re.compile(r"@[^{}]{0,500}\{(?:[^{}]*+\{[^{}]*+\})*+[^{}]*+\}")
_RULE = re.compile(r"(?<![^{}])([^{}]++)\{([^{}]*+)\}")
_SELECTOR = re.compile(r"\s*[a-z0-9]{0,20}([.#][\w-]{1,100})\s*\Z", re.I)
_NAMES = re.compile(r"""\b(class|id)\s*=\s*(?:"([^"]*+)"|'([^']*+)'|([^\s>]++))""", re.I)
MAX_SHEET = 64 << 10  # characters of a style sheet


class _Region:
    """An open element that hides its content, or shows it again."""

    def __init__(self, name: str, mode: str) -> None:
        self.name = name
        self.mode = mode  # "hidden", "zero" (font size), or "shown" inside "zero"
        self.open: Counter[str] = Counter({name: 1})  # open elements in it, itself included


class _Hidden:
    """The open elements that decide whether the text at a tag is visible."""

    def __init__(self) -> None:
        self._regions: list[_Region] = []
        self._hidden = 0
        self._names: set[str] = set()  # classes and ids that a style sheet hides
        self.hides = False  # the text that follows is invisible

    def read_rules(self, sheet: str) -> None:
        sheet = sheet[:MAX_SHEET].partition(">")[2]
        if not _MAY_HIDE.search(sheet):
            return
        for selectors, style in _RULE.findall(_FOR_SCREENS.sub("", _COMMENT.sub("", sheet))):
            if self._is_hiding(style):
                names = map(_SELECTOR.match, selectors.split(","))
                self._names.update(name[1].lower() for name in names if name)

    def _is_named(self, attributes: str) -> bool:
        return any(
            ("." if kind in "cC" else "#") + word in self._names
            for kind, *values in ((one[0][0], *one[1:]) for one in _NAMES.findall(attributes))
            for word in "".join(values).lower().split()
        )

    @staticmethod
    def _is_hiding(style: str) -> bool:
        is_clipped = _NO_ROOM.search(style) and _CLIPS.search(style)
        return bool(_HIDING.search(style) or is_clipped)

    def enter_or_leave(self, name: str, attributes: str) -> None:
        """Process a tag; `name` begins with `/` for an end tag."""
        if self._regions:
            if name.startswith("/"):
                self._leave(name[1:])
            else:
                while self._regions and name in _ENDS.get(self._regions[-1].name, ()):
                    if sum(self._regions[-1].open.values()) > 1 and self._regions[-1].name != "p":
                        break  # the tag belongs to a list or table inside
                    self._pop()
        if name.startswith("/") or name in _VOID or attributes.endswith("/"):
            return
        mode = "" if self._hidden else self._find_mode(name, attributes)
        if mode:
            self._regions.append(_Region(name, mode))
            self._hidden += mode == "hidden"
        elif self._regions:
            self._regions[-1].open[name] += 1
        self._settle()

    def _find_mode(self, name: str, attributes: str) -> str:
        if name == "template":
            return "hidden"
        if self._names and self._is_named(attributes):
            return "hidden"
        if not attributes or not _MAY_HIDE.search(attributes):
            return ""
        if _HIDDEN_ATTRIBUTE.search(_QUOTED.sub("=", attributes)):
            return "hidden"
        found = _STYLE_VALUE.search(attributes)
        style = (found[1] or found[2] or found[3] or "") if found else ""
        if self._is_hiding(style):
            return "hidden"
        is_zero = bool(self._regions) and self._regions[-1].mode == "zero"
        if is_zero:
            return "shown" if _SIZE.search(style) else ""
        return "zero" if _NO_SIZE.search(style) else ""

    def _leave(self, name: str) -> None:
        while self._regions:
            region = self._regions[-1]
            if region.open[name]:
                region.open[name] -= 1
                if region.name == name and not region.open[name]:
                    self._pop()
                break
            is_below = len(self._regions) > 1 and self._regions[-2].open[name] > 0
            if name not in _OUTER and not is_below:
                break
            self._pop()  # an outer element ends
        self._settle()

    def _pop(self) -> None:
        self._hidden -= self._regions.pop().mode == "hidden"

    def _settle(self) -> None:
        self.hides = bool(self._regions) and (self._hidden > 0 or self._regions[-1].mode == "zero")


class _OpenLists:
    """The lists that are open at a tag, never fewer than in an HTML parser.

    The end of a list counts only for the list opened last, with no table begun in it. A parser may
    ignore any other end and leave the list open.
    https://html.spec.whatwg.org/multipage/parsing.html#has-an-element-in-scope
    """

    def __init__(self) -> None:
        self._open: list[str] = []
        self._depth = 0

    def enter_or_leave(self, name: str) -> int:
        """Process a tag of a list or table, and return the depth of lists, including its own.

        Return 0 for an end tag that does not match the element opened last.
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
