"""Summaries follow their threads: only changed threads are summarized again."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pytest

from mail_assets.processes.workers import WorkerPool
from mail_assets.steps import summarize_threads as step
from mail_assets.steps.summarize_threads import summarize_threads
from mail_assets.summaries.extractive import ExtractiveMaker
from mail_assets.summaries.summary import MakerStoppedError, MessageText, Summary, SummaryError
from mail_assets.tables.thread_summaries import read_summary
from mail_assets_tests.kept_worlds import kept_world
from mail_assets_tests.world import APRIL, HARBOR, MARCH, MAY, PIER, World, mail

A, B = "<a@example.org>", "<b@example.org>"
QUESTION = "Why does the pump stop at high tide? It ran well until the last release."
ANSWER = "The float valve sticks when salt dries on it. I have applied a fix to the main branch."


@dataclass(frozen=True)
class Watched(ExtractiveMaker):
    """Maker of summaries that reports the ids of each thread to a function."""

    watch: Callable[[set[str]], object] = len

    def summarize(self, messages: Sequence[MessageText]) -> Summary:
        self.watch({message.message_id for message in messages})
        return super().summarize(messages)


def fail_at(name: str, error: BaseException) -> Callable[[set[str]], None]:
    def watch(message_ids: set[str]) -> None:
        if f"{name}@example.org" in message_ids:
            raise error

    return watch


def load(world: World, month: str, *mails: bytes, list_name: str = HARBOR, at: int = 0) -> None:
    world.load(*mails, month=month, list_name=list_name, at=at)


def build(world: World) -> dict[str, int | float]:
    world.threads()
    return world.summaries().counts


def made(world: World) -> dict[str, str]:
    """Return thread -> the time of its summary, and the place of its row."""
    return dict(world.rows("thread_summaries", "thread_id, (made_at, ctid)::text"))


def attaching(name: str, file: str, kind: str) -> bytes:
    """A message with an attached file; its text does not depend on the file."""
    mixed = "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=x"
    text = TWO_PARTS.format(file=file, kind=kind)
    arrived = "From ann@example.org Mon Mar  4 09:30:00 2024"
    return mail(name, text, references=A, headers=mixed, from_line=arrived)


def pairs(names: str) -> list[bytes]:
    """Return threads of two messages each: a question and its answer."""
    return [
        one
        for name in names
        for one in (
            mail(name, QUESTION),
            mail(name * 2, f"Nobody knows about {name}.", references=f"<{name}@example.org>"),
        )
    ]


#: A message of two parts; the second is an attached patch.
TWO_PARTS = """--x

The float valve sticks, so I have made it wider.
--x
Content-Type: {kind}; name={file}
Content-Disposition: attachment; filename={file}

--- a/valve.c
+++ b/valve.c
@@ -1 +1 @@
-narrow
+wide
--x--"""

PATCH = ("valve.patch", "text/x-patch")
PICTURE = ("valve.png", "image/png")


def fill(world: World) -> None:
    """Fill three threads of two messages, and a message alone."""
    answered = [mail("a", QUESTION), mail("b", ANSWER, references=A)]
    load(world, MARCH, *answered, *pairs("cd"), mail("alone", QUESTION))
    build(world)


three = kept_world(fill)


@pytest.mark.parametrize(
    ("former", "later", "patches"),
    [(PICTURE, PATCH, ["b@example.org"]), (PATCH, PICTURE, [])],
    ids=["came", "went"],
)
def test_summary_follows_an_attached_patch(
    world: World, former: tuple[str, str], later: tuple[str, str], patches: list[str]
) -> None:
    other = pairs("c")
    load(world, MARCH, mail("a", QUESTION), attaching("b", *former), *other)
    build(world)
    before = made(world)
    load(world, MARCH, mail("a", QUESTION), attaching("b", *later), *other, at=1)
    assert {*made(world)} == {"c@example.org"}, "a link that is wrong is not shown"
    assert build(world)["made"] == 1
    assert made(world)["c@example.org"] == before["c@example.org"]
    with world.connect() as connection:
        summary = read_summary(connection, "a@example.org")
    assert summary
    assert summary.patches == patches


def test_attachment_without_patch_changes_no_summary(world: World) -> None:
    load(world, MARCH, mail("a", QUESTION), attaching("b", *PICTURE))
    build(world)
    before = made(world)
    load(world, MARCH, mail("a", QUESTION), attaching("b", "valve.pdf", "application/pdf"), at=1)
    assert made(world) == before
    assert build(world)["made"] == 0


def test_sentences_of_a_summary_stand_in_its_messages(three: World) -> None:
    with three.connect() as connection:
        summary = read_summary(connection, "a@example.org")
        assert read_summary(connection, "b@example.org") is None
    assert summary
    assert (summary.messages, summary.participants, summary.verbatim) == (2, ["Ann"], True)
    assert len(summary.sentences) > 1
    bodies = dict(three.rows("messages", "message_id, body_text"))
    for one in summary.sentences:
        assert bodies[one["message_id"]][one["start"] : one["end"]] == one["text"]
    assert {one["message_id"] for one in summary.sentences} <= {"a@example.org", "b@example.org"}
    assert len(three.rows("thread_summaries")) == 3


def test_second_run_writes_nothing(three: World) -> None:
    before = three.writes()
    again = three.summaries()
    assert three.writes() == before
    assert (again.changed, again.counts["changed"], again.counts["made"]) == (False, 0, 0)
    assert again.counts["summaries"] == 3


def test_only_a_thread_that_grew_is_summarized_again(three: World) -> None:
    before, digest = made(three), three.summaries().digest
    load(three, APRIL, mail("e", ANSWER, references=f"{A} {B}"))
    three.threads()
    assert made(three) == before, "what there was is shown until the next is made"
    outcome = three.summaries()
    assert (outcome.counts["made"], outcome.counts["summaries"]) == (1, 3)
    assert outcome.digest != digest
    after = made(three)
    assert [x for x in after if after[x] != before[x]] == ["a@example.org"]
    assert three.rows("thread_summaries", "messages", "thread_id = 'a@example.org'") == [(3,)]


def test_merged_or_split_threads_lose_their_summaries_at_once(three: World) -> None:
    late = [mail("f", QUESTION, references="<e@example.org>")]
    late += [mail("g", QUESTION, references="<f@example.org>")]
    load(three, MAY, *late)
    assert build(three)["made"] == 1
    load(three, APRIL, mail("e", references="<d@example.org>"))
    three.threads()
    assert {*made(three)} == {"a@example.org", "c@example.org", "d@example.org"}
    assert build(three)["made"] == 1
    load(three, APRIL, mail("x"), at=1)
    three.threads()
    assert "d@example.org" not in made(three)
    assert build(three)["made"] == 2
    assert {*made(three)} == {f"{x}@example.org" for x in "acde"}


def test_thread_of_one_message_has_no_summary(three: World) -> None:
    assert {*made(three)} == {f"{x}@example.org" for x in "acd"}
    load(three, APRIL, mail("e", ANSWER, references="<alone@example.org>"))
    assert build(three)["made"] == 1
    load(three, APRIL, mail("x"), at=1)
    assert build(three)["left"] == 0
    assert {*made(three)} == {f"{x}@example.org" for x in "acd"}


def test_answer_that_joined_by_subject_states_no_outcome(world: World) -> None:
    text = "I have applied a fix to the main branch."
    joined = mail("b", text, subject="Re: about a")
    load(world, MARCH, mail("a", QUESTION), joined)
    assert build(world)["made"] == 1
    [(sentences,)] = world.rows("thread_summaries", "sentences")
    assert [one["part"] for one in sentences if one["text"] == text] == ["discussion"]
    load(world, MARCH, mail("a", QUESTION), mail("b", text, references=A), at=1)
    assert build(world)["made"] == 1
    [(sentences,)] = world.rows("thread_summaries", "sentences")
    assert [one["part"] for one in sentences if one["text"] == text] == ["outcome"]


@pytest.mark.parametrize(
    ("body", "remade"),
    [(QUESTION, 0), ("It stopped again today. Nobody knows why it did.", 1)],
    ids=["the-same", "another"],
)
def test_changed_text_deletes_summary_of_its_thread(three: World, body: str, remade: int) -> None:
    mails = [
        mail("a", body),
        mail("b", ANSWER, references=A),
        *pairs("cd"),
        mail("alone", QUESTION),
    ]
    load(three, MARCH, *mails, *pairs("n"), at=1)
    assert len(made(three)) == 3 - remade
    assert build(three)["made"] == remade + 1
    assert len(made(three)) == 4


def test_copy_on_another_list_changes_nothing(three: World) -> None:
    before = made(three)
    load(three, MARCH, mail("a", QUESTION), list_name=PIER)
    counts = build(three)
    assert (counts["changed"], counts["made"], counts["left"]) == (1, 0, 0)
    assert made(three) == before


def test_vanished_message_deletes_the_summary_of_its_thread(three: World) -> None:
    load(three, MARCH, mail("a", QUESTION), *pairs("cd"), mail("alone", QUESTION), at=1)
    assert {*made(three)} == {"c@example.org", "d@example.org"}
    assert build(three)["made"] == 0
    assert len(made(three)) == 2


def test_another_maker_makes_all_summaries_again(three: World) -> None:
    with three.connect() as connection:
        other = ExtractiveMaker(fingerprint="another")
        outcome = summarize_threads(connection, other, three.said.append)
        assert outcome.counts["made"] == 3
        assert not summarize_threads(connection, other, three.said.append).changed
    assert three.rows("thread_summaries", "distinct maker") == [("another",)]
    assert three.summaries().counts["made"] == 3


@pytest.mark.parametrize("portion", [1, 10_000])
@pytest.mark.parametrize("looked_at", [1, 2, 500])
def test_size_of_the_portions_does_not_matter(
    three: World, monkeypatch: pytest.MonkeyPatch, looked_at: int, portion: int
) -> None:
    columns = "thread_id, messages, first_sent_at, participants, patches, sentences"
    whole = three.rows("thread_summaries", columns)
    monkeypatch.setattr(step, "LOOKED_AT", looked_at)
    with three.connect() as connection:
        maker = ExtractiveMaker(fingerprint="another", portion=portion)
        assert summarize_threads(connection, maker, three.said.append).counts["made"] == 3
    assert three.rows("thread_summaries", columns) == whole


def test_processes_make_the_same_summaries(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    load(world, MARCH, *pairs("abcdef"))
    build(world)
    whole = world.rows("thread_summaries", "thread_id, sentences")
    monkeypatch.setattr(step, "BATCH", 1)
    with world.connect() as connection, WorkerPool(2) as workers:
        maker = ExtractiveMaker(fingerprint="another")
        outcome = summarize_threads(connection, maker, world.said.append, workers)
    assert outcome.counts["made"] == len(whole) == 6
    assert world.rows("thread_summaries", "thread_id, sentences") == whole


def test_failed_thread_is_reported_and_made_by_the_next_run(three: World) -> None:
    load(three, APRIL, mail("e", references=A), mail("f", references="<c@example.org>"))
    three.threads()
    with three.connect() as connection:
        maker = Watched(watch=fail_at("e", SummaryError("the reply cites nothing")))
        outcome = summarize_threads(connection, maker, three.said.append)
    assert outcome.note == "a@example.org: the reply cites nothing"
    assert [outcome.counts[x] for x in ("changed", "made", "failed", "left")] == [2, 1, 1, 1]
    assert three.summaries().counts["made"] == 1
    assert three.summaries().counts["left"] == 0


def test_stopped_run_keeps_its_work_and_the_next_continues(world: World) -> None:
    load(world, MARCH, *pairs("abcdef"))
    world.threads()
    with world.connect() as connection:
        error = MakerStoppedError("no budget is left")
        maker = Watched(portion=1, watch=fail_at("d", error))
        outcome = summarize_threads(connection, maker, world.said.append)
    assert outcome.note == "no budget is left"
    assert (outcome.counts["made"], outcome.counts["left"]) == (3, 3)
    assert world.summaries().counts["made"] == 3


def test_threads_that_always_fail_do_not_block_others(world: World) -> None:
    load(world, MARCH, *pairs("abcdefgh"))
    world.threads()
    tried: list[list[str]] = []

    def fail(message_ids: set[str]) -> None:
        if len(tried[-1]) == 3:
            raise MakerStoppedError("no budget is left")
        tried[-1].append(min(message_ids).removesuffix("@example.org"))
        if tried[-1][-1] < "f":
            raise SummaryError("the reply cites nothing")

    for _ in range(4):
        tried.append([])
        with world.connect() as connection:
            summarize_threads(connection, Watched(portion=0, watch=fail), world.said.append)
    assert ["".join(names) for names in tried] == ["abc", "def", "gha", "bcd"]
    assert {*made(world)} == {f"{name}@example.org" for name in "fgh"}


def test_killed_run_keeps_its_portions(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    load(world, MARCH, *pairs("abc"))
    world.threads()
    with world.connect() as connection:
        maker = Watched(portion=1, watch=fail_at("c", KeyboardInterrupt()))
        with pytest.raises(KeyboardInterrupt):
            summarize_threads(connection, maker, world.said.append)
    assert len(made(world)) == 2
    assert world.summaries().counts["made"] == 1


@pytest.mark.parametrize("statement", [
    b"update messages set body_text = 'Something else.' where message_id = 'a@example.org'",
    b"delete from messages where message_id = 'a@example.org'",
])  # fmt: skip
def test_thread_that_changed_meanwhile_is_not_written(world: World, statement: bytes) -> None:
    load(world, MARCH, *pairs("a"))
    world.threads()
    with world.connect() as connection, world.connect() as other:
        maker = Watched(watch=lambda _: other.execute(statement))
        summarize_threads(connection, maker, world.said.append)
    assert made(world) == {}


def test_thread_that_is_locked_is_left_for_the_next_run(three: World) -> None:
    load(three, APRIL, mail("e", references=A))
    three.threads()
    with three.connect() as other, other.transaction():
        other.execute("update thread_summaries set maker = maker")
        with three.connect() as connection:
            outcome = summarize_threads(connection, ExtractiveMaker(), three.said.append)
    assert "another run" in outcome.note
    assert (outcome.counts["made"], outcome.counts["left"]) == (0, 1)
    assert three.summaries().counts["made"] == 1


def test_long_thread_is_read_in_part(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mail_assets.tables.thread_summaries.MOST_CHARACTERS", 100)
    load(
        world, MARCH, mail("a", QUESTION), mail("b", ANSWER, references=A), mail("c", references=A)
    )
    assert build(world)["made"] == 1
    [(sentences,)] = world.rows("thread_summaries", "sentences")
    assert {one["message_id"] for one in sentences} == {"a@example.org"}
