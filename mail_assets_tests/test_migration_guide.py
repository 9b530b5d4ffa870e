"""The statements of docs/migration.md run in order, on an old database that gets the new tables."""

import re
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest
from click.testing import CliRunner

from mail_assets.cli import main
from mail_assets.postgres.programs import vector_cpu_ok
from mail_assets_tests.conftest import REPOSITORY
from mail_assets_tests.world import APRIL, HARBOR, MARCH, World, mail

STATEMENTS = re.findall(
    r"```sql\n(.*?)```", (REPOSITORY / "docs" / "migration.md").read_text(), re.DOTALL
)

OLD = """
create extension vector;
create table messages (
    id text primary key, mailbox_id text, ts timestamptz, subject text, from_email text,
    body_text text, embedding vector(1536));
insert into messages (id, mailbox_id, ts, subject) values
    ('<a@example.org>', 'harbor', '2024-03-04 09:00+00', 'about a'),
    ('<b@example.org>', 'harbor', '2024-03-31 23:59:59+00', 'about b'),
    ('<made-up@old>', 'harbor', '2024-04-01 00:00+00', 'nobody sent this');
update messages set embedding = array_fill(1, array[1536])::vector
"""


@pytest.mark.skipif(not vector_cpu_ok(), reason="this CPU cannot run the server's pgvector")
def test_every_statement_of_the_guide_does_what_it_says(tmp_path: Path, postgres_dsn: str) -> None:
    create, counts, missing, quarantine, prepare, texts, drop = STATEMENTS
    with psycopg.connect(postgres_dsn, autocommit=True) as old:
        old.execute(OLD.encode())
        old.execute(create.encode())
        options = quote("-csearch_path=mail_assets,extensions")
        world = World(tmp_path, f"{postgres_dsn}&options={options}")
        world.archive(MARCH, mail("a"), mail("b"), mail("c"), b"From x Mon Mar  4 09:00:00 2024\n")
        world.archive(APRIL, mail("d"))
        for month in (MARCH, APRIL):
            world.chain(month)
        world.threads()

        rows = old.execute(counts.encode()).fetchall()
        assert rows == [(HARBOR, MARCH, 2, 3), (HARBOR, APRIL, 1, 1)]
        assert [row[0] for row in old.execute(missing.encode()).fetchall()] == ["<made-up@old>"]
        assert old.execute(quarantine.encode()).fetchall() == []
        old.execute(prepare.encode())
        query = "execute old_answers (array_fill(1, array[1536])::vector)"
        assert len(old.execute(query).fetchall()) == 3
        [(key,), *_] = world.rows("chunks", "key")
        [found] = old.execute(texts.replace("KEY#0", key).encode()).fetchall()
        assert found[0] == key
        old.execute(drop.encode())
        with pytest.raises(psycopg.errors.UndefinedColumn):
            old.execute("select embedding from public.messages")
        assert len(world.rows("vectors", "key", "written")) == 4


def test_every_command_of_the_guides_exists() -> None:
    for page in ("migration.md", "vectors.md"):
        text = (REPOSITORY / "docs" / page).read_text()
        named = set(re.findall(r"^ +(?:\w+=\S+ )*mail-assets ((?:index )?\w+)", text, re.MULTILINE))
        assert named
        for command in named:
            done = CliRunner().invoke(main, [*command.split(), "--help"])
            assert done.exit_code == 0, command
