"""The rows of patch_series, and of the tables it is built from: outcomes, keys and changes.

mail/patches joins patches, steps/group_series.py decides when, and reading/series.py reads series
for display.
"""

import datetime as dt
import hashlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import psycopg

from mail_assets.mail.body.lines import Segment
from mail_assets.mail.patches.outcomes import STATES, OutcomeStatement
from mail_assets.mail.patches.patch import EarlierVersion
from mail_assets.mail.patches.series import POSTING_SPAN, WINDOW, PatchKey, SeriesPatch
from mail_assets.month import ListMonth, columns_of
from mail_assets.postgres.statements import copy_rows, read_as, read_column, read_value, statement
from mail_assets.tables.partitions import (
    Counts,
    Partition,
    look_up_by_index,
    read_state,
    write_state,
)

#: Series are not partitioned by month: they span all lists.
CORPUS = Partition("patch_series", None)

#: The digest of all rows is the sum of their digests modulo this number, so that a change of some
#: rows can be applied without reading the others.
MODULUS = 1 << 128

#: Figures of all rows, as count_rows returns them.
FIGURES = ("patches", "series", "joined", *STATES)


class SeriesRow(NamedTuple):
    """A row of patch_series."""

    message_id: str
    place: int
    ref: int
    list: str
    month: str
    variant: int
    series_id: str
    posting: int
    change: int
    previous_id: str | None
    evidence: Sequence[str]
    is_remark: bool
    is_taken_over: bool
    by_stranger: bool
    is_newest: bool
    state: str
    reason_id: str | None
    reason_start: int | None
    reason_end: int | None
    shas: Sequence[str]

    @property
    def key(self) -> PatchKey:
        """The key of the patch."""
        return self.message_id, self.place

    @property
    def digest(self) -> int:
        """A digest of the row, less than MODULUS."""
        return _digest(self)


class OutcomeRow(NamedTuple):
    """A row of patch_outcomes."""

    message_id: str
    number: int
    outcome: str
    start_at: int
    end_at: int
    shas: Sequence[str]
    title: str
    parts: Sequence[int]
    whole: bool
    firm: bool
    from_email: str
    from_name: str
    sent_at: dt.datetime
    ancestors: Sequence[str]

    @property
    def digest(self) -> int:
        """A digest of the row, less than MODULUS."""
        return _digest([*self[:-2], self.sent_at.timestamp(), self.ancestors])

    @property
    def statement(self) -> OutcomeStatement:
        """The statement about patches."""
        return OutcomeStatement(
            self.outcome,
            self.start_at,
            self.end_at,
            tuple(self.shas),
            self.title,
            tuple(self.parts),
            self.whole,
            self.firm,
        )


class Answer(NamedTuple):
    """A reply that may say what became of a patch."""

    message_id: str
    subject: str
    body_text: str
    segments: list[Segment]
    from_email: str
    from_name: str
    sent_at: dt.datetime
    ancestors: Sequence[str]
    is_contested: bool


class StoredPatch(NamedTuple):
    """A patch, and the copy of its message that was read."""

    patch: SeriesPatch
    list: str
    month: str
    variant: int


class KeyRow(NamedTuple):
    """A row of patch_keys."""

    key: int
    at: float
    ref: int
    of_posting: bool = False


def _digest(values: Iterable[object]) -> int:
    plain = repr([[*x] if isinstance(x, tuple) else x for x in values])
    return int.from_bytes(hashlib.sha256(plain.encode()).digest()[:16], "big")


def digest_key(*values: object) -> int:
    """Return a digest of values that fits a bigint of PostgreSQL."""
    data = "\0".join(map(str, values)).encode(errors="surrogatepass")
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "big", signed=True)


def has_changes(connection: psycopg.Connection) -> bool:
    """Return whether a patch or a reply has changed since series were built."""
    return bool(read_value(connection, statement("patch_series", "has_changes")))


def take_changes(connection: psycopg.Connection, most: int) -> list[str]:
    """Take at most `most` ids of changed messages, in a transaction; ids may repeat."""
    return read_column(connection, statement("patch_series", "take_changes"), {"most": most})


def take_changes_of(connection: psycopg.Connection, ids: Collection[str]) -> set[str]:
    """Take the changes of some messages, in a transaction."""
    query = statement("patch_series", "take_changes_of")
    return {*read_column(connection, query, {"ids": [*ids]})}


def change_all(connection: psycopg.Connection) -> None:
    """Note all patches and replies as changed, also vanished ones; make all states again."""
    connection.execute(statement("patch_series", "change_all"))
    connection.execute(statement("patch_series", "delete_foreign_keys"))
    connection.execute(statement("patch_series", "settle_states"))


def has_wrong_states(connection: psycopg.Connection) -> bool:
    """Return whether patch_states differs from what its triggers would compute."""
    digest = statement("patch_series", "digest_states")
    with connection.transaction(force_rollback=True):
        before = connection.execute(digest).fetchone()
        connection.execute(statement("patch_series", "settle_states"))
        return connection.execute(digest).fetchone() != before


def read_answers(connection: psycopg.Connection, ids: Collection[str]) -> Iterator[Answer]:
    """Yield the replies among some messages, in a transaction; bodies are read in batches."""
    with connection.cursor("patch_answers") as cursor:
        cursor.itersize = 200
        for row in cursor.execute(statement("patch_series", "answers"), {"ids": [*ids]}):
            answer = Answer(*row)
            yield answer._replace(segments=[Segment(*part) for part in row[3]])


def read_outcomes_of(connection: psycopg.Connection, ids: Collection[str]) -> list[OutcomeRow]:
    """Return the outcomes that some mails state."""
    query = statement("patch_series", "outcomes_of")
    return read_as(connection, OutcomeRow, query, {"ids": [*ids]})


def read_outcomes_about(connection: psycopg.Connection, ids: Collection[str]) -> list[OutcomeRow]:
    """Return the outcomes stated in replies to some mails."""
    query = statement("patch_series", "outcomes_about")
    return read_as(connection, OutcomeRow, query, {"ids": [*ids]})


def replace_outcomes(
    connection: psycopg.Connection,
    ids: Collection[str],
    old: Iterable[OutcomeRow],
    new: Sequence[OutcomeRow],
) -> int:
    """Replace the outcomes `old` of the mails `ids` by `new`; return the change of the digest."""
    connection.execute(statement("patch_series", "delete_outcomes"), {"ids": [*ids]})
    _copy(connection, "copy_outcomes", new)
    return _gain(old, new)


def find_standing(
    connection: psycopg.Connection, addresses: Collection[str], mails: Mapping[str, Collection[str]]
) -> set[str]:
    """Return the addresses of those people who decide on patches.

    `mails` maps each address to the mails that state an outcome. The states of patches are recorded
    as depending on them.
    """
    pairs = [(address, mail) for address, some in mails.items() for mail in some]
    values = {
        "addresses": [*addresses],
        "senders": [x for x, _ in pairs],
        "ids": [x for _, x in pairs],
    }
    return {*read_column(connection, statement("patch_series", "find_standing"), values)}


def note_standing(connection: psycopg.Connection) -> None:
    """Note mails as changed if their senders have begun or ceased to decide on patches."""
    connection.execute(statement("patch_series", "note_standing"))


def _gain(old: Iterable[SeriesRow | OutcomeRow], new: Iterable[SeriesRow | OutcomeRow]) -> int:
    return sum(row.digest for row in new) - sum(row.digest for row in old)


def find_mails_with_patches(connection: psycopg.Connection, ids: Collection[str]) -> set[str]:
    """Return the messages among `ids` that have patches."""
    return {*read_column(connection, statement("patch_series", "with_patches"), {"ids": [*ids]})}


def read_patches(connection: psycopg.Connection, ids: Collection[str]) -> list[StoredPatch]:
    """Return the patches of some messages."""
    rows = connection.execute(statement("patch_series", "patches"), {"ids": [*ids]}).fetchall()
    return [_make_patch(row) for row in rows]


def _make_patch(row: tuple[Any, ...]) -> StoredPatch:
    (list_name, month, variant, message_id, place, kind, source, *rest) = row
    (title, title_key, tags, version, part, parts, from_email, from_name, *rest) = rest
    (author_email, author_name, sent_at, patch_id, paths, digests, change_id, *rest) = rest
    (links, ancestors, flags, arrived_at) = rest
    answers = "answer" in flags and source == "body"
    patch = SeriesPatch(
        (message_id, place),
        kind == "cover",
        title,
        title_key,
        frozenset(tags),
        version,
        part,
        parts,
        from_email.lower(),
        fold_name(from_name),
        author_email.lower(),
        fold_name(author_name),
        sent_at.timestamp(),
        patch_id,
        frozenset(paths),
        frozenset(digests),
        change_id,
        tuple(EarlierVersion(*link) for link in links),
        tuple(dict.fromkeys(ancestors)),
        answers,
        arrived_at.timestamp() if arrived_at else None,
    )
    return StoredPatch(patch, list_name, month, variant)


def fold_name(name: str) -> str:
    """Return a person's name for comparison."""
    return " ".join(name.replace('"', " ").casefold().split())


def find_all_mails_with_patches(connection: psycopg.Connection) -> list[str]:
    """Return all messages that have patches."""
    return read_column(connection, statement("patch_series", "mails_of_patches"))


def read_keys(connection: psycopg.Connection, refs: Collection[int]) -> list[KeyRow]:
    """Return the keys of some patches."""
    return read_as(connection, KeyRow, statement("patch_series", "keys_of"), {"refs": [*refs]})


def replace_keys(
    connection: psycopg.Connection, refs: Collection[int], keys: Iterable[KeyRow]
) -> None:
    """Replace the keys of the patches `refs` by `keys`."""
    connection.execute(statement("patch_series", "delete_keys"), {"refs": [*refs]})
    _copy(connection, "copy_keys", keys)


def find_next(
    connection: psycopg.Connection, keys: Sequence[KeyRow], *, before: bool = False
) -> list[tuple[int, int]]:
    """Return (patch, neighbour) for the WINDOW next patches in the order of each key."""
    parameters = {
        "key_numbers": [one.key for one in keys],
        "ats": [one.at for one in keys],
        "refs": [one.ref for one in keys],
        "window": WINDOW,
    }
    query = statement("patch_series", "before" if before else "after")
    return connection.execute(query, parameters).fetchall()


def find_near(connection: psycopg.Connection, keys: Sequence[KeyRow]) -> set[int]:
    """Return the patches that share a key within the span of a posting."""
    parameters = {
        "key_numbers": [one.key for one in keys],
        "ats": [one.at for one in keys],
        "span": POSTING_SPAN,
    }
    return {*read_column(connection, statement("patch_series", "near"), parameters)}


def find_holders(connection: psycopg.Connection, keys: Collection[int]) -> set[int]:
    """Return the patches that have any of some keys."""
    query = statement("patch_series", "holders")
    return {*read_column(connection, query, {"key_numbers": [*keys]})}


def find_series(connection: psycopg.Connection, refs: Collection[int]) -> set[str]:
    """Return the series of some patches."""
    query = statement("patch_series", "series_of_refs")
    return {*read_column(connection, query, {"refs": [*refs]})}


def read_refs(connection: psycopg.Connection, ids: Collection[str]) -> dict[int, str]:
    """Return patch -> series for the patches of some messages that are in a series."""
    rows = connection.execute(statement("patch_series", "refs_of_mails"), {"ids": [*ids]})
    return {ref: series for _, _, ref, series in rows}


def read_rows(connection: psycopg.Connection, series: Collection[str]) -> list[SeriesRow]:
    """Return the rows of some series."""
    query = statement("patch_series", "rows")
    return read_as(connection, SeriesRow, query, {"series": [*series]})


def count_rows(rows: Iterable[SeriesRow]) -> Counter[str]:
    """Count patches, series, patches by state, and `joined` ones, which continue a version."""
    counts: Counter[str] = Counter()
    series = set()
    for row in rows:
        series.add(row.series_id)
        counts["patches"] += 1
        counts["joined"] += row.previous_id is not None
        counts[row.state] += 1
    counts["series"] = len(series)
    return counts


def summarize_rows(connection: psycopg.Connection) -> tuple[int, Counter[str]]:
    """Return the digest of all rows and outcomes, and the figures, in a transaction."""
    digest = 0

    def add(rows: Iterable[SeriesRow]) -> Iterator[SeriesRow]:
        nonlocal digest
        for row in rows:
            digest += row.digest
            yield row

    with connection.cursor("patch_series_rows") as cursor:
        cursor.itersize = 10_000
        cursor.execute(statement("patch_series", "all_rows"))
        counts = count_rows(add(SeriesRow(*columns) for columns in cursor))
    with connection.cursor("patch_series_outcomes") as cursor:
        cursor.itersize = 10_000
        cursor.execute(statement("patch_series", "all_outcomes"))
        digest += sum(OutcomeRow(*columns).digest for columns in cursor)
    return digest, counts


def read_figures(
    connection: psycopg.Connection, months: Collection[ListMonth]
) -> dict[ListMonth, dict[str, int]]:
    """Return the number of patches of each month in series, joined, and by state."""
    rows = connection.execute(statement("patch_series", "figures"), columns_of(sorted(months)))
    names = ("patches", "joined", *STATES)
    return {ListMonth(name, month): dict(zip(names, x, strict=True)) for name, month, *x in rows}


def replace_rows(
    connection: psycopg.Connection, old: Iterable[SeriesRow], new: Iterable[SeriesRow]
) -> tuple[int, int, int]:
    """Write the difference; return the rows written and deleted, and the change of the digest."""
    before, after = ({row.key: row for row in rows} for rows in (old, new))
    same = {key for key, row in after.items() if key in before and before[key].digest == row.digest}
    gone = [row for key, row in before.items() if key not in same]
    come = [row for key, row in after.items() if key not in same]
    if gone:
        parameters = {
            "ids": [row.message_id for row in gone],
            "places": [row.place for row in gone],
        }
        connection.execute(statement("patch_series", "delete"), parameters)
    _copy(connection, "copy", come)
    deleted = sum(row.key not in after for row in gone)
    return len(come), deleted, _gain(gone, come)


def _copy(connection: psycopg.Connection, name: str, rows: Iterable[tuple[Any, ...]]) -> None:
    columns = ([[*x] if isinstance(x, tuple) else x for x in row] for row in rows)
    copy_rows(connection, statement("patch_series", name), columns)


def add_counts(
    counts: Mapping[str, int | float], old: Iterable[SeriesRow], new: Iterable[SeriesRow]
) -> Counts:
    """Return the figures of all rows after the rows `old` were replaced by `new`."""
    before, after = count_rows(old), count_rows(new)
    return {name: counts[name] + after[name] - before[name] for name in FIGURES}


def discard_patches(connection: psycopg.Connection, ids: Collection[str]) -> None:
    """Remove forgotten mails from series and from outcomes, keys and changes, in a transaction.

    Their series and neighbouring patches are noted to be grouped again.
    """
    connection.execute(statement("patch_series", "lock"))
    look_up_by_index(connection)
    parameters: dict[str, Any] = {"ids": [*ids]}
    refs = [*read_refs(connection, ids)]
    keys = read_keys(connection, refs)
    near = {other for _, other in find_next(connection, keys)}
    near.update(other for _, other in find_next(connection, keys, before=True))
    series = read_column(connection, statement("patch_series", "series_naming"), parameters)
    old = read_rows(connection, series)
    parameters |= {"series": series, "refs": [*near]}
    connection.execute(statement("patch_series", "note_mails"), parameters)
    said = {row.message_id for row in read_outcomes_about(connection, ids)} | {*ids}
    said_before = read_outcomes_of(connection, said)
    for name in ("discard_rows", "hide_in_rows", "discard_outcomes", "hide_in_outcomes"):
        connection.execute(statement("patch_series", name), parameters)
    parameters |= {"refs": refs, "key_numbers": [digest_key("mail", one) for one in ids]}
    connection.execute(statement("patch_series", "discard_keys"), parameters)
    connection.execute(statement("patch_series", "discard_changes"), parameters)
    if state := read_state(connection, CORPUS):
        new = _read_again(connection, old, ids)
        gain = _gain(old, new) + _gain(said_before, read_outcomes_of(connection, said))
        digest = f"{(int(state.digest, 16) + gain) % MODULUS:032x}"
        counts = {**state.counts, **add_counts(state.counts, old, new)}
        write_state(connection, CORPUS, state._replace(digest=digest, counts=counts), True)


def _read_again(
    connection: psycopg.Connection, rows: Sequence[SeriesRow], ids: Collection[str]
) -> list[SeriesRow]:
    left = [row.ref for row in rows if row.message_id not in ids]
    return read_rows(connection, find_series(connection, left))
