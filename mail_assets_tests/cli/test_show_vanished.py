"""`mail-assets show` of a message that its archive holds no more."""

import re
from pathlib import Path

from click.testing import CliRunner

from mail_assets.cli import main
from mail_assets_tests.world import HARBOR, MARCH, World, mail


def test_a_message_that_vanished_is_named(tmp_path: Path, mail_dsn: str) -> None:
    world = World(tmp_path, mail_dsn)
    world.keep_days = 30
    for at, names in enumerate(["ab", "a"]):
        world.archive(MARCH, *map(mail, names), at=at)
        world.chain(last="messages")
    (tmp_path / "lists.toml").write_text(f'[{HARBOR}]\nsource = "{world.folder()}"\n')
    environ = {
        "MAIL_HOME": str(tmp_path),
        "MAIL_LISTS": str(tmp_path / "lists.toml"),
        "MAIL_PG_DSN": mail_dsn,
    }
    shown = CliRunner().invoke(main, ["show", "b@example.org"], env=environ)
    assert shown.exit_code == 1
    said = rf"message b@example.org of {HARBOR} {MARCH} was removed upstream, noticed \d{{4}}-"
    assert re.search(said + r".*; its former archive is kept until \d{4}-", shown.stderr)
