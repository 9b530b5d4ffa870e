"""Find blocks of lines that should not be cut apart: SQL statements, query plans, tables, logs."""

import re
from collections.abc import Iterator, Sequence

_SQL = re.compile(
    r"(?i)[ \t]*(?:[\w.@]+[=(-][#>*]+ ?)?(?:select|insert into|update|delete from|create|alter|"
    r"drop|with|explain|copy|merge into|grant|vacuum|analyze|declare|do \$)\b"
)
# Cells and server messages look ahead for their sign first: else each place of a line is tried.
_LISTING = re.compile(
    r"[ \t]*QUERY PLAN\b|.*\((?:cost=|actual (?:time|rows)=)|[ \t]*->  |"  # plans
    r"(?=[^|]*+\|)[^|]*\S[ \t]*\|[ \t]|[ \t]*\||"  # tables
    r"[ \t]*[-+=]{3}[-+= \t]*$|[ \t]*\(\d+ rows?\)|"
    r"(?=.*: )(?:.*[ \]:])?(?:DEBUG\d?|LOG|INFO|NOTICE|WARNING|ERROR|FATAL|PANIC|DETAIL|HINT|"
    r"CONTEXT|STATEMENT|QUERY|LOCATION):  ?|LINE \d+:|"  # server messages
    r"[\[(]?\d{4}-\d\d-\d\d[ T]\d\d:\d\d|\[ *\d+\.\d{3,}\]|"  # log times
    r"[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d |"  # syslog times
    r"[ \t]*(?:#\d+ |at \S+\(|File \".*\", line \d|Traceback \(most)"  # stack traces
)
_MIN_LISTING_LINES = 3


def find_blocks(lines: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Find the blocks as (first line, line after the last); those of two kinds may overlap."""
    yield from _listings(lines)
    yield from _statements(lines)


def _listings(lines: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Find runs of plan, table or log lines and what is indented below them."""
    first = None
    for i, line in enumerate([*lines, ""]):
        if _LISTING.match(line) or (first is not None and line[:1] in {" ", "\t"} and line.strip()):
            first = i if first is None else first
        elif first is not None:
            if i - first >= _MIN_LISTING_LINES:
                yield first, i
            first = None


def _statements(lines: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Find SQL statements: to the line that ends in ";", with no blank line between."""
    first = None
    for i, line in enumerate(lines):
        if not line.strip():
            first = None
        elif first is None and _SQL.match(line):
            first = i
        if first is not None and line.rstrip().endswith(";"):
            yield first, i + 1
            first = None
