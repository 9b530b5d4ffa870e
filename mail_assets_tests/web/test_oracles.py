"""Searches do not confirm a guess at an address."""

import json
import re
from collections.abc import Iterator

import httpx
import pytest

from mail_assets.search.language.fields import VALUE_FORMS, is_field
from mail_assets.web.privacy import SHOWN
from mail_assets_tests.kept_worlds import standing_world
from mail_assets_tests.web.conftest import fill, serving_world
from mail_assets_tests.web.readings import ask_tool
from mail_assets_tests.world import World, mail

RIGHT, WRONG = "zqkrael.vimpo@tharnov.example", "zqmubel.wimpa@tharbyx.example"
ATTACHED = 'Content-Type: text/plain\nContent-Disposition: attachment; filename="{}"'
#: Ways to ask about an address; `{}` is the guess: a whole address, its user, or its host.
QUESTIONS = [
    # every field whose values may have an address
    *({"q": f'{name}:"{{}}"'} for name in VALUE_FORMS if is_field(name, RIGHT, quoted=False)),
    {"q": "whale from:{}"},
    {"q": "whale -from:{}"},
    {"q": "(from:{} or from:nobody) whale"},
    {"q": "whale -to:{}"},
    {"q": "whale", "sender": "{}"},
    {"q": "{}"},
    {"q": '"{}"'},
    {"q": "whale -{}"},
]


def fill_two_people(world: World) -> None:
    """Fill an archive in which one address has written, was written to, and is named."""
    fill(
        world,
        mail("a", "whale", sender=RIGHT, headers="To: Bob Builder <list@example.org>"),
        mail("b", "whale", headers=f"To: Carl Carpenter <{RIGHT}>\nCc: {RIGHT}"),
        mail("c", "whale", headers="To: Bob Builder <bob@example.org>"),
        mail("d", subject=f"About {RIGHT}", headers=ATTACHED.format(f"{RIGHT}.txt")),
    )


built = standing_world(fill_two_people)


@pytest.fixture(scope="module")
def strangers(built: World) -> Iterator[httpx.Client]:
    with serving_world(built) as client:
        yield client


def ask(client: httpx.Client, question: dict[str, str], guess: str) -> str:
    """Return all output, without times and without the guess itself."""
    given = {name: value.format(guess) for name, value in question.items()}
    said = []
    for path in ("/search.json", "/search", "/search.atom"):
        response = client.get(path, params={**given, "mode": "fulltext"})
        said.append(f"{response.status_code} {response.text}")
    said.append(ask_tool(client, "explain_search", query=f"{given['q']} mode:fulltext").text)
    text = json.dumps(said)
    for part in (guess, *re.split(r"[@.]", guess)):
        text = re.sub(re.escape(part), "GUESS", text, flags=re.IGNORECASE)
    return re.sub(r"\d+(\.\d+)? ms|\d+\.\d+|<updated>.*?<", "", text)


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda one: " ".join(one.values()))
@pytest.mark.parametrize("part", [r".*", r"[^@]*", r"[^@]*$"], ids=["address", "user", "host"])
def test_right_guess_gives_the_same_output_as_a_wrong_one(
    strangers: httpx.Client, question: dict[str, str], part: str
) -> None:
    guesses = [re.search(part, one) for one in (RIGHT, WRONG)]
    right, wrong = (ask(strangers, question, one.group()) for one in guesses if one)
    assert right == wrong


@pytest.mark.parametrize(
    ("query", "found"),
    [("from:ann", {*"abcd"}), ("to:builder", {"a", "c"}), ("-to:bob", {"b", "d"})],
)
def test_search_by_name_finds_messages(
    strangers: httpx.Client, query: str, found: set[str]
) -> None:
    hits = strangers.get("/search.json", params={"q": query}).json()["hits"]
    assert {hit["message_id"].partition("@")[0] for hit in hits} == found


def fill_disguised(world: World) -> None:
    """Fill an archive with addresses in names, subjects and names of files, some disguised."""
    plain = "zqkrael@tharnov.example"
    at, capitals = "zqkrael at tharnov.example", "zqkraelATtharnovDOTorg"
    named = mail("b", headers=f"To: Bob via {at} <bob@example.org>")
    fill(
        world,
        mail("a", subject=f"Meeting at noon with {plain}", headers=ATTACHED.format(f"{plain}.txt")),
        named.replace(b"From: Ann", f"From: Ann of {at}".encode()),
        mail("c", subject=f"Meeting [at] noon, {at}"),
        mail(
            "d",
            subject=f"Lunch with {capitals}",
            headers=f"To: Bob via {capitals} <bob@example.org>\n"
            + ATTACHED.format(f"{capitals} notes.txt"),
        ).replace(b"From: Ann", f"From: Ann of {capitals}".encode()),
    )


masked = standing_world(fill_disguised)


@pytest.fixture(scope="module")
def disguised(masked: World) -> Iterator[httpx.Client]:
    with serving_world(masked) as client:
        yield client


@pytest.mark.parametrize(
    ("query", "found"),
    [
        *((f"{name}:{part}", "") for name in ("from", "to", "subject", "file")
          for part in ("zqkrael", "zq", '"tharnov.example"', "rnov")),
        ("-subject:zqkrael", "abcd"),
        ("from:ann", "abcd"),
        ('from:"ann of"', "abcd"),
        ("to:bob", "bd"),
        ("subject:lunch", "d"),
        ("file:notes", "d"),
        ("subject:meeting", "ac"),
        ('subject:"meeting at noon"', "a"),
        ("file:txt", "d"),
    ],
)  # fmt: skip
def test_masked_parts_find_nothing_and_other_words_do(
    disguised: httpx.Client, query: str, found: str
) -> None:
    hits = disguised.get("/search.json", params={"q": query}).json()["hits"]
    assert {hit["message_id"].partition("@")[0] for hit in hits} == {*found}


def test_search_by_address_is_refused_with_a_hint(strangers: httpx.Client) -> None:
    response = strangers.get("/search.json", params={"q": f"from:{RIGHT}"})
    assert response.status_code == 400
    assert "addresses are hidden here: from: takes a part of a name" in response.text


def test_shown_addresses_are_found(built: World) -> None:
    with serving_world(built, SHOWN) as client:
        for query, found in ((f"from:{RIGHT}", "a"), (f"to:{RIGHT}", "b")):
            [hit] = client.get("/search.json", params={"q": query}).json()["hits"]
            assert hit["message_id"] == f"{found}@example.org"
