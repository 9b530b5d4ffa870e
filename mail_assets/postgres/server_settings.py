"""The settings of the embedded server: a file of ours that postgresql.conf includes.

The file is ours alone and is written again whenever another version of mail_assets has other
settings. A user's own go below the include in postgresql.conf, or through ALTER SYSTEM: PostgreSQL
takes the last value it reads, and postgresql.auto.conf last of all.
"""

import os
from pathlib import Path

from mail_assets.postgres.account import ServerAccount

FILE = "mail_assets.conf"

SERVER_SETTINGS = """listen_addresses = ''
max_connections = 100
shared_buffers = '256MB'
maintenance_work_mem = '512MB'
max_wal_size = '4GB'
random_page_cost = 1.1
"""

#: What earlier versions appended to postgresql.auto.conf, where it would win over our file.
FORMER_SETTINGS = """listen_addresses = ''
max_connections = 100
shared_buffers = '256MB'
maintenance_work_mem = '512MB'
max_wal_size = '4GB'
random_page_cost = 1.1
"""

HEADER = """# Written by mail_assets, which writes it again when its settings change.
# Your own settings: in postgresql.conf below the include of this file, or by ALTER SYSTEM.
"""

INCLUDE = f"include_if_exists '{FILE}'"


def update_settings(data: Path, account: ServerAccount) -> bool:
    """Bring the settings in a data directory up to date; return whether anything was written.

    Nothing is written where nothing differs: a running server then need not read them again.
    """
    included = (data / "postgresql.conf").read_text()
    if INCLUDE not in included.splitlines():
        included = f"{included.rstrip()}\n\n{INCLUDE}\n"
    wanted = {
        FILE: HEADER + SERVER_SETTINGS,
        "postgresql.conf": included,
        "postgresql.auto.conf": _read(data / "postgresql.auto.conf").replace(FORMER_SETTINGS, ""),
    }
    differing = [name for name, text in wanted.items() if _read(data / name) != text]
    for name in differing:
        _replace(data / name, wanted[name], account)
    return bool(differing)


def _read(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def _replace(path: Path, text: str, account: ServerAccount) -> None:
    """Write a file aside and rename it: a server that starts meanwhile reads the whole of it.

    The folder belongs to the server's account: root follows no link that it may have put there.
    """
    fresh = path.with_name(f"{path.name}.new")
    fresh.unlink(missing_ok=True)
    with fresh.open("x") as file:
        os.fchmod(file.fileno(), 0o600)
        os.fchown(file.fileno(), account.uid, account.gid)
        file.write(text)
    fresh.replace(path)
