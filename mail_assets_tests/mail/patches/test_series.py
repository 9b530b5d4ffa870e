"""Postings of one change are joined: evidence, parts, and wrong candidates."""

from typing import Any

import pytest

from mail_assets.mail.patches.patch import EarlierVersion
from mail_assets.mail.patches.series import (
    Posting,
    SeriesPatch,
    build_lineages,
    compare_postings,
    group_postings,
)
from mail_assets_tests.mail.patches.series_patches import ANN, BOB, EVE, LONG, make


def joined(*patches: SeriesPatch) -> dict[str, str]:
    """Return the version before each patch, with the evidence: "v1 by title, lines"."""
    postings = group_postings(patches)
    steps = [
        step
        for i, one in enumerate(postings)
        for two in postings[i + 1 :]
        for step in compare_postings(one, two)
    ]
    return {
        member.key[0]: f"{member.previous[0]} by {', '.join(member.evidence)}"
        for member in build_lineages(postings, steps)
        if member.previous
    }


T = "crane: Lift more than before"
HALF = frozenset(range(8, 22))
MOST, SOME, NONE = frozenset(range(2, 21)), frozenset(range(14, 40)), frozenset(range(50, 70))


@pytest.mark.parametrize(("second", "evidence"), [
    (make("b", f"[PATCH v2] {T}", MOST, day=9), "title, lines"),
    (make("b", f"[next PATCH v2] {T}", NONE, day=9), "title"),
    (make("b", f"[PATCH RESEND] {T}", NONE, day=9), "title"),
    (make("b", f"[PATCH v2] {T}", NONE, day=999), ""),
    (make("b", f"[PATCH v2] {T}", MOST, day=999), "title, lines"),
    (make("b", f"[PATCH] {T}", NONE, day=9), ""),
    (make("b", "[PATCH v2] pier: Other words", LONG, day=9), "patch-id"),
    (make("b", "[PATCH v2] pier: Other words", MOST, day=9), "lines"),
    (make("b", "[PATCH v2] pier: Other words", SOME, day=9), ""),
    (make("b", "[PATCH] pier: Other words", MOST, day=9), ""),
    # half of the lines, under another title: the next version soon after, by the same person
    (make("b", "[PATCH v2] pier: Other words", HALF, day=9), "lines"),
    (make("b", "[PATCH v3] pier: Other words", HALF, day=9), ""),
    (make("b", "[PATCH v2] pier: Other words", HALF, day=99), ""),
    (make("b", "[PATCH v2] pier: Other words", HALF, day=9, sender=EVE), ""),
    # taken over, under another title
    (make("b", "[PATCH v2] pier: Other words", MOST, day=9, sender=EVE), "lines"),
    (make("b", "[PATCH] pier: Other words", MOST, day=9, sender=EVE), ""),
    # sent again in its thread, without a number
    (make("b", f"[PATCH] {T}", NONE, day=1, parents=("a", "review")), "title, reply"),
    (make("b", f"[PATCH] {T}", NONE, day=1, parents=("a",), paths=frozenset({"pier.c"})), ""),
    (make("b", f"[PATCH] {T}", NONE, day=1, parents=("a",), sender=EVE), ""),
    # a ping with the patch is sent again
    (make("b", f"[PING] [PATCH] {T}", NONE, day=9), "title"),
    (make("b", f"[PATCH v4] {T}", NONE, day=9, sender=EVE), ""),
    (make("b", f"[PATCH v4] {T}", MOST, day=9, sender=EVE), "title, lines"),
    (make("b", f"[PATCH v4] {T}", LONG, day=9, sender=EVE), "title, patch-id"),
    (make("b", f"[PATCH v4] {T}", frozenset({1, 2}), day=9, sender=EVE), ""),
    # an old name with another address is easily forged
    (make("b", f"[PATCH v4] {T}", NONE, day=9, sender=EVE, sender_name="ann"), ""),
    (make("b", f"[PATCH v4] {T}", MOST, day=9, sender=EVE, sender_name="ann"), "title, lines"),
])  # fmt: skip
def test_version_is_joined_by_evidence(second: SeriesPatch, evidence: str) -> None:
    found = joined(make("a", f"[PATCH] {T}"), second)
    assert found == ({"b": f"a by {evidence}"} if evidence else {})


@pytest.mark.parametrize(
    ("more", "is_version"),
    [
        ({"lines": LONG}, True),  # the same diff
        ({"lines": MOST}, False),
        ({"lines": HALF}, False),
        ({"lines": LONG, "sender": EVE}, False),
        ({"lines": LONG, "sender": EVE, "author": ANN}, True),  # forwarded for its author
        ({"lines": LONG, "sender": EVE, "sender_name": "ann"}, True),
        ({"lines": MOST, "sender": EVE, "author": ANN}, False),
        ({"parents": ("a",)}, True),  # alone, as the earlier one
        ({"links": (EarlierVersion(1, "a"),)}, True),
        ({"change_id": "I1"}, True),
        ({"change_id": "I1", "sender": EVE, "lines": MOST}, True),
    ],
)
def test_retitled_patch_is_a_version_if_named(more: dict[str, Any], is_version: bool) -> None:
    lines = more.pop("lines", NONE)
    second = make("b", "[PATCH v2] pier: Other words", lines, day=9, **more)
    postings = group_postings([make("a", f"[PATCH] {T}", change_id="I1"), second])
    a, b = build_lineages(postings, compare_postings(*postings))
    assert (a.lineage == b.lineage) is is_version
    assert (b.previous, b.chain) == (a.key, a.key)  # weak evidence is stored too


def test_same_diff_of_two_authors_that_one_passes_on_is_thin() -> None:
    for other, is_version in ((BOB, False), (ANN, True)):
        first, second = f"[PATCH] {T}", "[PATCH] pier: Other words"
        postings = group_postings(
            make(name, subject, sender=EVE, author=author, author_name=author, day=day)
            for name, subject, author, day in (("a", first, ANN, 0), ("b", second, other, 9))
        )
        a, b = build_lineages(postings, compare_postings(*postings))
        assert (a.lineage == b.lineage) is is_version


def test_patch_keeps_title_of_parts_that_a_series_renames() -> None:
    one, two = frozenset(range(20)), frozenset(range(20, 40))
    first = [
        make("a1", "[PATCH 1/2] crane: Lift it up", one, day=1),
        make("a2", "[PATCH 2/2] crane: Let it down", two, day=1),
    ]
    second = [
        make("b1", "[PATCH v2 1/2] crane: Lift it up", one | {80}, day=9),
        make("b2", "[PATCH v2 2/2] crane: Lower the load", two | {81}, day=9),
    ]
    postings = group_postings([*first, *second])
    members = build_lineages(postings, compare_postings(*postings))
    assert {x.key[0]: x.lineage[0] for x in members} == {
        "a1": "a1",
        "b1": "a1",
        "a2": "a2",
        "b2": "a2",
    }


LINK = (EarlierVersion(1, "a"),)


@pytest.mark.parametrize(("more", "evidence"), [
    ({"links": LINK}, "link"),
    ({"links": (EarlierVersion(None, "a"),)}, "link"),
    ({"links": (EarlierVersion(2, "a"),)}, ""),
    ({"links": LINK, "sender": EVE}, ""),
    ({"links": LINK, "sender": EVE, "lines": frozenset({1, 2})}, ""),
    ({"parents": ("x", "a")}, "reply"),
    ({"parents": ("a",), "sender": EVE}, ""),
    ({"parents": ("a",), "paths": frozenset({"pier.c"})}, ""),
    ({"change_id": "I1"}, "change-id"),
    ({"change_id": "I1", "sender": EVE}, ""),
])  # fmt: skip
def test_retitled_version_needs_its_author_or_the_diff(more: dict[str, Any], evidence: str) -> None:
    lines = more.pop("lines", NONE)
    second = make("b", "[PATCH v2] pier: Other words", lines, day=9, **more)
    found = joined(make("a", f"[PATCH] {T}", change_id="I1"), second)
    assert found == ({"b": f"a by {evidence}"} if evidence else {})


@pytest.mark.parametrize(("first", "second", "is_version"), [
    ("[PATCH]", "[PATCH 6.1.y]", False),
    ("[PATCH v2]", "[PATCH AUTOSEL 5.10]", False),
    ("[PATCH v2]", "[v5.19.y PATCH]", False),
    ("[PATCH 5.10]", "[PATCH 5.4,4.19]", False),
    ("[PATCH]", "[stable PATCH]", False),
    # the next version names its release
    ("[PATCH]", "[PATCH 6.1 v2]", True),
    ("[PATCH 6.1.y]", "[PATCH 6.1.y RESEND]", True),
    ("[PATCH 6.1.y]", "[PATCH v2]", True),
    ("[RFC PATCH]", "[PATCH 6.1]", True),
])  # fmt: skip
def test_backport_is_a_change_of_its_own(first: str, second: str, is_version: bool) -> None:
    got = joined(make("a", f"{first} {T}"), make("b", f"{second} {T}", day=9))
    assert bool(got) is is_version


@pytest.mark.parametrize("title", ["Fix build", "fix typo", "Cleanup"])
def test_generic_title_joins_no_other_changes(title: str) -> None:
    assert not joined(
        make("a", f"[PATCH] {title}"),
        make("b", f"[PATCH] {title}", NONE, day=30, sender=BOB),
        make("c", f"[PATCH v2] {title}", SOME, day=900, sender=EVE),
        make("d", f"[PATCH] {title}", frozenset(range(80, 99)), day=30),
    )


def test_parts_keep_their_partners_when_order_and_titles_change() -> None:
    lines = [frozenset(range(20 * n, 20 * n + 15)) for n in range(6)]
    first = [
        make("c1", "[PATCH 0/3] All about cranes here", day=1),
        make("a1", "[PATCH 1/3] crane: Lift it up", lines[0], day=1),
        make("a2", "[PATCH 2/3] crane: Let it down", lines[1], day=1),
        make("a3", "[PATCH 3/3] crane: Let it swim", lines[2], day=1),
    ]
    second = [
        make("c2", "[PATCH v2 0/3] All about cranes here", day=9),
        make("b1", "[PATCH v2 1/3] crane: Let it down", lines[1] | {200}, day=9),
        make("b2", "[PATCH v2 2/3] crane: Raise the load", lines[0] | {201}, day=9),
        make("b3", "[PATCH v2 3/3] crane: Paint it blue", lines[5], day=9),
    ]
    assert joined(*second, *first) == {
        "c2": "c1 by title",
        "b1": "a2 by title, lines",
        "b2": "a1 by title, lines",
    }


def test_parts_of_one_title_keep_their_partners() -> None:
    lines = [frozenset(range(20 * n, 20 * n + 15)) for n in range(3)]
    assert joined(
        make("a1", "[PATCH 1/3] crane: Paint", lines[0], day=1),
        make("a2", "[PATCH 2/3] crane: Paint", lines[1], day=1),
        make("a3", "[PATCH 3/3] crane: Paint", frozenset({70}), day=1),
        make("b2", "[PATCH v2 1/3] crane: Paint", lines[1] | {200}, day=9),
        make("b1", "[PATCH v2 2/3] crane: Paint", lines[0] | {201}, day=9),
        make("b3", "[PATCH v2 3/3] crane: Paint", frozenset({71}), day=9),
    ) == {"b1": "a1 by title, lines", "b2": "a2 by title, lines", "b3": "a3 by title"}


def test_part_sent_again_alone_follows_the_part_that_it_answers() -> None:
    lines = [frozenset(range(20 * n, 20 * n + 15)) for n in range(3)]
    assert joined(
        make("c", "[PATCH 0/2] Cranes of all kinds", day=1),
        make("a1", "[PATCH 1/2] crane: Lift it", lines[0], day=1, parents=("c",)),
        make("a2", "[PATCH 2/2] crane: Swim", lines[1], day=1, parents=("c",)),
        make("b", "[PATCH v2 2/2] pier: Dive", lines[2], day=3, parents=("c", "a2", "review")),
    ) == {"b": "a2 by reply"}


@pytest.mark.parametrize(("title", "more", "evidence"), [
    ("crane: Swims in the deepest lake of all", {}, "title"),
    ("crane: Dive into the deep lake", {}, ""),
    ("crane: Swims in the deepest lake of all", {"paths": frozenset({"pier.c"})}, ""),
])  # fmt: skip
def test_part_with_an_edited_title_is_its_next_version(
    title: str, more: dict[str, Any], evidence: str
) -> None:
    first = [
        make("a1", "[PATCH 1/2] crane: Lift it up", day=1),
        make("a2", "[PATCH 2/2] crane: Swim in the deepest lake of all", NONE, day=1),
    ]
    second = [
        make("b1", "[PATCH v2 1/2] crane: Lift it up", day=3),
        make("b2", f"[PATCH v2 2/2] {title}", frozenset(range(90, 99)), day=3, **more),
    ]
    assert joined(*first, *second).get("b2", "") == (f"a2 by {evidence}" if evidence else "")


def test_mail_that_a_series_answers_names_no_part() -> None:
    second = [
        make(
            f"b{n}", f"[PATCH v2 {n}/2] pier: {n} swims", frozenset({80 + n}), day=9, parents=("a",)
        )
        for n in (1, 2)
    ]
    assert not joined(make("a", f"[PATCH 1/1] {T}", parts=1), *second)


def test_split_patch_is_joined_to_neither_half() -> None:
    half, other = frozenset(range(10)), frozenset(range(10, 20))
    assert not joined(
        make("a", f"[PATCH] {T}", links=()),
        make("b", "[PATCH v2 1/2] crane: One", half, day=9, links=LINK),
        make("c", "[PATCH v2 2/2] crane: Two", other, day=9, links=LINK),
    )


@pytest.mark.parametrize(("path", "evidence"), [("crane.c", {"c": "a by link"}), ("ship.c", {})])
def test_patch_that_grew_continues_as_a_series(path: str, evidence: dict[str, str]) -> None:
    """A cover letter can link the mail of a patch for another repository."""
    assert evidence == joined(
        make("a", f"[PATCH] {T}", paths=frozenset({path})),
        make("c", "[PATCH v2 0/2] Cranes at large", day=9, links=LINK),
        make("d", "[PATCH v2 1/2] crane: One", NONE, day=9),
    )


def test_suggestion_in_an_answer_is_no_version() -> None:
    small = frozenset({1, 2, 3, 90, 91, 92, 93})
    remark = make("r", f"Re: [PATCH] {T}", small, day=2, is_remark=True)
    assert not joined(make("a", f"[PATCH] {T}"), remark)
    whole = make("r", f"Re: [PATCH] {T}", MOST, day=2, is_remark=True)
    assert joined(make("a", f"[PATCH] {T}"), whole) == {"r": "a by title, lines"}


def names(postings: list[Posting]) -> list[list[str]]:
    return [[patch.key[0] for patch in posting.patches] for posting in postings]


def test_mails_sent_at_once_are_a_posting() -> None:
    patches = [
        make("c", "[PATCH v2 0/2] Cranes", day=1),
        make("a", "[PATCH 1/2] crane: One", day=1.01, parents=("c",)),  # without its v2
        make("b", "[PATCH v2 2/2] crane: Two", day=1.02, parents=("c",)),
        make("d", "[PATCH v2 1/2] crane: One", day=1.5),  # again
        make("e", "[PATCH v2 2/2] crane: Two", day=1.51),
        make("f", "[PATCH v2 1/2] crane: One", day=1.5, sender=BOB),
        make("g", "[PATCH] crane: Alone", day=1),
        make("x", "[PATCH v2 0/2] Cranes", key=("c", 1), day=1),  # a second one in one mail
    ]
    found = names(group_postings(reversed(patches)))
    assert sorted(found) == [["c"], ["c", "a", "b"], ["d", "e"], ["f"], ["g"]]


def test_posting_has_the_version_that_only_its_patches_name() -> None:
    def send(name: str, version: str, day: float) -> list[SeriesPatch]:
        return [
            make(f"{name}0", "[pier 0/2] Cranes of all kinds", day=day),
            make(
                f"{name}1", f"[pier {version}1/2] crane: One", MOST, day=day, parents=(f"{name}0",)
            ),
            make(
                f"{name}2", f"[pier {version}2/2] crane: Two", SOME, day=day, parents=(f"{name}0",)
            ),
        ]

    patches = [*send("a", "", 1), *send("b", "V2 ", 2)]
    assert names(group_postings(patches)) == [["a0", "a1", "a2"], ["b0", "b1", "b2"]]
    assert joined(*patches)["b0"] == "a0 by title"
    late = make("c1", "[pier v2 1/2] crane: One", MOST, day=1.5, parents=("a0",))
    assert ["c1"] in names(group_postings([*send("a", "", 1)[::2], late]))


def test_mail_that_all_parts_answer_is_their_cover() -> None:
    [posting] = group_postings(
        make(f"p{n}", f"[PATCH {n}/2] crane: {n}", day=1, parents=("x",)) for n in (1, 2)
    )
    assert posting.unlabelled_cover == "x"


@pytest.mark.parametrize(("same", "is_version"), [(3, True), (2, False)])
def test_retitled_cover_follows_its_parts(same: int, is_version: bool) -> None:
    parts = [frozenset(range(n * 20, n * 20 + 20)) for n in range(7)]
    cover = make("c", "[PATCH 0/3] Allow lifting", day=1)
    next_cover = make("d", "[PATCH v2 0/3] Lift where it is wanted", day=9)
    first = [make(f"p{n}", f"[PATCH {n}/3] crane: {n}", parts[n], day=1) for n in (1, 2, 3)]
    second = [
        make(f"q{n}", f"[PATCH v2 {n}/3] crane: {n if n <= same else n + 3}",
             parts[n if n <= same else n + 3], day=9)
        for n in (1, 2, 3)
    ]  # fmt: skip
    found = joined(cover, *first, next_cover, *second)
    assert ("d" in found) is is_version
