"""Passages are whole paragraphs of new text, at exact characters, best first."""

import datetime as dt
from collections.abc import Sequence

import psycopg
import pytest

from mail_assets.answers.answer import NEAREST, NOTHING, Answer, PassageMaker
from mail_assets.answers.evidence import Turn, find_evidence
from mail_assets.answers.passages import (
    CUT,
    MAX_CHARACTERS,
    MOST,
    Paragraph,
    Passage,
    choose_passages,
    describe,
    find_paragraphs,
)
from mail_assets.search.language.request import MODES, Request
from mail_assets.search.searcher import Searcher
from mail_assets_tests.answers.conftest import write_answer
from mail_assets_tests.answers.excerpts import excerpt

QUESTION = "when does a lease expire"
MAKER = PassageMaker()

PROSE = "The clock of the primary decides when a lease is over."
CODE = "lease = now() + 30;"
MORE = "A worker renews its lease long before that time."


def paragraphs(body: str, start: int = 0) -> list[str]:
    found = find_paragraphs(body, [(start, len(body), "text")])
    return [body[one.start : one.end] for one in found]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (f"{PROSE}\n\n{MORE}\n", [PROSE, MORE]),
        (f"{PROSE}\n{MORE}\n", [f"{PROSE}\n{MORE}"]),
        (f"{PROSE}\r\n\r\n{MORE}\r\n", [PROSE, MORE]),
        (f"{PROSE}\n \t\n{MORE}", [PROSE, MORE]),
        # what does not stand alone
        (f"Hello Ann,\n\n{PROSE}\n\nregards, Ben\n", [PROSE]),
        (f"No.\n\n{PROSE}", [f"No.\n\n{PROSE}"]),
        (f"{PROSE} It reads:\n\n{MORE}", [f"{PROSE} It reads:\n\n{MORE}"]),
        (f"{PROSE}\n\n    {CODE}\n\n{MORE}", [f"{PROSE}\n\n    {CODE}", MORE]),
        (
            f"{PROSE}\n\n    {CODE}\n\nwhich is the clock of the primary.",
            [f"{PROSE}\n\n    {CODE}\n\nwhich is the clock of the primary."],
        ),
        ("There are two ways:\n\n- the first one\n\n- the second one\n", None),
        ("There are two ways:\n\n1. the first one\n2. the second one\n", None),
        (f"1. {PROSE}\n\n2. {MORE}", None),
        # code, trailers and greetings are no passages
        ("    x = now() + 30;\n    y = x + lease;\n    z = y;\n", []),
        (f"{PROSE}\n\nSigned-off-by: Ann <ann@example.org>\nCc: Ben <ben@example.org>\n", [PROSE]),
        (f"{PROSE}\nSigned-off-by: Ann <ann@example.org>", [PROSE]),
        (f"{PROSE}\n\nCc: Ben <ben@example.org>\nAcked-by: Ann <ann@example.org>\n---\n", [PROSE]),
        (f'{PROSE}\n\nFixes 1234567890ab ("The clock decides it")\n', [PROSE]),
        ("Thanks, Ann\n", []),
        ("", []),
    ],
)  # fmt: skip
def test_paragraph_keeps_what_belongs_to_it(body: str, expected: list[str] | None) -> None:
    assert paragraphs(body) == ([body.rstrip()] if expected is None else expected)


#: Lines of code, diffs, logs, backtraces and tables, without blank ones.
LISTINGS = (
    "/*\n * Return the lease of a worker, or NULL\n * if it has none at this moment.\n */",
    " *  The lease of a worker is over when the clock\n *  of the primary says that it is.\n */",
    "int renew(struct lease *one)\n{\n\t/* the clock of the primary decides it */\n\treturn 0;\n}",
    'class Lease(object):\n    """The time that a worker has a job.\n\n    It is long."""',
    "from harbor import lease\ndef renew(worker):\n    The worker renews its own lease here.",
    "+The lease of a worker is over when\n-the lease of a worker has been\n lease = now() + 30",
    "2024-03-01 10:00:01 worker seven renews its lease\n2024-03-01 10:00:02 it is over now",
    "Call Trace:\n renew_lease+0x1f/0x40\n worker_loop+0x99/0x110\n main_thread+0x3/0x5",
    "worker   lease   clock\nseven    long    primary\neight    short   standby of it",
    "Ann Pier (2):\n      lease: The clock decides it\n      clock: It is that of the primary",
    "harbor# ./harbor lease all\nThe worker has one lease\nThe worker has no other lease",
    "  $ lease --all\n  The worker has one lease\n    Error: the worker has no other lease",
    "[root@harbor /tmp]# lease\nThe worker has one lease\nThe worker has no other lease",
    "harbor=# select lease\nThe worker has one lease\nThe worker has no other lease",
    ">>> lease()\nThe worker has one lease\nThe worker has no other lease",
    "|-- drivers-lease.c:warning:no-lease\n|-- drivers-clock.c:warning:clock-is-not-there-now",
)


@pytest.mark.parametrize("listing", LISTINGS)
def test_listing_is_shown_with_its_prose_alone(listing: str) -> None:
    assert paragraphs(f"{listing}\n\nIt is so.\n") == []
    assert paragraphs(f"{PROSE}\n\nIt says in the file that is there:\n{listing}\n")[0] == PROSE
    said = paragraphs(f"It says in the file that is there:\n{listing}\n")
    assert said[0].startswith("It says in the file that is there:\n")
    assert listing.partition("\n\n")[0] in said[0]


@pytest.mark.parametrize(
    "prose",
    [
        "Call renew_lease() of lease.c, or lease(2),\nif the worker still has its job there.",
        "The worker asks by\n   # lease --all\nand waits for the clock of the primary.\nIt does.",
        "C# programs have a lease of $ 5, as many\nothers have, and # of leases is the limit.",
        "- the clock of the primary decides it\n- the worker renews its lease early",
        "\u0427\u0430\u0441\u044b \u0433\u043b\u0430\u0432\u043d\u043e\u0433\u043e "
        "\u0441\u0435\u0440\u0432\u0435\u0440\u0430 "
        "\u0440\u0435\u0448\u0430\u044e\u0442 \u044d\u0442\u043e.",
        "\u30ea\u30fc\u30b9\u306e\u671f\u9650\u306f\u4e3b\u30b5\u30fc\u30d0\u306e"
        "\u6642\u8a08\u3067\u6c7a\u307e\u308a\u307e\u3059\u3002",
        "Le bail n'est fini que si l'horloge l'a dit ;\nc'est celle du serveur principal.",
    ],
)
def test_prose_in_any_script_is_a_passage(prose: str) -> None:
    assert paragraphs(prose) == [prose]


def test_prose_above_long_code_is_shown_without_it() -> None:
    code = "".join(f"lease_{number} = now() + {number};\n" for number in range(40))
    assert paragraphs(f"{PROSE}\n{code}") == [PROSE]


def test_paragraphs_are_of_the_new_text_alone() -> None:
    quote = "> Which clock decides when a lease is over, and why?\n"
    body = f"{PROSE}\n{quote}{MORE}\n"
    at, end = len(PROSE) + 1, len(PROSE) + 1 + len(quote)
    segments = [(0, at, "text"), (at, end, "quote"), (end, len(body), "text")]
    found = [body[one.start : one.end] for one in find_paragraphs(body, segments)]
    assert found == [PROSE, MORE]


@pytest.mark.parametrize(
    "sentence",
    [
        "A sentence of seven words and more.",
        "Ein Satz mit sieben Wörtern und mehr.",
        "word" * 9 + " next",
        "x" * 4_000,
        "線を引く文が続きます。",
    ],
)
def test_long_paragraph_is_cut_with_a_mark(sentence: str) -> None:
    body = "One two three four five six. " + " ".join([sentence] * 200)
    found = find_paragraphs(body, [(0, len(body), "text")])
    assert len(found) > 1
    assert max(one.end - one.start for one in found) <= MAX_CHARACTERS
    assert [one.before for one in found] == [False] + [True] * (len(found) - 1)
    assert [one.after for one in found] == [True] * (len(found) - 1) + [False]
    assert "".join("".join(body[x.start : x.end].split()) for x in found) == "".join(body.split())
    if sentence.endswith("."):
        assert all(body[one.start : one.end].endswith(".") for one in found)


@pytest.mark.parametrize("mode", MODES)
def test_passage_stands_at_its_characters(
    searcher: Searcher, connection: psycopg.Connection, mode: str
) -> None:
    found = answer(searcher, connection, Request(QUESTION, mode=mode))
    assert (found.maker, found.complete) == ("passages", True)
    assert 3 <= len(found.citations) <= MOST
    for one in found.citations:
        [(start, end)] = one.spans
        body = read_body(connection, one.message_id)
        assert one.text.removeprefix(f"{CUT} ").removesuffix(f" {CUT}") == body[start:end]
        assert "\n\n" not in body[max(0, start - 1) : start] or not body[:start].strip()


def test_passages_are_of_several_conversations(
    searcher: Searcher, connection: psycopg.Connection
) -> None:
    found = answer(searcher, connection, Request(QUESTION))
    query = "select thread_id from threads where message_id = any(%s)"
    ids = [one.message_id for one in found.citations]
    assert len({*connection.execute(query, [ids]).fetchall()}) == len(ids)


def passage(number: int, text: str, words: float, day: int) -> Passage:
    """A passage of a separate conversation; higher `words` are better."""
    hit = excerpt(number, text).hit
    features = describe("lease", "", text, words=words, chunk=0.5)
    arrived = dt.datetime(2024, 3, day, tzinfo=dt.UTC)
    return Passage(hit, Paragraph(0, len(text)), text, features, arrived)


def test_repeated_passage_counts_once() -> None:
    longer = f"{PROSE} It never asks the clock of a worker for that"
    again = [passage(n, longer.upper(), 0.9, 20) for n in range(10, 30)]
    first, other = passage(1, f"{longer}.", 0.8, 3), passage(2, MORE, 0.3, 9)
    nearly = passage(3, f"{longer}, not.", 0.7, 2)
    chosen = choose_passages([*again, nearly, other, first])
    assert [one.hit.message_id for one in chosen] == [
        one.hit.message_id for one in (first, other, nearly)
    ]


def test_same_question_has_the_same_answer(
    searcher: Searcher, connection: psycopg.Connection
) -> None:
    answers = {answer(searcher, connection, Request(QUESTION)).citations for _ in range(3)}
    assert len(answers) == 1


def test_question_on_another_matter_finds_nothing_near(
    searcher: Searcher, connection: psycopg.Connection
) -> None:
    found = answer(searcher, connection, Request("which oven bakes the best sourdough bread"))
    assert (found.text, found.answers, found.complete) == (NOTHING, None, True)
    assert found.citations == ()


def test_follow_up_is_answered_in_its_context(
    searcher: Searcher, connection: psycopg.Connection
) -> None:
    follow_up = Request("and what was it changed to?")
    alone = answer(searcher, connection, follow_up)
    asked = answer(searcher, connection, follow_up, [Turn(QUESTION, "The lease ran out [1].")])
    assert any("lease" in one.text for one in asked.citations)
    assert [one.message_id for one in alone.citations] != [
        one.message_id for one in asked.citations
    ]


@pytest.mark.parametrize(
    ("question", "mode", "doubts"),
    [
        ("今天晚饭吃什么？", "hybrid", True),
        ("为什么 lease 会丢失", "semantic", True),
        ("今天晚饭吃什么 lease", "fulltext", False),
        (f"{QUESTION} 鈴木", "hybrid", False),
        ("почему теряется lease", "hybrid", False),
    ],
)
def test_unknown_script_of_a_question_is_doubted(
    searcher: Searcher, connection: psycopg.Connection, question: str, mode: str, doubts: bool
) -> None:
    found = find_evidence(searcher, connection, Request(question, mode=mode), MAKER.budget)
    assert bool(found.doubt) == doubts
    said = write_answer(MAKER, found)
    assert said.text == (f"{NOTHING} {found.doubt}" if doubts else NEAREST)


def answer(
    searcher: Searcher,
    connection: psycopg.Connection,
    request: Request,
    history: Sequence[Turn] = (),
) -> Answer:
    found = find_evidence(searcher, connection, request, MAKER.budget, history)
    return write_answer(MAKER, found)


def read_body(connection: psycopg.Connection, message_id: str) -> str:
    query = "select body_text from messages where message_id = %s"
    rows = connection.execute(query, [message_id]).fetchall()
    return str(rows[0][0])
