"""The error of the embedded server."""


class PostgresError(RuntimeError):
    """No usable server: none found, or one that does not start."""
