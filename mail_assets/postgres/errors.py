"""Errors of a PostgreSQL server that cannot be used."""

from mail_assets.errors import UnavailableError


class PostgresError(UnavailableError):
    """No usable server: none is found, it does not start, or it does not fit."""

    notice = "the database cannot be used"


class OldDataError(PostgresError):
    """The data were written by another major version of PostgreSQL."""
