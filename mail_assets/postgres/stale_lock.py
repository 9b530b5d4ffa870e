"""Clear the lock files of a dead server whose process id is still taken."""

from pathlib import Path


def remove_stale_lock(data: Path, socket_folder: Path) -> None:
    """Delete the lock files of a dead postmaster; do nothing while it is alive (Linux only).

    A killed postmaster stays in the process table until its parent reaps it: in a
    container without an init process, forever. In a new container, or after a boot,
    its pid may be that of any other program. PostgreSQL sees a live pid and refuses to
    start. The data are safe: while one of its backends is still busy in a query, a new
    server refuses to start for the shared memory's sake; try again when the query has ended.
    """
    lock = data / "postmaster.pid"
    try:
        pid = int(lock.read_text().split()[0])
        status = Path(f"/proc/{pid}/stat").read_text()
    except (OSError, ValueError, IndexError):
        return
    name, _, rest = status.partition("(")[2].rpartition(")")
    if name == "postgres" and rest.split()[0] != "Z":
        return
    for path in (lock, *socket_folder.glob(".s.PGSQL.*")):
        path.unlink(missing_ok=True)
