"""Sentences about one patch of a series, in all its versions."""

import pytest

from mail_assets.reading import patch_talk
from mail_assets.reading.patch_talk import PatchTalk, read_talk
from mail_assets_tests.world import PIER, World, mail

COVER = "This series teaches the crane its limit."
LIMIT = "The crane must know the weight that it may lift."
SOUND = "A bell must ring before the crane turns."
DIFF = "\n---\n--- a/{0}\n+++ b/{0}\n@@ -1 +1 @@\n-int {0}_{1};\n+int {0};\n"


def patch(name: str, part: str, body: str, file: str, *, above: str = "", day: int = 4) -> bytes:
    return mail(
        name,
        body + DIFF.format(file, day),
        subject=f"[PATCH {part}] crane: {file}",
        references=f"<{above}@example.org>" if above else "",
        date=f"Mon, {day:02} Mar 2024 09:00:00 +0000",
    )


def answer(name: str, above: str, body: str, sender: str = "bo@example.org") -> bytes:
    """Return an answer to a message, sent on the day after the first version."""
    return mail(
        name,
        body,
        sender=sender,
        subject="Re: [PATCH] crane",
        references=f"<{above}@example.org>",
        date="Tue, 05 Mar 2024 09:00:00 +0000",
    )


FIRST = (
    mail("cover", COVER, subject="[PATCH 0/2] the crane"),
    patch("limit", "1/2", LIMIT, "limit", above="cover"),
    patch("bell", "2/2", SOUND, "bell", above="limit"),
    answer("on-cover", "cover", "I wonder whether anybody reads a whole series."),
    answer("on-limit", "limit", "Who measures the weight while the hook swings?"),
    answer("on-bell", "bell", "The neighbours will not like that bell at night."),
)
SECOND = patch("limit2", "v2", LIMIT, "limit", day=18)


def talk(world: World, *mails: bytes, applied: str = "limit2", other: str = "limit") -> PatchTalk:
    world.load(*mails, last="patches")
    world.threads()
    world.series()
    with world.connect() as connection:
        found = read_talk(connection, [f"{applied}@example.org"], [f"{other}@example.org"])
    assert found
    return found


def list_sentences(found: PatchTalk) -> list[tuple[str, str]]:
    return [(one.message_id.partition("@")[0], one.text) for one in found.sentences]


def test_talk_is_of_one_patch_in_all_its_versions(world: World) -> None:
    found = talk(world, *FIRST, SECOND)
    assert list_sentences(found) == [
        ("limit2", LIMIT),
        ("on-limit", "Who measures the weight while the hook swings?"),
    ]
    assert (found.messages, found.people) == (3, 2)


def test_patch_below_another_has_its_own_answers(world: World) -> None:
    found = talk(world, *FIRST, applied="bell", other="bell")
    assert list_sentences(found) == [
        ("bell", SOUND),
        ("on-bell", "The neighbours will not like that bell at night."),
    ]


def test_diff_in_an_answer_belongs_to_what_was_said(world: World) -> None:
    remark = answer("remark", "limit", "I would rather write it so." + DIFF.format("limit", "x"))
    below = answer("below", "remark", "Yes, that is much easier to read.", "ann@example.org")
    said = [name for name, _ in list_sentences(talk(world, *FIRST, SECOND, remark, below))]
    assert {"remark", "below"} <= {*said}


def test_stranger_speaks_by_neither_subject_nor_id(world: World) -> None:
    joined = mail("joined", "The crane was never safe and never will be.", sender="x@example.org",
                  subject="Re: [PATCH 1/2] crane: limit")  # fmt: skip
    before = talk(world, *FIRST, SECOND)
    assert talk(world, *FIRST, SECOND, joined) == before
    other = answer("on-limit", "limit", "Nobody measures it and nobody ever asked for it.")
    world.load(other, list_name=PIER, last="patches")
    assert [name for name, _ in list_sentences(talk(world, *FIRST, SECOND))] == ["limit2"]


def test_applied_text_is_read_first_and_texts_to_a_bound(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patch_talk, "MOST_MESSAGES", 1)
    assert list_sentences(talk(world, *FIRST, SECOND)) == [("limit2", LIMIT)]
    monkeypatch.setattr(patch_talk, "MOST_CHARACTERS", 25)
    assert list_sentences(talk(world, *FIRST, SECOND)) == [("limit2", LIMIT[:25].strip())]


def test_closed_list_says_nothing(world: World) -> None:
    talk(world, *FIRST, SECOND)
    with world.connect() as connection:
        connection.execute("select set_config('mail_assets.lists', %s, false)", [PIER])
        assert read_talk(connection, ["limit2@example.org"], []) is None
