"""Questions are read for a person whose mail is asked for, and for a wanted date or person."""

from collections.abc import Iterator, Sequence

import psycopg
import pytest

from mail_assets.answers.answer import PassageMaker
from mail_assets.answers.evidence import find_evidence, find_person, read_question
from mail_assets.search.language.request import Request
from mail_assets.search.searcher import Searcher

MONTHS = [f"2024-{month:02}" for month in range(1, 11)]
#: Names of senders, and how many of the ten months have them.
SENDERS = {
    "Ann Lee": 10, "Ann B. Lee": 2, "Bea Lee": 1, "Björn Åkesson": 3, "Cara O'Neil": 2,
    "Dov": 3, "Dov Miller": 3, "Miller, Eve": 1, "jo(a)example.org": 1, "kim@example.org Kim": 1,
    "Søren Lunde": 1, "Ян Новак": 1, "Zoe Ames": 3, "Ames, Zoe": 1,
}  # fmt: skip


@pytest.fixture
def senders(connection: psycopg.Connection) -> Iterator[psycopg.Connection]:
    """The senders of a list, until the test ends."""
    with connection.transaction(force_rollback=True):
        connection.execute("insert into lists (list) values ('people')")
        for place, (name, count) in enumerate(SENDERS.items()):
            for month in MONTHS[:count]:
                address = f"{place}@example.net"
                connection.execute(
                    "insert into senders values ('people', %s, %s, fold_name(%s) || ' ' || %s)",
                    [month, address, name, address],
                )
        yield connection


@pytest.mark.parametrize(
    ("name", "person"),
    [
        ("Ann Lee", "Ann Lee"),
        ("ann lee", "Ann Lee"),
        ("Lee, Ann", "Ann Lee"),
        ("Ann", "Ann Lee"),
        ("Lee", "Ann Lee"),  # Bea Lee wrote in one month of eleven
        ("Bea", "Bea Lee"),
        ("O'Neil", "Cara O'Neil"),
        ("Eve", "Miller, Eve"),
        ("Åkesson", "Bjorn Akesson"),
        ("akesson", "Bjorn Akesson"),
        ("Bjorn Akesson", "Bjorn Akesson"),
        ("Ann Leé", "Ann Lee"),
        ("Søren", "Soren Lunde"),
        ("soren lunde", "Soren Lunde"),
        ("O\u2019Neil", "Cara O'Neil"),
        ("Новак", "Ян Новак"),
        ("Zoe", "Zoe Ames"),  # the more usual spelling
        # several, nobody, or no name
        ("Miller", ""),
        ("Dov", ""),
        ("Lee Bea Ann", ""),
        ("Nobody", ""),
        ("An", ""),
        ("the Lee", ""),
        ("somebody", ""),
        ("jo(a)example.org", ""),
        ("1@example.net", ""),
        ("example.net", ""),
        ("kim", ""),
        ("%", ""),
        ("", ""),
    ],
)
def test_name_is_the_one_sender_that_has_it(
    senders: psycopg.Connection, name: str, person: str
) -> None:
    assert find_person(senders, name, ("people",)) == person
    assert find_person(senders, name, ("another",)) == ""


@pytest.mark.parametrize(
    ("question", "person", "rest"),
    [
        ("What did Ann Lee say about leases?", "Ann Lee", "leases"),
        ("what did ann lee say about leases", "Ann Lee", "leases"),
        ("What has Ann ever written on leases?", "Ann Lee", "leases"),
        ("Why did Ann Lee object to shorter leases?", "Ann Lee", "shorter leases"),
        ("Did Ann ever object to leases?", "Ann Lee", "leases"),
        ("Does Ann think that leases expire?", "Ann Lee", "leases expire"),
        ("When did Ann propose leases?", "Ann Lee", "leases"),
        ("What is Ann Lee's opinion on leases?", "Ann Lee", "leases"),
        ("What is Ann Lee’s opinion on leases?", "Ann Lee", "leases"),
        ("What was the proposal of Ann Lee for leases?", "Ann Lee", "leases"),
        ("According to Ann Lee, how do leases expire?", "Ann Lee", "how do leases expire"),
        ("messages from Ann Lee about leases", "Ann Lee", "leases"),
        ("Was hat Ann Lee zu Leases gesagt?", "Ann Lee", "Leases"),
        ("Was sagte Ann über Leases?", "Ann Lee", "Leases"),
        ("¿Qué dijo Ann Lee sobre leases?", "Ann Lee", "leases"),
        ("Qu'a dit Ann Lee sur leases ?", "Ann Lee", "leases"),
        ("O que disse Ann sobre leases?", "Ann Lee", "leases"),
        ("Что писал Новак о leases?", "Ян Новак", "leases"),
        # words alone
        ("What did the server say about leases?", "", "What did the server say about leases?"),
        ("What does Miller say about leases?", "", "What does Miller say about leases?"),
        ("What did Ann Lee say?", "", "What did Ann Lee say?"),
        ("How do leases expire?", "", "How do leases expire?"),
        ("Who proposed leases?", "", "Who proposed leases?"),
    ],
)
def test_question_about_a_person_is_read_as_from(
    senders: psycopg.Connection, question: str, person: str, rest: str
) -> None:
    reading = read_question(senders, Request(question, lists=("people",)))
    assert (reading.person, reading.request.sender) == (person, person)
    assert reading.request.query == rest
    assert (f'what was sent under the name {person} about "{rest}"' in reading.note) == bool(person)


def test_given_sender_is_not_replaced(senders: psycopg.Connection) -> None:
    request = Request("What did Ann Lee say about leases?", lists=("people",), sender="bea")
    assert read_question(senders, request).request == request


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("When was the lease made longer?", "date"),
        ("Since when does a lease expire?", "date"),
        ("Seit wann gibt es Leases?", "date"),
        ("¿Desde cuándo hay leases?", "date"),
        ("Who wrote the lease?", "person"),
        ("Wer schrieb das?", "person"),
        ("How long is a lease?", ""),
        ("Whenever a lease expires?", ""),
    ],
)
def test_question_for_a_date_or_person_says_so(
    connection: psycopg.Connection, question: str, said: str
) -> None:
    note = read_question(connection, Request(question)).note
    assert (said in note) if said else not note


def test_passages_are_of_the_person_or_say_that_none_is(
    searcher: Searcher, connection: psycopg.Connection
) -> None:
    names = {str(name) for (name,) in connection.execute("select distinct from_name from messages")}
    person = next(one for one in sorted(names) if "Solheim" in one)
    found = ask(searcher, connection, f"What did {person} say about the lease?")
    assert {one for _, one in found} == {person}
    note, _ = found[0]
    assert note.startswith("Read as: what ")
    other = ask(searcher, connection, f"What did {person} say about sourdough ovens?")
    assert other == [] or other[0][0].startswith("Read as") or other[0][0].startswith("Nothing")


def ask(
    searcher: Searcher, connection: psycopg.Connection, question: str
) -> Sequence[tuple[str, str]]:
    """Return the reading and the sender of each passage."""
    maker = PassageMaker()
    found = find_evidence(searcher, connection, Request(question), maker.budget)
    return [(found.reading, one.hit.from_name) for one in found.excerpts]
