"""Ask whether vectors of further kinds of content make search better: docs/search-experiments.md.

    MAIL_HOME=... python -m benchmarks.kind_vectors FOLDER KIND LIST ...   # chunk, and each other
    MAIL_HOME=... python -m benchmarks.mixes record LEGS [KIND:]LIST=FOLDER ...
    MAIL_HOME=... python -m benchmarks.kinds LEGS FOLDER KIND ...

The leg of meaning is made anew from exact nearest neighbours, of chunks alone and of chunks and a
further kind, and fused with the recorded leg of words as search does it. Ways to add a kind:

    less X     in the same index: a message counts with its nearest vector, those of the further
               kind X less similar than they are
    share X    a leg of its own, with that share of the weight of meaning
    thread X   the same, but as evidence for the thread alone

Of all ways one is chosen on four fifths of the queries and rated on the last, 10 times, and chosen
on all lists but one and rated on that.
"""

import argparse
import pickle
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import psycopg

from benchmarks.kind_choice import Figures, Way, print_choice, tabulate
from benchmarks.kind_fusion import Found, Leg, fulltext_leg, rank, semantic_leg
from benchmarks.kind_vectors import KindVectors, read_kind
from benchmarks.mixes import DEPTH, Answered
from mail_assets.encoding.open import open_encoder
from mail_assets.evaluation.scores import ndcg, reciprocal_rank
from mail_assets.search.fusion import weigh_legs
from mail_assets.search.language.request import Request
from mail_assets.search.language.syntax import parse_request
from mail_assets.search.semantic import HYBRID_CHUNKS
from mail_assets.settings.settings import Settings, load_settings

CHUNK = "chunk"
WAYS = (
    Way(),
    *(Way("less", amount) for amount in (0.0, 0.05, 0.1)),
    *(Way(how, amount) for how in ("share", "thread") for amount in (0.1, 0.2, 0.4)),
)

MESSAGES = """
select m.list, m.message_id, t.thread_id, t.parent_id is null, t.position
  from messages m join threads t using (message_id)
 group by 1, 2, 3, 4, 5
 order by 1, 3, 5
"""

Vectors = npt.NDArray[np.float32]


class Mail(NamedTuple):
    """The messages of a list by their ids, and the ids of each thread in its order."""

    messages: dict[str, Found]
    threads: dict[str, list[str]]


class Question(NamedTuple):
    """A recorded query, the mail it is asked of, and the nearest vectors of each kind."""

    answered: Answered
    list_name: str
    members: Mapping[str, list[str]]
    words: Leg
    near: dict[str, list[Found]]


def main() -> None:
    """Print the tables of each kind."""
    parser = argparse.ArgumentParser(description="Compare search with and without further kinds.")
    parser.add_argument("legs", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("kinds", nargs="+")
    arguments = parser.parse_args()
    recorded: list[Answered] = pickle.loads(arguments.legs.read_bytes())  # written by mixes
    settings = load_settings()
    with settings.database.connect("kinds") as connection:
        mail = read_mail(connection)
    kinds = {kind: read_kind(arguments.folder, kind) for kind in (CHUNK, *arguments.kinds)}
    asked = [_question(answered, mail) for answered in recorded]
    find_nearest(asked, encode_queries(settings, recorded), kinds, mail)
    for kind in arguments.kinds:
        print(f"\n## {kind}\n", flush=True)
        compare(asked, kind)


def read_mail(connection: psycopg.Connection) -> dict[str, Mail]:
    """Return all messages by list."""
    mail: dict[str, Mail] = {}
    for name, message_id, thread, begins, _ in connection.execute(MESSAGES):
        one = mail.setdefault(name, Mail({}, {}))
        one.messages[message_id] = Found(message_id, thread, begins, 0.0)
        one.threads.setdefault(thread, []).append(message_id)
    return mail


def _question(answered: Answered, mail: Mapping[str, Mail]) -> Question:
    """Return a recorded query with the other messages of the threads that it may find."""
    relevant, citing = {*answered.one.relevant}, answered.one.citing
    name = next(name for name, one in mail.items() if one.messages.keys() & relevant)
    words = fulltext_leg(weigh_legs(*answered.question).fulltext, answered.fulltext)
    threads = mail[name].threads
    if citing:
        touched = {mail[name].messages[one].thread for one in citing if one in mail[name].messages}
        left = {t: [one for one in threads[t] if one not in citing] for t in touched}
        threads = {**threads, **left}
    return Question(answered, name, threads, words, {})


def encode_queries(settings: Settings, recorded: Iterable[Answered]) -> Vectors:
    """Return the vector of each query."""
    encoder = open_encoder(settings.encoder, settings.precision, settings.model_cache)
    texts = [parse_request(Request(answered.one.text)).text for answered in recorded]
    return np.stack([encoder.encode_query(text) for text in texts])


def find_nearest(
    asked: list[Question],
    queries: Vectors,
    kinds: Mapping[str, KindVectors],
    mail: Mapping[str, Mail],
) -> None:
    """Note for each query the nearest vectors of each kind in its list, best first."""
    for (kind, of_kind), (name, of_list) in product(kinds.items(), mail.items()):
        rows = [i for i, one in enumerate(of_kind.message_ids) if one in of_list.messages]
        places = [i for i, question in enumerate(asked) if question.list_name == name]
        similar = queries[places] @ of_kind.vectors[rows].T
        for place, similarities in zip(places, similar, strict=True):
            question = asked[place]
            best = np.argsort(-similarities)[: 2 * HYBRID_CHUNKS]
            found = [(of_kind.message_ids[rows[i]], float(similarities[i])) for i in best]
            question.near[kind] = [
                of_list.messages[one]._replace(similarity=similarity)
                for one, similarity in found
                if one not in question.answered.one.citing
            ]


def compare(asked: list[Question], kind: str) -> None:
    """Print the figures of each way to add a kind, and of the way that is chosen."""
    hybrid = {way: rate(asked, partial(rank_hybrid, kind=kind, way=way)) for way in WAYS}
    meaning = {
        way: rate(asked, partial(rank_meaning, kind=kind, way=way))
        for way in WAYS
        if way.how in ("", "less")
    }
    print(f"meaning\n\n{tabulate(meaning)}\n\nhybrid\n\n{tabulate(hybrid)}\n")
    print_choice(hybrid, [(one.answered.kind, one.list_name) for one in asked])


def rate(asked: list[Question], ranking: Callable[[Question], list[str]]) -> Figures:
    """Return the figure of each query, by the kind of question, as benchmarks.mixes rates it."""
    several = {one.answered.kind for one in asked if len(one.answered.one.relevant) > 1}
    rated: dict[str, list[float]] = {}
    for question in asked:
        found, relevant = ranking(question), question.answered.one.relevant
        value = (
            ndcg(found, relevant, 10)
            if question.answered.kind in several
            else reciprocal_rank(found[:DEPTH], relevant)
        )
        rated.setdefault(question.answered.kind, []).append(value)
    return rated


def nearest(question: Question, kind: str, way: Way) -> list[Found]:
    """Return the messages nearest by meaning, with the further kind in the same index or not."""
    found = [*question.near[CHUNK]]
    if way.how == "less":
        more = question.near[kind]
        found += [one._replace(similarity=one.similarity - way.amount) for one in more]
    return merge(found)


def merge(found: Iterable[Found]) -> list[Found]:
    """Return the messages of the nearest vectors, each with its nearest."""
    best: dict[str, Found] = {}
    for one in sorted(found, key=lambda one: -one.similarity)[:HYBRID_CHUNKS]:
        best.setdefault(one.message_id, one)
    return [*best.values()]


def rank_meaning(question: Question, kind: str, way: Way) -> list[str]:
    """Return the ranking of the leg of meaning alone."""
    return [one.message_id for one in nearest(question, kind, way)]


def rank_hybrid(question: Question, kind: str, way: Way) -> list[str]:
    """Return the ranking of search, with the further kind added."""
    mix = weigh_legs(*question.answered.question)
    own_leg = way.how in ("share", "thread")
    share = way.amount if own_leg else 0.0
    legs = [semantic_leg(mix.semantic * (1 - share), nearest(question, kind, way)), question.words]
    if own_leg:
        further = merge(question.near[kind])
        legs.append(semantic_leg(mix.semantic * share, further, own=way.how == "share"))
    return rank(legs, mix, question.members)


if __name__ == "__main__":
    main()
