"""The lock file of a server: is the process in it alive, and clearing it when it is not."""

from pathlib import Path


def is_server_alive(data: Path) -> bool | None:
    """Return whether the process in the lock file is a living server.

    None: there is no lock, no such process, or no /proc to look at (Linux only).
    """
    try:
        pid = int((data / "postmaster.pid").read_text().split()[0])
        status = Path(f"/proc/{pid}/stat").read_text()
    except (OSError, ValueError, IndexError):
        return None
    name, _, rest = status.partition("(")[2].rpartition(")")
    return name == "postgres" and rest.split()[0] != "Z"


def remove_stale_lock(data: Path, socket_folder: Path) -> None:
    """Delete the lock files of a dead postmaster; do nothing while it is alive (Linux only).

    A killed postmaster stays in the process table until its parent reaps it: in a
    container without an init process, forever. In a new container, or after a boot,
    its pid may be that of any other program. PostgreSQL sees a live pid and refuses to
    start. The data are safe: while one of its backends is still busy in a query, a new
    server refuses to start for the shared memory's sake; try again when the query has ended.
    """
    if is_server_alive(data) is False:
        for path in (data / "postmaster.pid", *socket_folder.glob(".s.PGSQL.*")):
            path.unlink(missing_ok=True)
