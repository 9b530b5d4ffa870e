"""Patches of a month become rows: first run, after a change, and after damage."""

import base64
import gzip
from functools import partial

import pytest

from mail_assets.forgetting.forget import ForgetRequest
from mail_assets.mail.message.forgotten import NOBODY
from mail_assets.postgres import statements
from mail_assets.tables import patches as table
from mail_assets.tables.damage import find_damaged_rows
from mail_assets_tests.mail.patches.test_read import DIFF as BARE
from mail_assets_tests.world import HARBOR, MARCH, World, mail

load = partial(World.load, last="messages")

DIFF = f"{BARE}--\n2.40.1\n"
PATCH = f"""The crane must know its limit.

Signed-off-by: Ann <ann@example.org>
---
Changes since v1:
 - the limit has a name
v1: https://lists.example.org/all/old-crane@example.org/

 crane.c | 3 ++-
 1 file changed, 2 insertions(+), 1 deletion(-)

{DIFF}"""
ATTACHED = """Content-Type: multipart/mixed; boundary="=="
MIME-Version: 1.0"""
MIXED = f"""--==
Content-Type: text/plain

The patch is attached.
--==
Content-Type: text/x-patch; name="v3-0001-Let-it-float.patch"
Content-Disposition: attachment; filename="v3-0001-Let-it-float.patch"

{DIFF}
--==--
"""
VERSIONS = "message_id, ctid::text, xmin::text"


def patch_mail(name: str, body: str = PATCH, subject: str = "[PATCH v2 1/2] Limit") -> bytes:
    return mail(name, body, subject=subject)


def test_patches_of_a_month_become_rows(world: World) -> None:
    load(
        world,
        patch_mail("a"),
        mail("b", "No patch.", subject="crane"),
        mail("c", MIXED, subject="floating crane", headers=ATTACHED),
        mail("d", "All about it.", subject="[PATCH v2 0/2] Cranes"),
        mail("e", "a | 2 +-\n 1 file changed, 1 insertion(+)\n", subject="crane"),
    )
    outcome = world.patches()
    counts = outcome.counts
    assert {name: counts[name] for name in ("rows", "patches", "covers", "attached")} == {
        "rows": 3,
        "patches": 2,
        "covers": 1,
        "attached": 1,
    }
    assert counts["written"] == 3
    columns = "message_id, kind, title, version, part, parts, patch_id"
    first, attached, cover = world.rows("patches", columns)
    assert first[1:-1] == ("patch", "Limit", 2, 1, 2)
    assert attached[1:-1] == ("patch", "Let it float", 3, None, None)
    assert attached[-1] == first[-1] != ""
    assert cover[1:] == ("cover", "Cranes", 2, 0, 2, "")
    [(links, files, lines)] = world.rows(
        "patches", "links, files, cardinality(line_digests)", "message_id like 'a%'"
    )
    assert links == [[1, "old-crane@example.org"]]
    assert [(one["path"], one["added"], one["removed"]) for one in files] == [("crane.c", 2, 1)]
    assert lines == 3


def test_compressed_patch_is_a_row_and_has_its_names(world: World) -> None:
    packed = base64.encodebytes(gzip.compress(DIFF.encode(), mtime=0)).decode()
    head = "Content-Type: application/x-gzip; name=v3-0001-Let-it-float.patch.gz"
    part = f"--==\n{head}\nContent-Transfer-Encoding: base64\n\n{packed}--==--\n"
    load(world, mail("a", part, subject="floating crane", headers=ATTACHED))
    assert world.patches().counts["attached"] == 1
    [row] = world.rows("patches", "title, version, file_name, malformed, file_count")
    assert row == ("Let it float", 3, "v3-0001-Let-it-float.patch.gz", "", 1)
    [[names]] = world.rows("messages", "identifiers")
    assert {"crane.c", "v3-0001-let-it-float.patch.gz"} <= {*names}


def test_changed_month_writes_only_the_difference(world: World) -> None:
    load(world, patch_mail("a"), patch_mail("b"), patch_mail("c"))
    world.patches()
    before = world.rows("patches", VERSIONS, "message_id like 'a%'")
    edited = patch_mail("b", PATCH.replace("limit_of_crane", "limit"))
    load(world, patch_mail("a"), edited, patch_mail("d"), at=1)
    outcome = world.patches()
    assert (outcome.counts["written"], outcome.counts["deleted"]) == (2, 1)
    assert world.rows("patches", VERSIONS, "message_id like 'a%'") == before


def test_patches_are_handled_in_small_groups(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    load(world, *(patch_mail(f"m{n}") for n in range(9)))
    whole = world.patches().digest, world.rows("patches")
    with world.connect() as connection:
        connection.execute("delete from patches")
        connection.execute("delete from partitions where asset = 'patches'")
    monkeypatch.setattr(statements, "ROWS_AT_A_TIME", 4)
    monkeypatch.setattr(table, "MESSAGES_AT_A_TIME", 2)
    assert (world.patches().digest, world.rows("patches")) == whole


def test_forgotten_mail_and_people_are_in_no_patch(world: World) -> None:
    by_zed = PATCH.replace("The crane", "From: Zed <zed@example.org>\n\nThe crane").replace(
        "/all/old-crane@example.org/", "/all/b@example.org/"
    )
    load(world, patch_mail("a", by_zed), patch_mail("b"), patch_mail("c"))
    world.patches()
    asked = ForgetRequest(["b@example.org"], ["zed@example.org"], "asked to", "the postmaster")
    world.forget(asked)
    rows = world.rows("patches", "message_id, author_email, links")
    assert [message_id for message_id, *_ in rows] == ["a@example.org", "c@example.org"]
    [_, author, links] = rows[0]
    assert (author, links) == (NOBODY.email, [])
    with world.connect() as connection:
        assert not [*find_damaged_rows(connection, HARBOR)]
    world.messages()
    outcome = world.patches()
    assert (outcome.counts["written"], outcome.counts["deleted"]) == (0, 0)


@pytest.mark.parametrize(
    "damage", ["delete from patches", "update patches set title = 'x' where place = 0"]
)
def test_damaged_patches_are_found_and_made_again(world: World, damage: str) -> None:
    load(world, patch_mail("a"), patch_mail("b"))
    world.patches()
    whole = world.rows("patches")
    with world.connect() as connection:
        connection.execute(damage.encode())
        found = [*find_damaged_rows(connection, HARBOR)]
    assert [(one.asset, str(one.month)) for one in found] == [("patches", f"{HARBOR} {MARCH}")]
    world.patches(rebuild=True)
    assert world.rows("patches") == whole
