"""The evidence for an answer: passages of the mail that search finds, or excerpts for a chat model.

Finding evidence needs a searcher and a connection. Writing the answer may take a minute and needs
neither.

Decisions are often in messages without words of the question ("Applied, thanks."), which search
does not rank. So the outcomes in the summaries of the best threads become excerpts too. An answer
cites the message, not the summary.

A question may ask for the mail of a person, or for a date. "What did Tom Lane say about DROP
COLUMN?" is read as `from:` that person if the archive has one sender of that name, else as plain
words. A single name is enough if only one person has it, or one person sent nearly all mail under
it.
"""

import re
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain, zip_longest
from typing import Any, NamedTuple

import psycopg

from mail_assets.answers.citations import CitationFilter
from mail_assets.answers.excerpts import HEADER_TOKENS, Excerpt, Hide, find_excerpts, show_all
from mail_assets.answers.passages import choose_passages, find_passages
from mail_assets.month import utc
from mail_assets.postgres.statements import statement
from mail_assets.search.fusion import MIN_STRENGTH
from mail_assets.search.language.request import (
    MAX_LIMIT,
    MAX_QUERY,
    Group,
    Mode,
    Request,
    RequestError,
)
from mail_assets.search.response import Hit, HitExplanation, Response
from mail_assets.search.searcher import Searcher
from mail_assets.text.lookalikes import find_lookalikes

_SAY = (
    r"(?:(?:ever|also|once|actually) )?(?:say|said|writ|wrote|think|thought|suggest|propos|object|"
    r"argu|recommend|mention|report|answer|reply|replie|claim|explain|prefer|complain|agree|"
    r"disagree|want|reject|mean|believe|oppose|decide|ask)\w*"
)
_ABOUT = "(?:about|on|of|to|for|against|that|regarding|concerning|with)"
_NOUN = "(?:opinion|view|position|objection|proposal|argument|suggestion|answer|plan|idea|advice)s?"
#: Questions about what a person said: English, German, Spanish, Portuguese, French, Italian and
#: Russian. NAME is one to four words.
_QUESTIONS = (
    rf"(?:[\w'’]{{1,30}}+,? ){{1,3}}(?:did|does|do|has|had) NAME {_SAY}(?: {_ABOUT})? REST",
    rf"(?:did|does|has|had) NAME {_SAY}(?: {_ABOUT})? REST",
    rf"what (?:is|was|are|were) NAME['’]s? {_NOUN} {_ABOUT} REST",
    rf"what (?:is|was|are|were) the {_NOUN} of NAME {_ABOUT} REST",
    "according to NAME, REST",
    "(?:mails?|messages?|posts?|anything) (?:of|by|from) NAME (?:about|on) REST",
    "was (?:sagte?|schr(?:ei|ie)bt?|meinte?|denkt) NAME (?:zu|zum|zur|über|von) REST",
    "was hat NAME (?:zu|zum|zur|über|von) REST",
    "¿?qu[eé] (?:dijo|dice|opina|piensa|escribió|propuso) NAME (?:sobre|de|acerca de) REST",
    "o que (?:disse|diz|pensa|escreveu|propôs) NAME (?:sobre|de) REST",
    "qu(?:e |['’]a )(?:dit|pense|écrit) NAME (?:de|du|sur|à propos de) REST",
    "(?:che )?cosa (?:ha detto|dice|pensa) NAME (?:di|su) REST",
    "что (?:сказал|писал|написал|предложил|думает)а? NAME (?:о|об|про) REST",
)
_ABOUT_PERSON = [
    re.compile(
        pattern.replace("NAME", r"(?P<name>\S{1,60}(?: \S{1,60}){0,3}?)").replace(
            "REST", "(?P<rest>.++)"
        ),
        re.IGNORECASE,
    )
    for pattern in _QUESTIONS
]
#: Questions for a date.
_WHEN = re.compile(
    r"\W{0,3}(?:and |but )?(?:since |until |by |seit |desde |depuis |с )?"
    r"(?:when|wann|cuándo|quand|quando|когда)\b",
    re.IGNORECASE,
)
#: Questions for a person.
_WHO = re.compile(r"\W{0,3}(?:and |but )?(?:who|whose|wer|quién|quem|qui|chi|кто)\b", re.IGNORECASE)
#: Notes on such questions.
_NOTES = (
    (_WHEN, "Asked for a date: each passage has the day it was written."),
    (_WHO, "Asked for a person: each passage has its author."),
)
#: A word of a name. Addresses and their parts do not match, so no question can confirm an address.
_NAME_WORD = re.compile(r"[^\W\d_](?:[^\W\d_]|['\u2019.-])*")
#: Signs and words at the end of a question: "Was hat Ann zu Leases gesagt?"
_STOPS, _LAST_WORDS = " ?.!\uff1f", ("gesagt", "geschrieben", "gemeint")
#: Words in the place of a name that are not names.
_NO_NAMES = frozenset(
    (
        *("i", "you", "he", "she", "it", "we", "they", "one", "who", "people", "the", "a", "an"),
        *("anyone", "anybody", "someone", "somebody", "everyone", "this", "that", "these", "those"),
        *("my", "your", "his", "her", "our", "their", "any", "all", "most"),
    )
)
#: Least share of the months of a name that one person must have if several people share it.
DOMINANT = 0.8


class Reading(NamedTuple):
    """The request made from a question.

    `person` is the sender that the question asks about, "" for all. `note` says how the question
    was understood, "" if by its words alone.
    """

    request: Request
    person: str = ""
    note: str = ""


def read_question(connection: psycopg.Connection, request: Request) -> Reading:
    """Return the reading of a question: the sender and the words to search for."""
    notes = [text for asks, text in _NOTES if asks.match(request.query)]
    if not request.sender:
        query = " ".join(request.query.split()).rstrip(_STOPS)
        for pattern in _ABOUT_PERSON:
            asked = pattern.fullmatch(query)
            if asked and (person := find_person(connection, asked["name"], request.lists)):
                rest = asked["rest"]
                for word in _LAST_WORDS:
                    rest = rest.removesuffix(f" {word}")
                note = f'Read as: what was sent under the name {person} about "{rest}".'
                request = replace(request, query=rest, sender=person)
                return Reading(request, person, " ".join((note, *notes)))
    return Reading(request, note=" ".join(notes))


def find_person(connection: psycopg.Connection, name: str, lists: Sequence[str]) -> str:
    """Return the only sender whose name has all words of a name, "" if there is none.

    Accents do not count, and the result has none. Names of one person may differ in length: "Tom G.
    Lane" is "Tom Lane".
    """
    asked = {"name": name.replace(",", " ").strip("\"'\u201c\u201d ")}
    folded = connection.execute(statement("answer", "folded"), asked).fetchone()
    words = folded[0].split() if folded else []
    if not words or not all(_NAME_WORD.fullmatch(word) for word in words) or words[0] in _NO_NAMES:
        return ""
    months: Counter[tuple[str, ...]] = Counter()
    spelled: dict[tuple[str, ...], str] = {}
    parameters = {"word": max(words, key=len), "lists": [*lists]}
    for stored, count in connection.execute(statement("answer", "people"), parameters):
        parts = tuple(word.strip(",\"'()") for word in stored.split())
        if all(word in parts for word in words):
            months[parts] += count
            spelled[parts] = stored
    people: Counter[tuple[str, ...]] = Counter()
    for parts in sorted(months, key=lambda one: (len(one), -months[one], one)):
        alike = (one for one in people if len(one) > 1 and {*one} <= {*parts})
        people[next(alike, parts)] += months[parts]
    for person, count in people.most_common(1):
        # a sender's name of one word would match all names with that word
        if count >= DOMINANT * people.total() and (len(person) > 1 or len(people) == 1):
            return spelled[person].title()
    return ""


#: Most threads whose outcomes are read, those of the best hits.
MAX_THREADS = 3
#: Largest share of the budget for outcomes.
BUDGET_SHARE = 1 / 8
#: Most earlier turns in a prompt, the latest ones.
MAX_TURNS = 4
#: Most characters of an earlier question or answer.
MAX_EARLIER = 1_000
#: Earlier questions whose words are added to the search of a follow-up question.
SEARCHED_TURNS = 2
#: Largest share of tokens that the encoder does not know: a name or two in another script.
MAX_UNKNOWN = 0.2


@dataclass(frozen=True)
class Turn:
    """An earlier question of a conversation, and its answer."""

    question: str
    answer: str


@dataclass(frozen=True)
class Evidence:
    """The material for an answer.

    `excerpts` are the passages, best first, or the excerpts for a chat model. `doubt` says in one
    line why the search cannot find anything near. `reading` says how the question was understood,
    "" if by its words alone.
    """

    question: str
    history: tuple[Turn, ...]
    mode: str
    excerpts: tuple[Excerpt, ...]
    took_ms: float
    doubt: str = ""
    reading: str = ""


def find_evidence(
    searcher: Searcher,
    connection: psycopg.Connection,
    request: Request,
    budget: int,
    history: Sequence[Turn] = (),
    hide: Hide = show_all,
) -> Evidence:
    """Search for a question in the context of earlier ones, and read passages or excerpts.

    `budget` is the maximum number of tokens in excerpts, 0 for passages. `hide` masks the parts of
    their texts that must not be shown.

    Raises:
        BudgetError: no excerpt fits into the budget.
        RequestError, VectorError, WordsError: see Searcher.search.
    """
    began = time.perf_counter()
    turns = bound_history(history)
    reading = read_question(connection, request)
    requests = requests_in_context(reading.request, turns)
    found = _search(searcher, requests, budget)
    if reading.person and not any(map(_claims, found)):
        reading = Reading(request, note=f"Nothing that {reading.person} wrote is near it.")
        requests = requests_in_context(request, turns)
        found = _search(searcher, requests, budget)
    unknown, encoder = _find_unknown(searcher, requests[0])
    doubt = _find_doubt(found[0], unknown, encoder)
    hits = [] if doubt and not budget else _merge_hits(found, request.limit)
    if budget:
        others = [hit.message_id for one in found for hit in one.hits]
        excerpts = _read_excerpts(connection, hits, others, budget, hide)
    else:
        passages = find_passages(searcher, connection, requests[0], hits, hide)
        chosen = choose_passages(passages, several=request.group == Group.message)
        excerpts = tuple(one.as_excerpt(number) for number, one in enumerate(chosen, 1))
    people = [*(hit for one in found for hit in one.hits), *(one.hit for one in excerpts)]
    alike = find_lookalikes((one.from_name, one.from_email.lower()) for one in people)
    excerpts = tuple(
        replace(one, namesake=one.hit.from_email) if one.hit.from_name in alike else one
        for one in excerpts
    )
    return Evidence(
        question=request.query,
        history=turns,
        mode=found[0].mode,
        excerpts=excerpts,
        took_ms=(time.perf_counter() - began) * 1000,
        doubt=doubt,
        reading=reading.note,
    )


def _search(searcher: Searcher, requests: Sequence[Request], budget: int) -> list[Response]:
    """Answer requests; for excerpts, with the most single messages that a search returns."""
    if not budget:
        return [searcher.search(one) for one in requests]
    every = [replace(one, group=Group.message, limit=MAX_LIMIT) for one in requests]
    return [searcher.search(one) for one in every]


def _read_excerpts(
    connection: psycopg.Connection,
    hits: Sequence[Hit],
    others: Sequence[str],
    budget: int,
    hide: Hide,
) -> tuple[Excerpt, ...]:
    """Return the excerpts of the hits, then outcomes of their threads that these do not contain."""
    outcomes = find_outcomes(connection, hits, others, budget, hide)
    reserved = sum(count_tokens(one.text) for one in outcomes)
    excerpts = find_excerpts(connection, hits, budget - reserved, hide)
    for one in outcomes:
        if not any(excerpt.contains(one) for excerpt in excerpts):
            excerpts.append(replace(one, number=len(excerpts) + 1))
    return tuple(excerpts)


def _merge_hits(found: Sequence[Response], limit: int) -> list[Hit]:
    """Return the first hits of each response, then the second ones, each message once."""
    hits: dict[str, Hit] = {}
    for hit in chain.from_iterable(zip_longest(*(_claims(one) for one in found))):
        if hit is not None:
            hits.setdefault(hit.message_id, hit)
    return [*hits.values()][:limit]


def _claims(found: Response) -> Sequence[Hit]:
    """Return the hits, without later texts of an id; none if even the best hybrid hit is weak."""
    best = found.hits[0] if found.hits else None
    weak = best and best.why.ranks and best.score < MIN_STRENGTH
    genuine = tuple(hit for hit in found.hits if hit.text == 1)
    return () if weak and found.mode == Mode.hybrid else genuine


def _is_named(hit: Hit) -> bool:
    """Return whether the question has the id of a hit."""
    return not hit.why.ranks and not hit.why.thread_score


def _find_unknown(searcher: Searcher, request: Request) -> tuple[float, str]:
    """Return the share of tokens that the encoder does not know, and its name."""
    try:
        return searcher.find_unknown_share(request)
    except RequestError:  # no message can pass the filters
        return 0.0, ""


def _find_doubt(found: Response, share: float, encoder: str) -> str:
    """Return an explanation if the encoder does not know the script of the question, else ""."""
    if share <= MAX_UNKNOWN or (found.hits and _is_named(found.hits[0])):
        return ""
    return (
        f"The encoder {encoder} does not know the script of the question ({share:.0%} of it): "
        "ask in mode fulltext, or set MAIL_ENCODER to a model of that language."
    )


def find_outcomes(
    connection: psycopg.Connection,
    hits: Sequence[Hit],
    others: Sequence[str],
    budget: int,
    hide: Hide = show_all,
) -> list[Excerpt]:
    """Return the outcomes of the best threads as excerpts, numbered from 1.

    Only messages that the search found are read (the hits and `others`), because other messages may
    not pass its filters. The hit of an outcome that is not among `hits` has the score 0.
    """
    threads = [*dict.fromkeys(hit.thread_id for hit in hits if hit.thread_id)][:MAX_THREADS]
    known = {hit.message_id: hit for hit in hits}
    parameters = {"threads": threads, "found": [*known, *others]}
    excerpts: list[Excerpt] = []
    left = budget * BUDGET_SHARE
    for row in connection.execute(statement("answer", "outcomes"), parameters).fetchall():
        start, around, first, text, message_id = row[:5]
        left -= count_tokens(text)
        if left < 0:
            break
        hit = known.get(message_id) or _build_hit(*row[4:])
        text = hide(around, first, first + len(text))
        excerpts.append(Excerpt(len(excerpts) + 1, hit, ((start, start + len(text)),), text))
    return excerpts


def count_tokens(text: str) -> int:
    """Return the most tokens of a sentence in a prompt: one for each byte."""
    return HEADER_TOKENS + len(text.encode())


def _build_hit(message_id: str, thread_id: str, lists: list[str], *about: Any) -> Hit:
    month, subject, from_name, from_email, sent_at = about
    return Hit(
        message_id=message_id,
        lists=tuple(lists),
        month=month,
        subject=subject,
        from_name=from_name,
        from_email=from_email,
        sent_at=utc(sent_at),
        score=0.0,
        thread_id=thread_id,
        chunks=(),
        why=HitExplanation({}, (), None, 0.0),
        attachments=(),
    )


def bound_history(turns: Sequence[Turn]) -> tuple[Turn, ...]:
    """Return the latest turns, cut to size, without citations: their numbers are outdated."""
    return tuple(
        Turn(turn.question[:MAX_EARLIER], _without_citations(turn.answer)[:MAX_EARLIER])
        for turn in turns[-MAX_TURNS:]
    )


def requests_in_context(request: Request, history: Sequence[Turn]) -> list[Request]:
    """Return two requests: the question after the latest earlier ones, and the question alone.

    "And when was that fixed?" finds nothing alone. A question about a new subject finds nothing
    together with the old one. Without a history there is one request.
    """
    if not history:
        return [request]
    earlier = _join(turn.question for turn in history[-SEARCHED_TURNS:])
    room = max(0, MAX_QUERY - len(request.query) - 1)
    return [replace(request, query=_join((earlier[:room], request.query))), request]


def _join(texts: Iterable[str]) -> str:
    return " ".join(text.strip() for text in texts).strip()


def _without_citations(answer: str) -> str:
    numbers = CitationFilter(())
    return numbers.feed(answer) + numbers.finish()
