"""A server of the user's own: which versions are refused."""

import pytest

from mail_assets.postgres.errors import PostgresError
from mail_assets.postgres.remote import check_version


@pytest.mark.parametrize(("version", "major"), [(140_012, 14), (90_624, 9)])
def test_an_older_server_is_refused_with_what_is_needed(version: int, major: int) -> None:
    wanted = f"MAIL_PG_DSN is PostgreSQL {major}; mail_assets needs 15 or later: upgrade it"
    with pytest.raises(PostgresError, match=wanted):
        check_version(version)


@pytest.mark.parametrize("version", [150_000, 150_020, 180_006])
def test_a_newer_server_is_taken(version: int) -> None:
    check_version(version)
