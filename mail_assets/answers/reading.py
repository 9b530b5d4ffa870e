"""Read what a question asks besides its words: whose mail, and for a date.

"What did Tom Lane say about DROP COLUMN?" is read as `from:` that person where the archive has one
sender of that name, and as words otherwise. A single name is enough if one person has it, or has
nearly all mail under it.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import psycopg

from mail_assets.postgres.statements import statement
from mail_assets.search.language.request import Request

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
#: What is said of such questions.
_NOTES = (
    (_WHEN, "Asked for a date: each passage has the day it was written."),
    (_WHO, "Asked for a person: each passage has its author."),
)
#: A word of a name. An address or a part of one is no name: none can be confirmed by asking.
_NAME_WORD = re.compile(r"[^\W\d_](?:[^\W\d_]|['\u2019.-])*")
#: Signs and words at the end of a question: "Was hat Ann zu Leases gesagt?"
_STOPS, _LAST_WORDS = " ?.!\uff1f", ("gesagt", "geschrieben", "gemeint")
#: Words that stand where a name would.
_NO_NAMES = frozenset(
    (
        *("i", "you", "he", "she", "it", "we", "they", "one", "who", "people", "the", "a", "an"),
        *("anyone", "anybody", "someone", "somebody", "everyone", "this", "that", "these", "those"),
        *("my", "your", "his", "her", "our", "their", "any", "all", "most"),
    )
)
#: Least share of the months in which one person has a name that several have.
DOMINANT = 0.8


class Reading(NamedTuple):
    """The request that a question means.

    `person` is the sender that it asks about, "" for all; `note` says in words what it was taken
    for, "" for its words alone.
    """

    request: Request
    person: str = ""
    note: str = ""


def read_question(connection: psycopg.Connection, request: Request) -> Reading:
    """Return how a question is read."""
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
    """Return the name of the only sender that has all words of a name, "" where there is none.

    It is without accents, which do not count. Names of one person differ in length: "Tom G. Lane"
    is "Tom Lane".
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
    for parts in sorted(months, key=lambda one: (len(one), one)):
        alike = (one for one in people if len(one) > 1 and {*one} <= {*parts})
        people[next(alike, parts)] += months[parts]
    for person, count in people.most_common(1):
        # a name of one word would match all others that have it
        if count >= DOMINANT * people.total() and (len(person) > 1 or len(people) == 1):
            return spelled[person].title()
    return ""
