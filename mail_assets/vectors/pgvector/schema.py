"""The schema `vectors`, and whose it is: its indexes are named by encoders, not by installations.

Two installations in schemas of one database would take each other's vectors for faults of their own
and delete them. The one that writes first leaves its schema's name in the comment.
"""

from __future__ import annotations

import psycopg
from psycopg import sql
from psycopg.rows import DictRow

from mail_assets.vectors.errors import VectorError

SCHEMA = "vectors"
_MARK = "vectors of mail_assets in the schema "


def check_schema(session: psycopg.Connection[DictRow], label: str) -> None:
    """Check that the schema, if it is there, is not another installation's.

    Raises:
        VectorError: it is.
    """
    comment, ours = _read_comment(session)
    theirs = comment.removeprefix(_MARK)
    if not comment.startswith(_MARK) or theirs == ours:
        return
    gone = session.execute("SELECT FROM pg_namespace WHERE nspname = %s", [theirs]).rowcount == 0
    if gone:
        return
    raise VectorError(
        f"{label}: the schema {SCHEMA} has the vectors of the installation in the schema {theirs}, "
        f"this one is in the schema {ours}: give one of them a database of its own, or another "
        "place for its vectors (MAIL_VECTORS)"
    )


def create_schema(session: psycopg.Connection[DictRow], label: str) -> None:
    """Create the schema where it is missing, and mark it; one without a mark is taken over.

    What somebody else has commented on it stays.

    Raises:
        VectorError: it is another installation's.
    """
    name = sql.Identifier(SCHEMA)
    owner = "SELECT pg_has_role(nspowner, 'usage') AS mine FROM pg_namespace WHERE nspname = %s"
    row = session.execute(owner, [SCHEMA]).fetchone()
    if row is None:  # with IF NOT EXISTS it takes a right that a schema made by others spares
        session.execute(sql.SQL("CREATE SCHEMA {}").format(name))
    check_schema(session, label)
    comment, ours = _read_comment(session)
    mark = f"{_MARK}{ours}"
    is_ours_to_say = not comment or comment.startswith(_MARK)
    if comment != mark and is_ours_to_say and (row is None or row["mine"]):
        session.execute(sql.SQL("COMMENT ON SCHEMA {} IS {}").format(name, sql.Literal(mark)))


def _read_comment(session: psycopg.Connection[DictRow]) -> tuple[str, str]:
    """Return the comment on the schema, and the schema of the connection's tables."""
    (row,) = session.execute(
        "SELECT coalesce(obj_description(to_regnamespace(%s), 'pg_namespace'), '') AS comment,"
        " coalesce(current_schema(), '') AS ours",
        [SCHEMA],
    )
    return row["comment"], row["ours"]
