"""Debian's PostgreSQL on a port of the loopback, and PgBouncer before it."""

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from mail_assets.postgres.programs import server_account
from mail_assets_tests.ports import find_free_port
from mail_assets_tests.servers.programs import find_programs, is_listening, run_server

#: auth_type any: every client is accepted, as the user in the database line.
BOUNCER = """[databases]
* = host=127.0.0.1 port={server} user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = {mode}
default_pool_size = 40
"""


def remote_dsn(port: int, database: str) -> str:
    return f"postgresql://postgres@127.0.0.1:{port}/{database}"


@contextmanager
def server_folder() -> Iterator[Path]:
    """Yield an empty folder of the account that runs the server: PostgreSQL refuses root."""
    account = server_account()
    with tempfile.TemporaryDirectory(prefix="mail-assets-") as name:
        os.chown(name, account.uid, account.gid)
        yield Path(name)


@contextmanager
def serve_postgres() -> Iterator[int]:
    """Run a server without databases of ours; yield its port."""
    programs, account = find_programs("postgres", "initdb"), server_account()
    with server_folder() as folder:
        data, log, port = folder / "data", folder / "log", find_free_port()
        log.touch()
        with log.open("ab") as output:
            subprocess.run(
                [programs["initdb"], "-D", data, "-U", "postgres", "-A", "trust", "--no-sync"],
                stdout=output,
                stderr=output,
                env={"LC_ALL": "C.UTF-8", "PATH": os.environ["PATH"]},
                cwd="/",
                check=True,
                **account.switch,
            )
        quiet = ("-F", "-c", "autovacuum=off")
        command = [programs["postgres"], "-D", data, "-p", port, "-k", folder, *quiet]
        with run_server([*map(str, command)], log, lambda: _answers(port), account.switch):
            yield port


def _answers(port: int) -> bool:
    """Return whether a server accepts sessions; it listens earlier, while it starts."""
    try:
        psycopg.connect(remote_dsn(port, "postgres")).close()
    except psycopg.OperationalError:
        return False
    return True


@contextmanager
def serve_pgbouncer(server: int, mode: str) -> Iterator[int]:
    """Run a pooler before the server at a port, in a mode of its own; yield its port."""
    program, account = find_programs("pgbouncer")["pgbouncer"], server_account()
    with server_folder() as folder:
        settings, log, port = folder / "pgbouncer.ini", folder / "log", find_free_port()
        settings.write_text(BOUNCER.format(server=server, port=port, mode=mode))
        log.touch()
        command = [program, str(settings)]
        with run_server(command, log, lambda: is_listening(port), account.switch):
            yield port
