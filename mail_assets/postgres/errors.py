"""The errors of a server that cannot be used."""


class PostgresError(RuntimeError):
    """No usable server: none found, one that does not start, or one that is not fit."""


class OldDataError(PostgresError):
    """The data are of another major version: `mail-assets upgrade` takes them over."""
