"""All steps of a month converge, and change no other partition."""

import re
from typing import Any

import pytest

from mail_assets.indexes.mail_index import MailIndex
from mail_assets.workspace import StepError
from mail_assets_tests.steps.test_read_patches import patch_mail
from mail_assets_tests.world import APRIL, HARBOR, MARCH, PIER, World, mail

TABLES = ("mbox_archives", "archive_entries", "messages", "chunks", "vectors", "words")


def test_second_run_writes_nothing_and_encodes_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.archive(MARCH, mail("a"), mail("b"), mail("a"), patch_mail("p"))
    first, before, encoded = world.chain(), world.writes(), len(world.encoder.texts)
    monkeypatch.setattr(MailIndex, "read_digests", None)
    again = world.chain()
    assert world.writes() == before
    assert len(world.encoder.texts) == encoded
    for step, outcome in again.items():
        assert not outcome.changed, step
        assert outcome.digest == first[step].digest, step
        changed = {name for name, x in outcome.counts.items() if x != first[step].counts[name]}
        assert changed <= {"written", "encoded", "reused", "fetched", "seconds"} | {
            name for name in outcome.counts if name.endswith("_per_second")
        }, step
        for name in ("written", "deleted", "encoded", "fetched"):
            assert not outcome.counts.get(name), step


def test_empty_month_has_nothing(world: World) -> None:
    for outcomes in (world.chain(), world.chain()):
        for step, outcome in outcomes.items():
            figures = {x for name, x in outcome.counts.items() if "second" not in name}
            assert figures == {0}, step
    assert not any(outcome.changed for outcome in outcomes.values())
    assert [*world.store.keys()] == []


def others(world: World) -> dict[str, Any]:
    """Return the content and write times of all partitions except March of the harbor."""
    where = f"(list, month) <> ('{HARBOR}', '{MARCH}')"
    rows = {table: world.rows(table, "*, ctid::text, xmin::text", where) for table in TABLES}
    own = f"/{HARBOR}/{MARCH}/"
    files = {key: at for key, at in world.file_times().items() if own not in key}
    held = world.holds()
    own_keys = {
        key for t in ("vectors", "words") for (key,) in world.rows(t, "key", f"not {where}")
    }
    entries = {
        name: {key: one for key, one in held[name].items() if key not in own_keys}  # type: ignore[attr-defined]
        for name in ("bucket", "documents")
    }
    return {**rows, "files": files, **entries}


def test_other_partitions_are_untouched(world: World) -> None:
    for month, name in [(APRIL, HARBOR), (MARCH, PIER)]:
        world.load(mail("a"), mail("b"), month=month, list_name=name, last="vectors")
    before = others(world)
    world.load(mail("a"), mail("c"), last="vectors")
    world.load(mail("c"), at=1, last="vectors")
    assert others(world) == before


@pytest.mark.parametrize(("step", "lacks", "remedy"), [
    ("messages", "archive", "mbox_archives"),
    ("words", "messages", "messages"),
    ("patches", "messages", "messages"),
    ("chunks", "messages", "messages"),
    ("embeddings", "chunks", "chunks"),
    ("vectors", "embeddings of encoder hashing-encoder-of-tests", "embeddings"),
])  # fmt: skip
def test_step_without_its_input_is_refused_with_remedy(
    world: World, step: str, lacks: str, remedy: str
) -> None:
    text = f"{HARBOR} {MARCH}: no {lacks} yet; materialize {remedy} first"
    with pytest.raises(StepError, match=re.escape(text)):
        getattr(world, step)()
