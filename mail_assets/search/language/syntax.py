"""The query language: reads a query and the options of a request as conditions on hits.

    query   = operand { ["or" | "AND"] operand }
    operand = ["-" | "NOT"] ( word | prefix* | "phrase" | field | "(" query ")" )
    field   = name ":" ( value | '"' value '"' | "(" query ")" )

Rules (description.py has all forms with their meaning):

- Words rank; a hit may lack some. Every hit has all phrases, prefixes (`leas*`, `9.6*`) and fields,
  and no operand after a dash or NOT.
- `or`, in any case, binds tightest, as in Google and Gmail: `a or b c` is `(a or b) c`.
- A word is required if the other side of its `or` is required, or if a dash stands before its
  parentheses. AND requires both of its sides, as if they were quoted.
- AND and NOT are in capitals. NOT is a word in SQL and standards (NOT NULL, MUST NOT).
- A message has one id, author, list, month, thread and date, so `list:a list:b` are alternatives.
  Repeated other fields must all match.
- fields.py decides which `name:value` is text. Field names are in lower case: `Error:x` is text. A
  backslash makes the next word text.
- A dash at the beginning of a word excludes the word up to the next blank. Exceptions are a single
  character (`-t`), another dash (`--schema-only`), an arrow, and signs alone.
- notes.py reports ambiguous signs.
- Typographic dashes and double quotes work. Unmatched parentheses and quotes are ignored: there are
  no syntax errors.
- A Message-ID as the whole query, bare, in brackets or in a link, finds that message.

https://notmuchmail.org/manpages/notmuch-search-terms-7/
https://support.google.com/mail/answer/7190
"""

import datetime as dt
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from urllib.parse import unquote

from mail_assets.mail.message.ids import normalize_id
from mail_assets.search.language.expression import (
    And,
    Clause,
    Field,
    Node,
    Not,
    Period,
    Text,
    drop_quotes,
    held_phrases,
    only_words,
    ranking_text,
    to_clauses,
)
from mail_assets.search.language.fields import check_period, clean_query, clean_value, read_field
from mail_assets.search.language.grammar import Parser, one_of_these, tokenize
from mail_assets.search.language.notes import Remarks
from mail_assets.search.language.request import (
    MAX_QUERY,
    Request,
    RequestError,
    Sort,
    quote,
    strip_brackets,
)

_SCHEME = re.compile(r"(?i)\A(?:mid|id|message-id):\s*")
_LINK = re.compile(r"(?i)\Ahttps?://[^/\s]+/")
#: Ids in the query string of a link: ?i=ID, ?id=ID, ?q=ID.
_IN_QUERY = re.compile(r"[?&](?:i|id|q|mid|message-id)=([^&#\s]+)")
#: Punctuation of a sentence around an id.
_AROUND = ".,;:)'\""
#: Most ids that are looked up for one pasted text.
MAX_IDS = 6


def find_pasted_ids(text: str) -> tuple[str, ...]:
    """Return the Message-IDs that a text may be, likeliest first; empty if it is no id.

    An id may contain `/`, several `@`, a domain in square brackets and, in brackets, quoted words
    (RFC 5322, section 3.6.4, and what programs write). In a link it may be percent-encoded.
    """
    text = _SCHEME.sub("", text.strip(), count=1)
    if text.startswith("<") and text.endswith(">"):
        return _normalize([text])
    if any(sign.isspace() for sign in text) or "@" not in unquote(text):
        return ()
    if link := _LINK.match(text):
        return _normalize(_in_link(text[link.end() :]))
    return _normalize([text, unquote(text), text.strip(_AROUND)])


def _in_link(rest: str) -> list[str]:
    """Return the parts of a link, given without scheme and host, that may be the id.

    These are the last path segment with an `@`, and the same with the segments before it, because
    an id may contain `/`. The suffixes of archives (/raw, /T/#u) have no `@`.
    """
    found = [unquote(value) for value in _IN_QUERY.findall(rest)]
    path = re.split(r"[?#]", rest, maxsplit=1)[0]
    segments = [unquote(segment) for segment in path.split("/")]
    places = [place for place, segment in enumerate(segments) if "@" in segment]
    if places:
        last = places[-1]
        found += ["/".join(segments[first : last + 1]) for first in range(last, -1, -1)]
    return [*found, unquote(rest)]


def _normalize(texts: list[str]) -> tuple[str, ...]:
    ids = (normalize_id(text.strip("<>")) for text in texts)
    return tuple(dict.fromkeys(one for one in ids if "@" in one.strip("@")))[:MAX_IDS]


#: Most fields and phrases of a query; a permalink has one for each value of each field.
MAX_TOKENS = 500
#: Placeholder for a query of signs alone: the search finds nothing, without an error.
SIGNS = Text("word", "?")


@dataclass(frozen=True)
class ParsedRequest:
    """A parsed request: the text that ranks, and the clauses that every hit meets.

    - `request`: the request, updated with the options in its query.
    - `node`: the whole expression; the fields of the request come before the query.
    - `text`: the text for the encoder; empty if the query has conditions only.
    - `message_ids`: the ids that the query may be, if it is a pasted id.
    - `notes`: how ambiguous signs were read.
    """

    request: Request
    node: And
    text: str
    clauses: tuple[Clause, ...]
    message_ids: tuple[str, ...]
    notes: tuple[str, ...] = ()

    @property
    def ranks(self) -> bool:
        """True if hits are ranked; otherwise they are listed by date."""
        return bool(self.text) and self.request.sort == Sort.relevance

    @property
    def excludes_words(self) -> bool:
        """True if the query excludes a text."""
        excluded = (part.part for part in self.node.parts if isinstance(part, Not))
        return any(isinstance(part, Text) for part in excluded)

    @property
    def is_exact(self) -> bool:
        """True if a message matches exactly when it meets the clauses: no word is optional."""
        return self.request.sort != Sort.relevance or not any(map(only_words, self.node.parts))

    @property
    def phrases(self) -> list[str]:
        """The phrases of a ranked query with words, which hits need not have; otherwise empty."""
        words = (part for part in self.node.parts if only_words(part))
        has_words = any(char.isalnum() for part in words for char in ranking_text(part))
        return held_phrases(self.node) if has_words and self.ranks else []

    @property
    def texts(self) -> list[Text]:
        """The texts among the conditions, each once."""
        found = (one.leaf for clause in self.clauses for one in clause)
        return list(dict.fromkeys(leaf for leaf in found if isinstance(leaf, Text)))


def parse_request(
    request: Request, today: dt.date | None = None, *, dashes: bool = True
) -> ParsedRequest:
    """Parse a request; `today` is the day from which `after:2y` counts, by default today in UTC.

    Without `dashes` a dash excludes nothing, for pasted subjects.

    Raises:
        RequestError: a value does not fit its field, or the query is too long or too complex.
    """
    remarks = Remarks()
    tokens = tokenize(clean_query(request.query), remarks, dashes=dashes)
    if sum(token.kind in ("field", "phrase", "prefix") for token in tokens) > MAX_TOKENS:
        raise RequestError(f"the query has more than {MAX_TOKENS} fields and phrases")
    parser = Parser(tokens, today, remarks)
    asked = parser.parse()
    given = read_request_fields(request)
    left_out = [Not(read_field("id", one, None)) for one in dict.fromkeys(request.without)]
    if not asked.parts and not given:
        if parser.options:
            raise RequestError(
                f"{quote(request.query.strip())} orders or limits what is found, and asks for "
                "nothing: add a word, or a field such as date:2024"
            )
        asked = And((SIGNS,))
    wanted = replace(request, **{"near": strip_brackets(request.near), **parser.options})
    # By date, optional words would match nearly every message, so every word is required.
    with_words = wanted.sort != Sort.relevance
    clauses = to_clauses(And((*given, *asked.parts)), words=with_words)
    clauses += tuple(chain.from_iterable(to_clauses(And((one,))) for one in left_out))
    node = And((*given, *left_out, *asked.parts))
    _check_period(clauses)
    text = ranking_text(asked)
    if len(text) > MAX_QUERY:
        raise RequestError(f"the query has {len(text)} characters, at most {MAX_QUERY}")
    if not text or wanted.sort != Sort.relevance:  # a list by date has no scores
        wanted = replace(wanted, min_score=None)
    only_excludes = not text and all(one.negated for clause in to_clauses(asked) for one in clause)
    return ParsedRequest(
        request=wanted,
        node=node,
        text=text,
        clauses=clauses,
        message_ids=find_pasted_ids(text),
        notes=remarks.write(only_excludes=only_excludes and bool(asked.parts)),
    )


def loosen(parsed: ParsedRequest) -> ParsedRequest:
    """Return a ranking request with its phrases as single words, which hits may lack."""
    dropped = drop_quotes(parsed.node)
    node = dropped if isinstance(dropped, And) else And((dropped,))
    return replace(parsed, node=node, clauses=to_clauses(node))


def list_by_date(parsed: ParsedRequest) -> ParsedRequest:
    """Turn a ranking request into a list by date; every word is required."""
    request = replace(parsed.request, sort=Sort.date, min_score=None)
    return replace(parsed, request=request, clauses=to_clauses(parsed.node, words=True))


def join_thread(parsed: ParsedRequest, thread: Field, subject: str) -> ParsedRequest:
    """Add the subject of a thread to a request, and leave the thread out.

    `thread` is the field that names the thread, or its only message.
    """
    node = And((*parsed.node.parts, Not(thread)))
    return replace(
        parsed,
        node=node,
        text=f"{parsed.text} {subject}" if parsed.text else "",
        clauses=(*parsed.clauses, *to_clauses(And((Not(thread),)))),
    )


def read_request_fields(request: Request) -> list[Node]:
    """Return the options of a request as nodes of the query language."""
    given: list[Node] = []
    if request.lists:
        cleaned = dict.fromkeys(map(clean_value, request.lists))
        given.append(one_of_these([Field("list", value) for value in cleaned]))
    if request.sender.strip():
        given.append(read_field("from", request.sender, None))
    if request.after:
        given.append(Field("after", Period(request.after, None)))
    if request.before:
        given.append(Field("before", Period(None, request.before)))
    return given


def _check_period(clauses: Sequence[Clause]) -> None:
    periods = [
        clause[0].leaf.value
        for clause in clauses
        if len(clause) == 1
        and not clause[0].negated
        and isinstance(clause[0].leaf, Field)
        and isinstance(clause[0].leaf.value, Period)
    ]
    starts = [one.start for one in periods if one.start]
    ends = [one.end for one in periods if one.end]
    check_period(max(starts, default=None), min(ends, default=None))
