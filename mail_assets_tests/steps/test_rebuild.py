"""A rebuild repairs unrecorded damage of a partition, and writes nothing else."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import lancedb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mail_assets.mail.archive.mbox import RawMessage
from mail_assets.mail.message.message import Message
from mail_assets.mail.message.parse import UnreadableMessageError, parse_message
from mail_assets.steps import read_month
from mail_assets.workspace import StepError
from mail_assets_tests.broken_files import flip, overwrite, truncate
from mail_assets_tests.kept_worlds import kept_world
from mail_assets_tests.steps.test_read_patches import patch_mail
from mail_assets_tests.world import HARBOR, MARCH, PIER, STEPS, World, mail

#: Tables whose rows the steps make, except records of the past.
TABLES = (
    *("mbox_archives", "messages", "archive_entries", "quarantine", "senders", "patches", "chunks"),
    *("vectors", "words", "threads", "thread_summaries"),
)

#: Step -> changes of its rows that no trigger and no record shows.
ALTERED = {
    "archives": ["update mbox_archives set bytes = 1, found = 9 where list = 'harbor'"],
    "messages": [
        "update messages set body_text = 'other words', subject = 'x' where message_id like 'b@%'",
        "update messages set refs = '{}', search = '' where message_id like 'c@%'",
        "update messages set message_id = 'x' where message_id like 'p@%'",
        "update archive_entries set archive_offset = 7 where ordinal = 1",
        "update archive_entries set ending = null where ordinal = 0",
        "update quarantine set reason = 'other'",
        "update senders set person = 'other'",
    ],
    "patches": ["update patches set title = 'other'"],
    "chunks": ["update chunks set text = 'other' where message_id like 'b@%'",
               "update chunks set tokens = 1 where message_id like 'a@%'",
               "update chunks set list = 'pier' where message_id like 'c@%'",
               "update chunks set message_id = 'x' where message_id like 'p@%'"],
    "indexes": ["update vectors set digest = ''", "update words set digest = ''"],
    "threads": ["update threads set parent_id = null, depth = 0 where message_id like 'b@%'",
                "update threads set thread_id = 'x' where message_id like 'c@%'"],
    "summaries": ["update thread_summaries set sentences = '[]'",
                  "update thread_summaries set thread_id = 'x' where thread_id like 'p@%'"],
}  # fmt: skip


def refuse_one(raw: RawMessage, **rest: Any) -> Message:
    if b"<bad@example.org>" in raw.raw:
        raise UnreadableMessageError("its header never ends")
    return parse_message(raw, **rest)


@pytest.fixture(autouse=True)
def refusing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_month, "parse_message", refuse_one)


def fill(world: World) -> None:
    """Fill two lists: a reply, a ghost, an alias, an unreadable message, and their rows."""
    first = mail("a", "The first words of a thread stand here.\n\n" + "Words. " * 40)
    world.archive(
        MARCH,
        first,
        mail("b", "Some other words are here.\n\n" + "More. " * 40, references="<a@example.org>"),
        mail("c", references="<gone@example.org> <lost@example.org>", sender="bob@example.org"),
        mail("bad"),
        patch_mail("change"),
    )
    world.archive(MARCH, mail("p"), mail("q", references="<p@example.org>"), first, list_name=PIER)
    for list_name in (HARBOR, PIER):
        world.chain(MARCH, list_name)
    world.threads()
    world.summaries()


filled = kept_world(fill)


def rebuild(world: World) -> None:
    for list_name in (HARBOR, PIER):
        world.chain(MARCH, list_name, rebuild=True)
    world.threads(rebuild=True)
    world.summaries(rebuild=True)


def holds(world: World) -> dict[str, object]:
    with world.connect() as connection:
        held = world.holds()
        # the version of the summaries depends on all former changes
        held["partitions"] = world.rows(
            "partitions",
            "asset, list, month, inputs, digest",
            "asset not in ('vectors', 'words', 'thread_summaries')",
        )
        return {
            **held,
            **{
                table: sorted(connection.execute(f"select * from {table}").fetchall())
                for table in ("archive_entries", "senders", "threads")
            },
            "summaries": sorted(
                connection.execute(
                    "select thread_id, maker, content_hash, sentences::text from thread_summaries"
                ).fetchall()
            ),
        }


def damage(world: World, change: str) -> None:
    """Change rows without triggers, as our code never does."""
    with world.connect() as connection, connection.transaction():
        connection.execute("set local session_replication_role = replica")
        changed = connection.execute(change).rowcount
    assert changed > 0


def test_rebuild_writes_nothing_when_all_is_right(filled: World) -> None:
    before, marks = holds(filled), filled.writes()
    rebuild(filled)
    after = filled.writes()
    assert holds(filled) == before
    assert [name for name, mark in marks.items() if after[name] != mark] == ["partitions"]


def test_rebuild_mends_a_deleted_row_of_each_table(filled: World) -> None:
    before = holds(filled)
    for table in TABLES:
        damage(filled, f"delete from {table} where ctid = (select min(ctid) from {table})")
    for list_name in (HARBOR, PIER):
        filled.chain(MARCH, list_name)
    assert filled.rows("messages") != before["messages"], "by its record nothing has changed"
    rebuild(filled)
    assert holds(filled) == before


@pytest.mark.parametrize("step", ALTERED)
def test_rebuild_repairs_altered_rows(filled: World, step: str) -> None:
    before = holds(filled)
    for change in ALTERED[step]:
        damage(filled, change)
    rebuild(filled)
    assert holds(filled) == before


@pytest.mark.parametrize("change", [
    "delete from messages where message_id = 'change@example.org'",
    "delete from messages where message_id = 'a@example.org' and list = 'harbor'",
    "update messages set body_text = upper(body_text) where message_id = 'b@example.org'",
])  # fmt: skip
def test_rows_made_from_damaged_messages_are_made_again(filled: World, change: str) -> None:
    before = holds(filled)
    damage(filled, change)
    for step in STEPS[STEPS.index("messages") + 1 :]:
        getattr(filled, step)(MARCH, HARBOR, rebuild=True)
    made = holds(filled)
    assert (made["chunks"], made["patches"]) != (before["chunks"], before["patches"])
    filled.messages(rebuild=True)
    filled.chain(MARCH)
    filled.threads()
    filled.summaries()
    assert holds(filled) == before


FILE_DAMAGE = [truncate, overwrite, flip, Path.unlink]


@pytest.mark.parametrize("break_file", FILE_DAMAGE)
def test_rebuild_fetches_damaged_archive(filled: World, break_file: Callable[[Path], None]) -> None:
    before = holds(filled)
    [key] = filled.store.keys(f"archives/{HARBOR}/")
    break_file(filled.home / "store" / key)
    with pytest.raises((StepError, FileNotFoundError), match=r"damaged|missing"):
        filled.messages(rebuild=True)
    rebuild(filled)
    assert holds(filled) == before


def test_damaged_archive_stays_when_its_source_lost_it(filled: World) -> None:
    [key] = filled.store.keys(f"archives/{HARBOR}/")
    overwrite(filled.home / "store" / key)
    (filled.folder() / f"{HARBOR}.{MARCH}.mbox").unlink()
    with pytest.raises(StepError, match="has vanished"):
        filled.archives(rebuild=True)
    assert [*filled.store.keys(f"archives/{HARBOR}/")] == [key]


@pytest.mark.parametrize("break_file", FILE_DAMAGE)
def test_rebuild_encodes_damaged_file(filled: World, break_file: Callable[[Path], None]) -> None:
    before = holds(filled)
    [key] = filled.store.keys(f"embeddings/{HARBOR}/")
    break_file(filled.home / "store" / key)
    rebuild(filled)
    assert holds(filled) == before


def test_rebuild_replaces_other_vectors_in_a_file(filled: World) -> None:
    before = holds(filled)
    [key] = filled.store.keys(f"embeddings/{HARBOR}/")
    path = filled.home / "store" / key
    table = pq.read_table(path)
    turned = np.roll(table.column("vector").combine_chunks().flatten().to_numpy(), 1)
    other = pa.FixedSizeListArray.from_arrays(pa.array(turned), type=table.schema.field(1).type)
    pq.write_table(table.set_column(1, table.schema.field(1), other), path)
    rebuild(filled)
    assert holds(filled) == before


@pytest.mark.parametrize("place", ["vectors", "words"])
@pytest.mark.parametrize("change", ["delete", "alter", "double"])
def test_rebuild_mends_entries_of_an_index(filled: World, place: str, change: str) -> None:
    before = holds(filled)
    database = lancedb.connect(filled.home / place)
    [name] = database.list_tables().tables
    table = database.open_table(name)
    rows = table.search().limit(1).to_arrow()
    key = rows.column("key")[0].as_py()
    if change == "delete":
        table.delete(f"key = '{key}'")
    elif change == "alter":
        column = "subject" if place == "vectors" else "lexemes"
        table.update(where=f"key = '{key}'", values={column: '"other"'})
    else:
        table.add(rows.drop_columns(["_distance"]) if "_distance" in rows.column_names else rows)
    rebuild(filled)
    assert holds(filled) == before


def test_rebuild_mends_altered_values_of_a_vector(filled: World) -> None:
    before = holds(filled)
    table = lancedb.connect(filled.home / "vectors").open_table(filled.mail_index.name)
    table.update(where="true", values={"vector": [0.5] * 384})
    rebuild(filled)
    assert holds(filled) == before
