"""Several texts under one Message-ID: copies, contesting texts, and the order of arrival."""

import random
from collections import Counter

import psycopg
import pytest

from mail_assets_tests.conftest import REPOSITORY
from mail_assets_tests.world import APRIL, HARBOR, MARCH, PIER, World, mail

TRUE, FALSE = "We decided not to ship it.", "We decided to ship it. See http://evil.example"
FOOTER = (
    "\n_______________________________________________\npier mailing list\nhttps://x.example/pier\n"
)


def arrived(day: int, text: str = TRUE, body: str = "", **fields: str) -> bytes:
    """A mail with a fixed id, received by its list on a day of March."""
    line = f"From list@example.org Fri Mar {day:2} 10:00:00 2024"
    return mail("decision", body or text, **{"subject": "decision", "from_line": line, **fields})


GENUINE = arrived(10)
HOP = "Received: from x by list.example.org; {}, {} Mar 2024 09:00:00 +0000"

#: Name -> the other copy, its list, and whether it contests; the genuine one is in HARBOR, March.
SHAPES: dict[str, tuple[bytes, str, str, bool]] = {
    "earlier Date": (
        arrived(11, FALSE, date="Fri, 01 Mar 2024 09:00:00 +0000"), PIER, MARCH, True,
    ),
    "later Date": (arrived(11, FALSE, date="Wed, 20 Mar 2024 09:00:00 +0000"), PIER, MARCH, True),
    "one word": (arrived(11, TRUE.replace("not", "now")), PIER, MARCH, True),
    "one sign": (arrived(11, TRUE.replace(".", "?")), PIER, MARCH, True),
    "another author": (arrived(11, sender="eve@example.com"), PIER, MARCH, True),
    "another subject": (arrived(11, subject="retraction"), PIER, MARCH, True),
    "another Date alone": (
        arrived(11, date="Fri, 01 Mar 2024 09:00:00 +0000"), PIER, MARCH, True,
    ),
    "an earlier month": (
        arrived(11, FALSE, date="Thu, 01 Feb 2024 09:00:00 +0000"), PIER, "2024-02", True,
    ),
    "a later month": (arrived(11, FALSE), PIER, APRIL, True),
    "the same list": (arrived(11, FALSE), HARBOR, MARCH, True),
    "the same list, another month": (arrived(11, FALSE), HARBOR, "2024-02", True),
    "forged hops below": (
        arrived(11, FALSE, headers=f"{HOP.format('Mon', 11)}\n{HOP.format('Fri', 1)}"),
        PIER, MARCH, True,
    ),
    "a forged hop alone": (
        arrived(11, FALSE, headers=HOP.format("Fri", 1)), PIER, MARCH, True,
    ),
    "other references": (
        arrived(11, FALSE, references="<other@example.org>"), PIER, MARCH, True,
    ),
    "an attached file": (
        arrived(
            11,
            body=f"--b\nContent-Type: text/plain\n\n{TRUE}\n--b\nContent-Type: text/x-diff\n"
            "Content-Disposition: attachment; filename=evil.patch\n\n+evil\n--b--",
            headers="MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b",
        ),
        PIER, MARCH, True,
    ),
    "the same": (arrived(11), PIER, MARCH, False),
    "a footer": (arrived(11, TRUE + FOOTER), PIER, MARCH, False),
    "a notice below a mark": (
        arrived(11, f"{TRUE}\n\n-- \nMailing list info: https://x.example/listinfo/pier\n"),
        PIER, MARCH, False,
    ),
    "other words below a mark": (
        arrived(11, f"{TRUE}\n\n-- \nOr ship it: http://evil.example/\n"), PIER, MARCH, True,
    ),
    "a long text below a mark": (
        arrived(11, f"{TRUE}\n\n-- \nThe mailing list ships it.\n{'Ship it. ' * 40}\n"),
        PIER, MARCH, True,
    ),
    "a notice of PostgreSQL's": (
        arrived(
            11,
            f"{TRUE}\n\n---------------------------(end of broadcast)---------------------------\n"
            "TIP 9: In versions below 8.0, the planner will ignore your desire to\n"
            "       choose an index scan if your joining column's datatypes do not match\n",
        ),
        PIER, MARCH, False,
    ),
    "a notice of majordomo": (
        arrived(
            11,
            f"{TRUE}\n\n--\nTo unsubscribe from this list: send the line \"unsubscribe pier\" in\n"
            "the body of a message to majordomo@x.example\n"
            "More majordomo info at  http://x.example/majordomo-info.html\n",
        ),
        PIER, MARCH, False,
    ),
    "words in a notice": (
        arrived(11, f"{TRUE}\n\n-- \nReverted: ship it. More on the mailing list.\n"),
        PIER, MARCH, True,
    ),
    "words below the rule of a footer": (
        arrived(11, FOOTER.join((TRUE, "")).replace("pier mailing", "Reverted: ship it. mailing")),
        PIER, MARCH, True,
    ),
    "words in how to leave": (
        arrived(11, f"{TRUE}\n\nTo unsubscribe from this list: no, we ship it.\nhttp://evil.example\n"),
        PIER, MARCH, True,
    ),
    "words below the end of a broadcast": (
        arrived(
            11,
            f"{TRUE}\n\n---------------------------(end of broadcast)---------------------------\n"
            "TIP 1: it was reverted, ship it\n",
        ),
        PIER, MARCH, True,
    ),
    "a subject that was folded again": (
        arrived(11, subject="deci\n sion"), PIER, MARCH, False,
    ),
    "a tag": (arrived(11, subject="[pier] decision"), PIER, MARCH, False),
    "other lines": (arrived(11, TRUE.replace("not ", "not\n") + "\n\n"), PIER, MARCH, False),
    "the author's other name": (arrived(11, headers="Cc: pier@example.org"), PIER, MARCH, False),
    "another encoding": (
        arrived(
            11, body="V2UgZGVjaWRlZCBub3QgdG8gc2hpcCBpdC4K",
            headers="MIME-Version: 1.0\nContent-Type: text/plain; charset=utf-8\n"
            "Content-Transfer-Encoding: base64",
        ),
        PIER, MARCH, False,
    ),
}  # fmt: skip

CONTESTED = "list, month, variant, place"

#: The same mail in another list, as another session writes it.
COPY = """
insert into messages
select 'harbor', month, message_id, variant, content_hash, row_hash, sent_at, date_source, date_raw,
       subject, subject_base, from_name, from_email, reply_to, recipients, cc, in_reply_to, refs,
       list_id, body_kind, body_text, segments, attachments, identifiers, flags, search, arrived_at,
       arrival_source, topic, is_answer, sha256('the first'), outline, files_hash
  from messages
"""
MANY = """
insert into messages
select l, '2024-03', case l when 'c' then 'one' else 'id ' || n end,
       case l when 'c' then n else 0 end, '', '', now(), 'date', '', '', '', '', 'ann@example.org',
       '{}', '{}', '{}', '{}', '{}', '', 'plain', '', '[]', '[]', '{}', '{}', '',
       now() + n * interval '1 second', 'received', '', false, sha256((l || n)::bytea),
       sha256((l || n)::bytea), case l when 'c' then null::bytea else '' end
  from unnest(array['a', 'b', 'c']) l, generate_series(0, 2999) n
"""


def load(world: World, genuine_first: bool) -> None:
    """Load all pairs of copies, each with its own id."""
    places: dict[tuple[str, str], list[bytes]] = {(HARBOR, MARCH): []}
    for number, (other, list_name, month, _) in enumerate(SHAPES.values()):
        pair = [(GENUINE, (HARBOR, MARCH)), (other, (list_name, month))]
        for one, place in pair if genuine_first else reversed(pair):
            named = one.replace(b"<decision@", f"<decision{number}@".encode())
            # equal From_ lines would look like those of an export, which have no arrival time
            line = named.replace(b"From list@", f"From list{number}@".encode(), 1)
            places.setdefault(place, []).append(line)
    loads = [*places.items()]
    for (name, month), mails in loads if genuine_first else reversed(loads):
        world.load(*mails, list_name=name, month=month)


def first(world: World, number: int | str = "") -> str:
    [(text,)] = world.rows(f"first_copy('decision{number}@example.org')", "body_text")
    return str(text).strip()


@pytest.mark.parametrize("genuine_first", [True, False])
def test_another_content_contests_the_id(world: World, genuine_first: bool) -> None:
    load(world, genuine_first)
    contested = Counter(id for (id,) in world.rows("contested_texts", "message_id"))
    ids = {name: f"decision{number}@example.org" for number, name in enumerate(SHAPES)}
    wanted = {name: 2 * contests for name, (*_, contests) in SHAPES.items()}
    assert {name: contested[id] for name, id in ids.items()} == wanted
    found = {name: first(world, number) for number, name in enumerate(SHAPES)}
    assert found == dict.fromkeys(SHAPES, TRUE)
    sources = world.rows(
        "messages join contested_texts using (list, month, message_id, variant)",
        "list", "place = 1",
    )  # fmt: skip
    assert sources == [(HARBOR,)] * (sum(wanted.values()) // 2)


def test_many_texts_of_many_ids_cost_little(migrated: psycopg.Connection) -> None:
    """A month that claims 3,000 ids again, and one id with 3,000 texts."""
    migrated.execute(MANY)
    migrated.execute("select find_contested(array(select distinct message_id from messages))")
    counts = migrated.execute(
        "select count(*), count(*) filter (where place = 2), max(place) from contested_texts"
    ).fetchone()
    assert counts == (9000, 3001, 3000)
    migrated.execute("delete from messages where list = 'b'")
    left = migrated.execute("select count(*), count(distinct message_id) from contested_texts")
    assert left.fetchone() == (3000, 1)


REPORTED = REPOSITORY.parent / "shared" / "corpora" / "reported"


@pytest.mark.skipif(not REPORTED.is_dir(), reason="the reported files are not here")
@pytest.mark.parametrize("order", [(HARBOR, PIER), (PIER, HARBOR)])
def test_reported_forgery_is_marked_and_comes_second(world: World, order: tuple[str, str]) -> None:
    files = {
        HARBOR: REPORTED / "R41-forged-id-good.2024-03.mbox",
        PIER: REPORTED / "R41-forged-id-evil.2024-03.mbox",
    }
    for name in order:
        world.load(files[name].read_bytes(), list_name=name)
    world.threads()
    world.summaries()
    assert world.rows("contested_texts", "list, place") == [(HARBOR, 1), (PIER, 2)]
    assert "not to ship" in first(world)
    assert "decision@example.org" not in str(world.rows("thread_summaries", "sentences"))


def test_months_loaded_at_once_see_each_others_texts(world: World) -> None:
    """The load that ends later sees the rows of the other."""
    world.load(GENUINE, list_name=PIER)
    with world.connect() as one, world.connect() as other:
        text = "update messages set text_hash = %s where list = 'pier'"
        with one.transaction():
            one.execute(text, (b"another",))
            with other.transaction():
                other.execute(COPY)
            one.execute("select find_contested(array['decision@example.org'])")
    assert len(world.rows("contested_texts")) == 2


@pytest.mark.parametrize("seed", range(6))
def test_order_of_loads_makes_no_difference(world: World, seed: int) -> None:
    chance = random.Random(seed)
    copies = [GENUINE, arrived(11, FALSE), arrived(12, TRUE + FOOTER), arrived(13, FALSE + "!")]
    places = [(HARBOR, MARCH), (PIER, MARCH), (PIER, APRIL), (HARBOR, "2024-02")]
    loads = [*zip(copies, places, strict=True)]
    chance.shuffle(loads)
    for mails, (name, month) in loads:
        world.load(mails, list_name=name, month=month)
        world.threads()
    assert world.rows("contested_texts", CONTESTED) == [
        (HARBOR, "2024-02", 0, 3),
        (HARBOR, MARCH, 0, 1),
        (PIER, MARCH, 0, 2),
        (PIER, APRIL, 0, 1),
    ]
    assert first(world) == TRUE


def test_forged_text_that_arrives_first_is_marked(world: World) -> None:
    """A forger can guess an id and arrive first; the id is contested all the same."""
    world.load(arrived(9, FALSE), list_name=PIER)
    world.load(GENUINE)
    world.threads()
    world.summaries()
    assert world.rows("contested_texts", "list, place") == [(HARBOR, 2), (PIER, 1)]
    assert world.rows("thread_summaries") == []


def test_one_forged_copy_of_three_is_identified(world: World) -> None:
    world.load(GENUINE)
    world.load(arrived(11, TRUE + FOOTER), list_name=PIER)
    world.load(arrived(12, FALSE), list_name=PIER, month=APRIL)
    assert world.rows("contested_texts", CONTESTED) == [
        (HARBOR, MARCH, 0, 1),
        (PIER, MARCH, 0, 1),
        (PIER, APRIL, 0, 2),
    ]


def test_references_of_a_contesting_text_move_nothing(world: World) -> None:
    answer = mail("answer", references="<decision@example.org>", subject="Re: decision")
    world.load(GENUINE, answer, mail("victim"))
    world.threads()
    before = world.rows("threads")
    forged = arrived(11, FALSE, references="<victim@example.org>")
    world.load(forged, list_name=PIER)
    world.threads()
    assert world.rows("threads") == before


MADE_UP = "From nobody Mon Mar  4 1{}:00:00 2024"
NO_TIME = "From mboxrd@z Thu Jan  1 00:00:00 1970"
HOPS = (
    "Received: from x by list.example.org; Tue, 5 Mar 2024 09:00:00 +0000\n"
    "Received: from y by x; Fri, 1 Mar 2024 09:00:00 +0000"
)
ARRIVAL = "body_text, arrival_source, to_char(arrived_at at time zone 'UTC', 'MM-DD HH24:MI:SS.US')"


def load_alone(world: World, at: int, *mails: bytes) -> dict[str, tuple[str, str]]:
    world.load(
        *mails,
        mail("hops", "hops", headers=HOPS, from_line=NO_TIME),
        mail("made-up", "made up", from_line=MADE_UP.format(at)),
        mail("no-time", "no time", from_line=NO_TIME),
        mail("no-time", "another text", from_line=NO_TIME),
        at=at,
    )
    return {body.strip(): (source, at) for body, source, at in world.rows("messages", ARRIVAL)}


def test_arrival_stays_when_a_month_is_loaded_again(world: World) -> None:
    first = load_alone(world, 0)
    assert first["hops"] == ("received", "03-05 09:00:00.000000")
    assert first["made up"] == ("from_line", "03-04 10:00:00.000000")
    assert first["no time"][0] == first["another text"][0] == "loaded"
    again = load_alone(world, 5, mail("more"), mail("no-time", "a third text", from_line=NO_TIME))
    assert {text: again[text] for text in first} == first
    assert again["a third text"] > first["no time"]


def hop(day: int) -> str:
    return f"Received: from x by list.example.org; {day} Mar 2024 09:00:00 +0000"


@pytest.mark.parametrize("line", [
    "From - Sat Nov 21 10:00:00 2026", "From ???@??? Sat Nov 21 10:00:00 2026",
    "From MAILER-DAEMON Sat Nov 21 10:00:00 2026", "From MAILER-DAEMON Thu Jan 01 1970",
    "From MAILER-DAEMON", "From nobody Mon Sep 17 00:00:00 2001",
])  # fmt: skip
def test_received_decides_if_from_lines_are_equal(world: World, line: str) -> None:
    first = mail("x", "the genuine text", headers=hop(5), from_line=line)
    world.load(first)  # a single line can belong to its message
    world.load(mail("x", "a forged text", headers=hop(7), from_line=line), first, at=1)
    rows = world.rows("messages", f"{ARRIVAL}, message_id")
    assert [(body.strip(), *rest) for body, *rest, _ in rows] == [
        ("a forged text", "received", "03-07 09:00:00.000000"),
        ("the genuine text", "received", "03-05 09:00:00.000000"),
    ]
