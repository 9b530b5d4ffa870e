"""MAIL_LOCAL_STATE: whether what no variable names may be kept on this machine.

On one machine it may: an embedded PostgreSQL and folders below MAIL_HOME. A worker among several
with a variable missing would fill a database of its own, which nobody searches; with `refuse` it
stops at its start.
"""

from collections.abc import Mapping, Sequence

from mail_assets.settings.errors import SettingsError, one_of

ALLOW, REFUSE = "allow", "refuse"

#: What decides where Dagster keeps its runs; the webserver and the daemon need no more.
STORAGE_VARIABLES = ("DAGSTER_POSTGRES_URL",)

#: Every variable without which something is read from this machine, or kept on it.
SHARED_VARIABLES = (
    "DAGSTER_HOME",
    *STORAGE_VARIABLES,
    "MAIL_LISTS",
    "MAIL_PG_DSN",
    "MAIL_STORE",
    "MAIL_VECTORS",
    "MAIL_WORDS",
)


def check_local_state(env: Mapping[str, str], needed: Sequence[str] = SHARED_VARIABLES) -> None:
    """Check that each needed variable is set where MAIL_LOCAL_STATE=refuse.

    A folder that is set is accepted: it may be one that all machines have mounted.

    Raises:
        SettingsError: some are not set, and it names all of them; or MAIL_LOCAL_STATE is wrong.
    """
    value = env.get("MAIL_LOCAL_STATE") or ALLOW
    if value not in (ALLOW, REFUSE):
        raise SettingsError("MAIL_LOCAL_STATE", value, one_of((ALLOW, REFUSE)))
    missing = [name for name in needed if not env.get(name)]
    if value == REFUSE and missing:
        raise SettingsError(
            "MAIL_LOCAL_STATE",
            value,
            f"not set: {', '.join(missing)}; set them as the other machines have them, "
            f"or MAIL_LOCAL_STATE={ALLOW} to use this machine alone",
        )
