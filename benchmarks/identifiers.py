"""Measure if search finds identifiers: functions, files, error codes, settings, phrases.

    MAIL_HOME=... python -m benchmarks.identifiers [--mode hybrid]

Each query is asked of its list, and of all lists at once.

The home must contain the lists linux-man (2020) and pgsql-todo. A query succeeds if one of its
first three hits has the words of the query: in the body, the subject, the names of attachments or
the identifiers of the message. Case and line breaks are ignored. To measure other questions, use
`mail-assets evaluate`.
"""

import argparse

import psycopg

from mail_assets.search.language.request import MODES, Request
from mail_assets.search.open import open_searcher
from mail_assets.search.searcher import Searcher
from mail_assets.settings.settings import load_settings

FIRST = 3

#: List -> queries. Quotes make a phrase.
QUERIES = {
    "linux-man": (
        *("posix_spawn", "membarrier.2", "pidfd_send_signal", "epoll_ctl", "import_iovec"),
        *("set_thread_area.2", "ptrace_may_access", "process_madvise", "tailq_first"),
        *("mm/madvise.c", "capabilities.7", "man2/seccomp.2", "io_submit.2", "ld.so.8"),
        *("include/uapi/linux/bpf.h", "arch/mips/kernel/syscalls/syscall_n64.tbl", "stdio.h"),
        *("EAGAIN", "ECANCELED", "ENOSYS", "timerfd_settime", "SECCOMP_USER_NOTIF"),
        *("/proc/sys/kernel/perf_event_paranoid", "PTRACE_MODE_ATTACH_FSCREDS", "MADV_WILLNEED"),
        *("O_RDONLY", "FD_CLOEXEC", "PR_SET_NO_NEW_PRIVS", "clone_args", "seccomp_data"),
        *("uint_fast8_t", "bugzilla/show_bug.cgi", "strftime_l", "hosts.equiv", "CAP_PERFMON"),
        *('"file descriptor"', '"async-signal-safe"', "mbsinit", "strcmp.3", "mq_getattr"),
    ),
    "pgsql-todo": (
        *("pg_dump", "pg_attribute", "posix_fadvise", "heap_fetch", "fmgr_info", "pg_control"),
        *("relcache.c", "analyze.c", "configure.in", "fe-connect.c", "src/include/access/hash.h"),
        *("backend/optimizer/plan/planner.c", "src/port/qsort.c", "plannodes.h", "config.h"),
        *("spi_prepare", "parse_clause", "archive_command", "FADV_NOREUSE", "MoveFileEx"),
        *("WSACancelBlockingCall", "postgresql.conf", "pg_namespace", "a_expr"),
        *("information_schema.tables", "pg_trigger", "heap_sync", "atttypmod"),
        *("l_receiptdate", "anum_pg_statistic_staop"),
        *('"nested transactions"', '"large objects"', "qsort", "win32", "heap_formtuple"),
        *("PQexec", "executils.c", "pg_statistic", "returning_clause", "errno"),
    ),
}  # fmt: skip


def main() -> None:
    """Ask all queries; print the share that succeeds, and those that fail."""
    parser = argparse.ArgumentParser(description="Measure if search finds identifiers.")
    parser.add_argument("--mode", default="hybrid", choices=MODES)
    mode = parser.parse_args().mode
    settings = load_settings()
    with (
        open_searcher(settings.search) as searcher,
        settings.database.connect("identifiers") as connection,
    ):
        for where in ("its list", "all lists"):
            report(where, failures(searcher, connection, mode, where == "all lists"))


def report(where: str, failed: list[tuple[str, str]]) -> None:
    """Print the share of queries that succeed, and those that fail."""
    queries = sum(map(len, QUERIES.values()))
    found = queries - len(failed)
    print(f"{where}: success@{FIRST} {found} of {queries}, {found / queries:.3f}")
    for name, query in failed:
        print(f"  {name}: {query}")


def failures(
    searcher: Searcher, connection: psycopg.Connection, mode: str, everywhere: bool
) -> list[tuple[str, str]]:
    """Return the (list, query) of each query that fails."""
    return [
        (name, query)
        for name, queries in QUERIES.items()
        for query in queries
        for lists in [() if everywhere else (name,)]
        if not _found(searcher, connection, Request(query, mode=mode, limit=FIRST, lists=lists))
    ]


def _found(searcher: Searcher, connection: psycopg.Connection, request: Request) -> bool:
    ids = [hit.message_id for hit in searcher.search(request).hits]
    rows = connection.execute(
        "select lower(concat_ws(' ', subject, body_text, attachments::text, identifiers::text))"
        " from messages where message_id = any(%s)",
        [ids],
    ).fetchall()
    wanted = request.query.lower()
    words = [wanted.strip('"')] if wanted.startswith('"') else wanted.split()
    return any(all(word in " ".join(text.split()) for word in words) for (text,) in rows)


if __name__ == "__main__":
    main()
