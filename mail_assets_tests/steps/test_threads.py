"""Building the threads of the whole corpus: over months and lists, the difference only."""

from mail_assets_tests.world import APRIL, HARBOR, MARCH, PIER, World, mail

REPLY = "<a@example.org>"


def load(world: World, month: str, list: str, *mails: bytes, at: int = 0) -> None:
    world.archive(month, *mails, list=list, at=at)
    world.chain(month, list, last="messages")


def threads(world: World) -> dict[str, str]:
    return dict(world.rows("threads", "message_id, thread_id", "not is_ghost"))


def test_a_thread_goes_on_over_months_and_lists(world: World) -> None:
    load(world, MARCH, HARBOR, mail("a"), mail("other"))
    load(world, APRIL, HARBOR, mail("b", references=REPLY))
    load(world, MARCH, PIER, mail("c", references=REPLY))
    outcome = world.threads()
    found = threads(world)
    assert found["a@example.org"] == found["b@example.org"] == found["c@example.org"]
    assert outcome.counts["threads"] == 2
    assert outcome.counts["messages"] == 4
    assert outcome.counts["ghosts"] == 0


def test_a_missing_parent_is_a_ghost_until_it_comes(world: World) -> None:
    load(world, APRIL, HARBOR, mail("b", references=REPLY), mail("c", references=REPLY))
    assert world.threads().counts["ghosts"] == 1
    load(world, MARCH, HARBOR, mail("a"))
    outcome = world.threads()
    assert outcome.counts["ghosts"] == 0
    assert outcome.counts["threads"] == 1


def test_the_order_of_loading_does_not_matter(world: World) -> None:
    load(world, APRIL, HARBOR, mail("b", references=REPLY))
    world.threads()
    load(world, MARCH, HARBOR, mail("a"), mail("x"))
    late = world.threads()
    with world.connect() as connection:
        connection.execute("truncate threads, partitions, messages, mbox_archives")
    world.chain(MARCH, last="messages")
    world.chain(APRIL, last="messages")
    assert world.threads().digest == late.digest


def test_a_second_run_writes_nothing(world: World) -> None:
    load(world, MARCH, HARBOR, mail("a"), mail("b", references=REPLY))
    first, before = world.threads(), world.writes()
    again = world.threads()
    assert world.writes() == before
    assert not again.changed
    assert again.digest == first.digest
    assert again.counts == {**first.counts, "written": 0, "deleted": 0}


def test_just_the_difference_is_written(world: World) -> None:
    load(world, MARCH, HARBOR, mail("a"), mail("b"), mail("c"))
    world.threads()
    load(world, MARCH, HARBOR, mail("a"), mail("b"), mail("d"), at=1)
    outcome = world.threads()
    assert (outcome.counts["written"], outcome.counts["deleted"]) == (1, 1)


def test_an_empty_corpus_has_no_threads(world: World) -> None:
    outcome = world.threads()
    assert outcome.counts["threads"] == 0
    assert not outcome.changed
    assert not world.threads().changed
