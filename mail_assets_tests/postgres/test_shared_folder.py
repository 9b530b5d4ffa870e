"""The folder of root's: entered by everybody, written by root alone, never a link."""

import os
from pathlib import Path

import pytest

from mail_assets.postgres.errors import PostgresError
from mail_assets.postgres.programs import require_owner, shared_folder, short_digest

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to change the account")


def test_links_and_what_another_user_owns_are_refused(tmp_path: Path) -> None:
    require_owner(tmp_path, {os.geteuid()})
    with pytest.raises(PostgresError, match="is not ours; remove it"):
        require_owner(tmp_path, {os.geteuid() + 1})
    (tmp_path / "link").symlink_to(tmp_path)
    with pytest.raises(PostgresError, match="is not ours; remove it"):
        require_owner(tmp_path / "link", {os.geteuid()})


def test_a_digest_tells_all_parts_apart() -> None:
    assert short_digest("a", 1) == short_digest("a", 1)
    assert (
        len({short_digest("a", 1), short_digest("a", 2), short_digest("a1"), short_digest("a")})
        == 4
    )


@as_root
def test_the_shared_directory_can_be_entered_whatever_the_umask(shared: Path) -> None:
    before = os.umask(0o077)
    try:
        assert shared_folder() == shared
    finally:
        os.umask(before)
    assert shared.stat().st_mode & 0o777 == 0o755


@as_root
def test_a_shared_directory_that_is_a_link_is_refused(shared: Path, tmp_path: Path) -> None:
    shared.symlink_to(tmp_path)
    with pytest.raises(PostgresError, match="is not ours"):
        shared_folder()
