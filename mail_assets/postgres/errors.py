"""The errors of a server that cannot be used."""

from mail_assets.errors import UnavailableError


class PostgresError(UnavailableError):
    """No usable server: none found, one that does not start, or one that is not fit."""

    notice = "the database cannot be used"


class OldDataError(PostgresError):
    """The data were written by another major version of PostgreSQL."""
