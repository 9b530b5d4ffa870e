"""Texts of a query as lexemes, and as conditions on messages.

Words are cut in the same way as those of messages (text/words.py), and PostgreSQL stems them. The
words of a text must follow each other, including stop words. Stop words have lexemes in the
tsvectors of PostgreSQL, but not in the word index. So the word index searches a phrase with stop
words by its other words, and PostgreSQL decides.

https://www.postgresql.org/docs/18/textsearch-controls.html
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from mail_assets.search.language.expression import Text
from mail_assets.tables.search_vectors import ADDRESS, Stems, list_lexemes, quote_lexeme
from mail_assets.text.identifiers import find_ids, find_names, find_signed, find_version
from mail_assets.text.letters import ends_in_pair
from mail_assets.text.words import Word, clean_query_text, find_words
from mail_assets.words.index import Clause, Phrase, Prefix

#: A tsquery that matches no message.
NOTHING = "'x' & !'x'"
_NUMBERS = re.compile(r"[vV]?([0-9]+(?:\.[0-9]+)*\.?)")


class TextMatch(NamedTuple):
    """The condition of a text in one language: a tsquery, and clauses for a word index.

    Both are empty if the text has no word, or only one stop word: it requires nothing. `clauses` is
    also empty if a word index cannot check the condition; then only PostgreSQL does. If not
    `exact`, the clauses find too much.
    """

    tsquery: str = ""
    clauses: tuple[Clause, ...] = ()
    exact: bool = True


def words_of_texts(texts: Iterable[Text]) -> set[str]:
    """Return the words of texts whose stems `match_text` needs, in normal form."""
    words = (word for text in texts for word in find_words(clean_query_text(text.text)))
    return {one for word in words for one in (word.text, *word.forms)}


def match_texts(
    texts: Sequence[Text], by_language: Mapping[str, Stems], *, shows_addresses: bool = True
) -> dict[str, dict[Text, TextMatch]]:
    """Return the conditions of texts by language.

    A text that has no word in any language requires nothing. A phrase that has words in another
    language, but none in this one, matches no message here; otherwise all messages would pass.
    """
    matches = {
        language: {text: match_text(text, stems, shows_addresses=shows_addresses) for text in texts}
        for language, stems in by_language.items()
    }
    required = {text for found in matches.values() for text, one in found.items() if one.tsquery}
    nothing = {text: TextMatch(NOTHING) for text in required if text.kind == "phrase"}
    return {
        language: {
            text: one if one.tsquery else nothing.get(text, one) for text, one in found.items()
        }
        for language, found in matches.items()
    }


def match_text(text: Text, stems: Stems, *, shows_addresses: bool = True) -> TextMatch:
    """Return the condition of a text in one language.

    - A name (`pg_class`) also matches as written. `C++` matches only as written, and so does a
      phrase with it.
    - A version matches by its beginnings.
    - A commit id matches a shorter or longer form of itself.
    - A prefix that ends in a pair of unspaced letters is a phrase, because such scripts do not show
      where a word begins.
    - Parts of mail addresses match only with `shows_addresses`.
    """
    clean = clean_query_text(text.text)
    words = [*find_words(clean)]
    if not words:
        return TextMatch()
    if text.kind == "prefix" and not ends_in_pair(clean):
        return _match_prefix(clean, words, stems, shows_addresses)
    if alone := find_version(clean) or find_signed(clean):
        return TextMatch(quote_lexeme(alone), (alone,))
    if ids := find_ids(clean):
        tsquery = " | ".join([*map(quote_lexeme, ids[1:]), f"{quote_lexeme(ids[-1])}:*"])
        return TextMatch(tsquery, (ids[0],), exact=False)
    places = [_read_place(word, stems, shows_addresses) for word in words]
    if len(places) == 1 and places[0].is_stop:
        return TextMatch()
    first, last = words[0].start, words[-1].end
    found = [*find_names(clean)]
    all_of_it = [name.whole for name in found if name.start <= first and last <= name.end]
    written = [one for one in all_of_it if shows_addresses or ADDRESS not in one]
    others: list[Clause] = [*dict.fromkeys(written)]
    phrases = [_join(place.tsquery for place in places)]
    has_blank = len(clean.split()) > 1
    if shows_addresses and not has_blank and not any(word.in_address for word in words):
        marked = [f"{ADDRESS}{word.text}" for word in words]
        phrases.append(_join(map(quote_lexeme, marked)))
        others.append(marked[0] if len(marked) == 1 else Phrase(tuple(marked)))
    tsquery = " | ".join([*phrases, *map(quote_lexeme, dict.fromkeys(written))])
    clauses, exact = _word_clauses(places)
    if signed := {name.whole for name in found if name.is_signed}:
        tsquery = " & ".join([f"({tsquery})", *map(quote_lexeme, sorted(signed))])
        exact = False
    if not clauses:
        return TextMatch(tsquery, exact=False)
    return TextMatch(tsquery, tuple(dict.fromkeys([*clauses, *others])), exact)


class _Place(NamedTuple):
    """The place of a word: its alternative lexemes, and a tsquery for them."""

    lexemes: tuple[str, ...]
    tsquery: str
    is_stop: bool
    in_address: bool


def _read_place(word: Word, stems: Stems, shows_addresses: bool) -> _Place:
    if word.in_address and shows_addresses:
        lexeme = f"{ADDRESS}{word.text}"
        return _Place((lexeme,), quote_lexeme(lexeme), is_stop=False, in_address=True)
    lexemes = list_lexemes(word.text, stems)
    either = [*map(quote_lexeme, lexemes)]
    parts = [list_lexemes(form, stems)[0] for form in word.forms if form in word.text]
    if len(parts) > 1:  # the parts of a camel-case name are all at one place
        either.append(f"({' <0> '.join(map(quote_lexeme, parts))})")
    joined = f"({' | '.join(either)})" if len(either) > 1 else either[0]
    return _Place(lexemes, joined, stems.get(word.text) == (), in_address=False)


def _join(places: Iterable[str]) -> str:
    return " <-> ".join(places)


def _word_clauses(places: Sequence[_Place]) -> tuple[list[Clause], bool]:
    """Return the clauses of a phrase for a word index, and whether they are exact.

    Stop words are left out, and in a phrase with an address also the words of the address. Empty if
    a dictionary gives a word of the phrase several lexemes.
    """
    asked = [place for place in places if not place.is_stop]
    spaced = [place for place in asked if not place.in_address]
    kept = spaced if spaced and len(spaced) < len(asked) else asked
    if not kept or (len(kept) > 1 and any(len(place.lexemes) > 1 for place in kept)):
        return [], False
    exact = len(kept) == len(places) and all("<0>" not in place.tsquery for place in places)
    if any("<0>" in place.tsquery for place in kept):
        plain = [place for place in kept if "<0>" not in place.tsquery]
        return ([plain[0].lexemes[0]] if plain else []), False
    if len(kept) == 1:
        return [*kept[0].lexemes], exact
    return [Phrase(tuple(place.lexemes[0] for place in kept))], exact


def _match_prefix(
    text: str, words: Sequence[Word], stems: Stems, shows_addresses: bool
) -> TextMatch:
    *before, last = words
    numbers = _NUMBERS.fullmatch(text.strip())
    written = numbers[1] if numbers else text.strip().strip("./:-$~").lower()
    if len(words) == 1 or numbers:
        beginnings = [last.text if len(words) == 1 else written]
        if shows_addresses and not numbers:
            beginnings.append(f"{ADDRESS}{last.text}")
        either = [f"{quote_lexeme(one)}:*" for one in beginnings]
        return TextMatch(" | ".join(either), tuple(map(Prefix, beginnings)))
    places = [_read_place(word, stems, shows_addresses).tsquery for word in before]
    beginnings = [last.text, written]
    phrases = [_join([*places, f"{quote_lexeme(last.text)}:*"]), f"{quote_lexeme(written)}:*"]
    if shows_addresses:
        marked = [f"{ADDRESS}{word.text}" for word in words]
        beginnings.append(marked[-1])
        phrases.append(f"{_join(map(quote_lexeme, marked))}:*")
    return TextMatch(" | ".join(phrases), tuple(map(Prefix, beginnings)), exact=False)


def match_any(lexemes: Iterable[str]) -> str:
    """Return a tsquery for any of the lexemes."""
    return " | ".join(map(quote_lexeme, lexemes))
