"""A hit whose whole subject is the query comes first: the patch before covers and answers."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from mail_assets.postgres.embedded import Cluster
from mail_assets.search.language.request import MODES, Group, Request
from mail_assets.search.open import open_searcher
from mail_assets.search.searcher import Searcher
from mail_assets_tests.databases import new_database
from mail_assets_tests.sample_corpus import corpus_at, ids, index_everything

ROPE = "pier: fix the rope leak"
#: Text of an answer, which repeats every word of the subject.
TALK = "The rope leak at the pier: to fix the rope leak, fix the pier. " * 6

#: (id, subject, parent, text) of one mail a day, from 1 March on.
MAIL = [
    ("rope-v1", f"[PATCH 1/2] {ROPE}", "", "A knot in the hawser."),
    ("rope-a1", f"Re: [PATCH 1/2] {ROPE}", "rope-v1", TALK),
    ("rope-v2", f"[PATCH v2 1/2] {ROPE}", "", "Another knot."),
    ("rope-a2", f"RE: [Patch V2 1/2] {ROPE}", "rope-v2", TALK),
    ("rope-c3", f"[PATCH v3 0/2] {ROPE}", "", TALK),
    ("rope-v3", f"[PATCH v3 2/2] {ROPE}", "rope-c3", "A third knot."),
    ("rope-a3", f"Re: [PATCH v3 2/2] {ROPE}", "rope-v3", TALK),
    ("rope-long", f"[PATCH] {ROPE} for good", "", TALK),
    ("tide", "[BAY] Tide tables for June", "", "They are on the wall."),
    ("tide-a", "Re: [BAY] Tide tables for June", "tide", "Tide tables for June. " * 9),
    ("tide-v2", "Tide tables for June v2", "", "Tide tables for June, second edition."),
    ("keys-a", "Re: lighthouse keys are lost", "gone", "Lighthouse keys. " * 5),
    ("keys-b", "AW: Lighthouse keys are lost", "gone", "I lost the lighthouse keys. " * 9),
    ("keys-f", "Fwd: lighthouse keys are lost", "", "Are the lighthouse keys lost?"),
    ("same", "Who repairs the foghorn", "", "Who repairs the foghorn? Ask Mira."),
    ("same", "Who repairs the foghorn", "", "A stranger repairs it for money."),
    ("horn", "Foghorn", "", "Who repairs the foghorn? Nobody repairs the foghorn so far."),
    ("gull", "Gull counting [was: Bird counting]", "", "Forty gulls."),
    ("gull-a", "Re: Gull counting", "gull", "Gull counting, gull counting, gull counting."),
    ("help", "help", "", "Help!"),
    ("wind", "[PATCH -next v2] sail: return -EBUSY in wind", "", "It is busy, EBUSY and next."),
    ("wind-a", "Re: [PATCH -next v2] sail: return -EBUSY in wind", "wind", "The sail is fine."),
    ("sail", "Sail in wind", "", "The sail and the wind return."),
]


@pytest.fixture(scope="module")
def searcher(
    cluster: Cluster, tmp_path_factory: pytest.TempPathFactory, model_cache: Path
) -> Iterator[Searcher]:
    home = tmp_path_factory.mktemp("bay")
    (home / "bay").mkdir()
    (home / "bay" / "bay-dev.2024-03.mbox").write_text("".join(map(write_mail, enumerate(MAIL, 1))))
    (home / "lists.toml").write_text('[bay-dev]\nsource = "bay"\nlanguage = "english"\n')
    settings = corpus_at(home, new_database(cluster), model_cache).settings
    index_everything(settings)
    with open_searcher(settings.search) as opened:
        yield opened


def write_mail(numbered: tuple[int, tuple[str, str, str, str]]) -> str:
    day, (name, subject, parent, text) = numbered
    above = f"References: <{parent}@bay>\n" if parent else ""
    return (
        f"From m{day}@bay.example.org Fri Mar {day:2} 10:00:00 2024\n"
        f"From: Mate {day} <m{day}@bay.example.org>\nTo: bay-dev@lists.example.org\n"
        f"Subject: {subject}\nDate: {day} Mar 2024 10:00:00 +0000\n"
        f"Message-ID: <{name}@bay>\n{above}\n{text}\n\n"
    )


def find(searcher: Searcher, query: str, **options: object) -> list[str]:
    found = searcher.search(Request(query, **options))  # type: ignore[arg-type]
    return [one.removesuffix("@bay") for one in ids(found)]


@pytest.mark.parametrize(
    ("query", "first"),
    [
        (ROPE, ["rope-v3", "rope-v2", "rope-v1", "rope-c3"]),
        (ROPE.upper(), ["rope-v3", "rope-v2", "rope-v1", "rope-c3"]),
        (f"Re: {ROPE}", ["rope-v3", "rope-v2"]),
        (f"[RFC] {ROPE}", ["rope-v3", "rope-v2"]),
        (f"[PATCH v3 2/2] {ROPE}", ["rope-v3"]),
        (f"Re: [PATCH v2 1/2] {ROPE}", ["rope-v2", "rope-v1"]),
        (f"[PATCHv2] {ROPE}", ["rope-v2"]),
        (f"{ROPE} v2", ["rope-v2"]),
        ("Re: [PATCH -next v2] sail: return -EBUSY in wind", ["wind", "wind-a"]),
        ("sail: return -EBUSY in wind list:bay-dev", ["wind", "wind-a"]),
        ("sail in wind -EBUSY", ["sail"]),
        (f"[PATCH v3 0/2] {ROPE}", ["rope-c3", "rope-v3"]),
        (f"[PATCH 1/2] {ROPE}", ["rope-v1", "rope-v3", "rope-v2"]),
        (f"[PATCH v2 1/2] {ROPE} before:2024-03-03", ["rope-v1"]),
        ('pier: fix the "rope leak" list:bay-dev', ["rope-v3", "rope-v2"]),
        ("tide  tables for June", ["tide"]),
        ("Re: [BAY] Tide tables for June", ["tide"]),
        ("Tide tables for June v2", ["tide-v2"]),
        ("Gull counting", ["gull"]),
        ("lighthouse keys are lost", ["keys-a", "keys-b", "keys-f"]),
        ("foghorn", ["horn"]),
    ],
)
@pytest.mark.parametrize("mode", MODES)
def test_whole_subject_comes_first(
    searcher: Searcher, query: str, first: list[str], mode: str
) -> None:
    found = find(searcher, query, mode=mode, group=Group.message)
    assert found[: len(first)] == first
    assert len(found) == len({*found})


@pytest.mark.parametrize("mode", MODES)
def test_whole_subject_comes_first_on_the_default_page(searcher: Searcher, mode: str) -> None:
    rows = searcher.search(Request(ROPE, mode=mode)).conversations
    best = [one.best[0].partition("@")[0] for one in rows[:3]]
    assert best == ["rope-v3", "rope-v2", "rope-v1"]


@pytest.mark.parametrize("query", ["Who repairs the foghorn", "Re: Who repairs the foghorn"])
@pytest.mark.parametrize("mode", MODES)
def test_contested_text_does_not_come_first_for_its_subject(
    searcher: Searcher, query: str, mode: str
) -> None:
    hits = searcher.search(Request(query, mode=mode)).hits
    assert all("subject" not in hit.why.ranks for hit in hits)


def test_whole_subject_is_found_where_no_index_finds_it(searcher: Searcher) -> None:
    hits = searcher.search(Request("[PATCH v3 2/2] " + ROPE, mode="semantic", limit=1)).hits
    assert hits[0].why.ranks["subject"] == 1


@pytest.mark.parametrize("mode", MODES)
def test_pages_follow_one_another_after_whole_subjects(searcher: Searcher, mode: str) -> None:
    whole = find(searcher, ROPE, mode=mode, group=Group.message, limit=8)
    parts = [
        one
        for offset in range(0, 8, 2)
        for one in find(searcher, ROPE, mode=mode, group=Group.message, limit=2, offset=offset)
    ]
    assert parts == whole


@pytest.mark.parametrize("query", ["-rope " + ROPE, f"{ROPE} from:nobody", f'"knots" {ROPE}'])
def test_whole_subject_that_does_not_pass_is_no_hit(searcher: Searcher, query: str) -> None:
    hits = searcher.search(Request(query)).hits
    assert not [hit for hit in hits if "subject" in hit.why.ranks]


def test_dashes_of_a_message_left_out_are_text(searcher: Searcher) -> None:
    subject = "sail: return -EBUSY in wind"
    assert find(searcher, subject, group=Group.message, without=("wind@bay",))[0] == "wind-a"
