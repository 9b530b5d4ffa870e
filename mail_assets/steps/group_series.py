"""Group the patches that changed into series, and decide the state of each patch.

Series have no months: a new version is often in a later month, or on another list. Whether two
postings are joined depends on these two only (mail/patches/series.py), and only neighbours in the
order of a key are compared. So a change touches the series of its neighbours, and all others stay.
The work is proportional to the series that are touched. The result is the same as if all patches
were grouped.

In the first run, and after a change of the version, all patches count as changed. Changes are
processed in portions, one transaction each. Memory holds one portion, and a killed run keeps the
portions that it committed.
"""

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from functools import partial
from itertools import chain
from typing import NamedTuple

import psycopg

from mail_assets.mail.patches.outcomes import OUTCOMES_VERSION, Said, decide_states, read_outcomes
from mail_assets.mail.patches.series import (
    SERIES_VERSION,
    Member,
    PatchKey,
    Posting,
    SeriesPatch,
    Step,
    build_lineages,
    compare_postings,
    find_taken_over,
    group_postings,
    is_sender_of,
    order_by_arrival,
    posting_key,
    window_keys,
)
from mail_assets.month import ListMonth
from mail_assets.postgres.database import retry_conflicts
from mail_assets.tables.partitions import (
    Counts,
    State,
    locked,
    look_up_by_index,
    read_state,
    write_state,
)
from mail_assets.tables.patch_series import (
    CORPUS,
    MODULUS,
    KeyRow,
    OutcomeRow,
    SeriesRow,
    StoredPatch,
    add_counts,
    change_all,
    digest_key,
    find_all_mails_with_patches,
    find_holders,
    find_mails_with_patches,
    find_near,
    find_next,
    find_series,
    find_standing,
    fold_name,
    has_changes,
    note_standing,
    read_answers,
    read_figures,
    read_keys,
    read_outcomes_about,
    read_outcomes_of,
    read_patches,
    read_refs,
    read_rows,
    replace_keys,
    replace_outcomes,
    replace_rows,
    summarize_rows,
    take_changes,
    take_changes_of,
)
from mail_assets.tables.threads import set_repeatable_read
from mail_assets.workspace import Log, Outcome, rate

#: Version of all rules that determine the rows.
GROUPING_VERSION = f"{SERIES_VERSION}.{OUTCOMES_VERSION}.4"

#: Changed messages per portion; with their series they take some 100 MB.
PORTION = 5_000

#: Receives the figures of months.
Report = Callable[[Mapping[ListMonth, Mapping[str, int]]], None]


class _Touched(NamedTuple):
    """The series that a portion touches: their rows, and all patches that belong to them now.

    `gain` is the amount that statements read again add to the digest.
    """

    rows: list[SeriesRow]
    patches: dict[int, StoredPatch]
    gain: int


def are_series_outdated(connection: psycopg.Connection) -> bool:
    """Return whether patches, answers or the version have changed since series were grouped."""
    state = read_state(connection, CORPUS)
    return has_changes(connection) or (state is not None and state.inputs != GROUPING_VERSION)


def has_wrong_keys(connection: psycopg.Connection) -> bool:
    """Return whether a row of patch_keys is missing or wrong."""
    mails = find_all_mails_with_patches(connection)
    for start in range(0, len(mails), PORTION):
        patches = read_patches(connection, mails[start : start + PORTION])
        refs = {digest_key(*one.patch.key) for one in patches}
        if {*read_keys(connection, refs)} != {key for one in patches for key in _keys_of(one)}:
            return True
    return False


def group_series(
    connection: psycopg.Connection,
    log: Log,
    *,
    rebuild: bool = False,
    report: Report = lambda months: None,
) -> Outcome:
    """Bring the series up to date with the stored patches and answers; write only differences.

    With `rebuild` all are grouped and compared, as after a change of the version. `report` receives
    the figures of the months whose patches were grouped. It is called before the commit, so that a
    killed run leaves out no month.
    """
    began = time.monotonic()
    work: Counter[str] = Counter()
    while True:
        step = partial(_group_next, connection, work.copy(), log, began, report, rebuild=rebuild)
        outcome, work, more = retry_conflicts(step)
        rebuild = False
        if not more:
            return outcome


def _group_next(
    connection: psycopg.Connection,
    work: Counter[str],
    log: Log,
    began: float,
    report: Report,
    *,
    rebuild: bool,
) -> tuple[Outcome, Counter[str], bool]:
    with locked(connection, CORPUS), connection.transaction():
        set_repeatable_read(connection)
        state = None if rebuild else read_state(connection, CORPUS)
        if state is None or state.inputs != GROUPING_VERSION:
            change_all(connection)
            digest, figures = summarize_rows(connection)
            known = State(GROUPING_VERSION, f"{digest % MODULUS:032x}", {**figures})
        else:
            known = state
        note_standing(connection)
        changed = take_changes(connection, PORTION)
        if known is state and not changed:
            counts: Counts = {**state.counts, **_worked(work)}
            changed_any = bool(work["written"] or work["deleted"])
            return Outcome(counts, state.digest, changed_any), work, False
        look_up_by_index(connection)
        portion = _write_portion(connection, {*changed}, work)
        if work["read"]:
            log(f"grouped {work['read']} patches")
        digest = (int(known.digest, 16) + portion.gain) % MODULUS
        seconds = time.monotonic() - began
        counts = {
            **add_counts(Counter(known.counts), portion.old, portion.new),
            **_worked(work),
            "seconds": round(seconds, 3),
            "patches_per_second": rate(work["read"], seconds),
        }
        new = State(GROUPING_VERSION, f"{digest:032x}", counts)
        write_state(connection, CORPUS, new, rewritten=True)
        months = {ListMonth(row.list, row.month) for row in (*portion.old, *portion.new)}
        report(read_figures(connection, months))
    outcome = Outcome(counts, new.digest, bool(work["written"] or work["deleted"]))
    return outcome, work, True


def _worked(work: Mapping[str, int]) -> Counts:
    return {name: work.get(name, 0) for name in ("read", "compared", "written", "deleted")}


class _Group(NamedTuple):
    """The postings of one series, oldest first, and the steps between them."""

    postings: list[Posting]
    steps: list[Step]

    @property
    def mails(self) -> set[str]:
        """The messages of its patches, and its cover letters without a label."""
        mails = {patch.key[0] for one in self.postings for patch in one.patches}
        return mails | {x for one in self.postings if (x := one.unlabelled_cover)}


class _Portion(NamedTuple):
    """The rows of the touched series before and after, and the amount to add to the digest."""

    old: Sequence[SeriesRow]
    new: Sequence[SeriesRow]
    gain: int


def _write_portion(
    connection: psycopg.Connection, changed: Collection[str], work: Counter[str]
) -> _Portion:
    touched = _find_touched(connection, changed)
    groups = _group(connection, touched, work)
    covers = {x for group in groups for one in group.postings if (x := one.unlabelled_cover)}
    mails = {one.patch.key[0] for one in touched.patches.values()}
    said = _read_said(connection, mails, covers)
    deciders = _find_deciders(connection, groups, said)
    rows = [
        row
        for group, known in zip(groups, deciders, strict=True)
        for row in _make_rows(group, touched.patches, said, known)
    ]
    written, deleted, gain = replace_rows(connection, touched.rows, rows)
    work.update(read=len(rows), written=written, deleted=deleted)
    return _Portion(touched.rows, rows, gain + touched.gain)


# Statements -------------------------------------------------------------------------------------


def _read_statements(
    connection: psycopg.Connection, changed: Collection[str]
) -> tuple[set[str], int]:
    """Read the statements in changed mails; return the mails that they answer, now or before.

    The second value is the amount to add to the digest. Mails of an id that has several texts are
    ignored, because anybody can send another text under that id.
    """
    before = read_outcomes_of(connection, changed)
    after = [
        OutcomeRow(
            answer.message_id,
            number,
            one.outcome,
            one.start,
            one.end,
            one.shas,
            one.title,
            one.parts,
            one.whole,
            one.firm,
            answer.from_email,
            answer.from_name,
            answer.sent_at,
            tuple(dict.fromkeys(answer.ancestors)),
        )
        for answer in read_answers(connection, changed)
        if not answer.is_contested
        for number, one in enumerate(
            read_outcomes(answer.body_text, answer.segments, answer.subject)
        )
    ]
    gain = replace_outcomes(connection, changed, before, after)
    return {x for row in chain(before, after) for x in row.ancestors}, gain


def _read_said(
    connection: psycopg.Connection, mails: Set[str], covers: Set[str]
) -> dict[str, list[Said]]:
    """Return the statements in answers to patches, by the nearest patch mail above each answer.

    A patch mail makes no statements about other patches: its text is a commit message.
    """
    rows = read_outcomes_about(connection, mails | covers)
    others = {x for row in rows for x in (row.message_id, *row.ancestors)} - mails
    known = find_mails_with_patches(connection, others) | mails | covers
    said: dict[str, list[Said]] = defaultdict(list)
    for row in rows:
        answered = next((x for x in reversed(row.ancestors) if x in known), None)
        if answered is not None and row.message_id not in known:
            said[answered].append(
                Said(
                    row.message_id,
                    row.number,
                    row.statement,
                    row.from_email.lower(),
                    fold_name(row.from_name),
                    row.sent_at.timestamp(),
                    answered,
                    row.ancestors[-1] == answered,
                )
            )
    return said


def _find_deciders(
    connection: psycopg.Connection, groups: Iterable[_Group], said: Mapping[str, Sequence[Said]]
) -> list[set[str]]:
    """Return the people with standing in each group, where this matters.

    It matters if several people made statements or sent patches, or if there is both a statement
    and a newer version.
    """
    asked: list[set[str]] = []
    mails: dict[str, set[str]] = defaultdict(set)  # those that say something, by sender
    for group in groups:
        about = [x for mail in group.mails for x in said.get(mail, ())]
        senders = {patch.sender for one in group.postings for patch in one.patches}
        people = {x.sender for x in about}
        matters = len(people) > 1 or (about and len(group.postings) > 1)
        asked.append((people if matters else set()) | (senders if len(senders) > 1 else set()))
        for one in about if matters else ():
            mails[one.sender].add(one.message_id)
    known = find_standing(connection, {x for some in asked for x in some}, mails)
    return [some & known for some in asked]


# Series that changed ----------------------------------------------------------------------------


def _keys_of(stored: StoredPatch) -> Iterator[KeyRow]:
    patch, ref = stored.patch, digest_key(*stored.patch.key)
    for values in window_keys(patch):
        yield KeyRow(digest_key(*values), patch.sent_at, ref)
    if key := posting_key(patch):
        yield KeyRow(digest_key("posting", *key), patch.sent_at, ref, of_posting=True)


def _find_touched(connection: psycopg.Connection, changed: Collection[str]) -> _Touched:
    """Return the series of changed patches, of their neighbours, and of answered patches.

    The changes of all mails of these series are taken too. Otherwise a series would be grouped from
    rows that no longer exist.
    """
    seeds: set[int] = set()
    mails: set[str] = set()
    rows: list[SeriesRow] = []
    gain = 0
    while changed:
        touched, gained = _note_changed(connection, changed)
        seeds |= touched
        gain += gained
        mails |= {*changed}
        rows = read_rows(connection, find_series(connection, seeds))
        mails |= {row.message_id for row in rows}
        changed = take_changes_of(connection, mails)
    patches = read_patches(connection, mails)
    return _Touched(rows, {digest_key(*one.patch.key): one for one in patches}, gain)


def _note_changed(connection: psycopg.Connection, changed: Collection[str]) -> tuple[set[int], int]:
    """Write the keys and statements of changed mails; return the patches that they may touch.

    The second value is the amount that the statements add to the digest. A patch that was added or
    deleted changes its posting, so all patches near it in time count as changed.
    """
    answered, gain = _read_statements(connection, changed)
    current = read_patches(connection, changed)
    refs = {*read_refs(connection, changed), *(digest_key(*one.patch.key) for one in current)}
    keys = {*read_keys(connection, refs)}
    new = {key for one in current for key in _keys_of(one)}
    replace_keys(connection, refs, new)
    keys |= new
    posted = [key for key in keys if key.of_posting]
    while near := find_near(connection, posted) - refs:
        added = read_keys(connection, near)
        posted = [key for key in added if key.of_posting]
        keys.update(added)
        refs |= near
    seeds = refs | find_holders(connection, [digest_key("mail", one) for one in answered])
    for before in (False, True):
        seeds.update(other for _, other in find_next(connection, [*keys], before=before))
    return seeds, gain


def _group(connection: psycopg.Connection, touched: _Touched, work: Counter[str]) -> list[_Group]:
    postings = group_postings(one.patch for one in touched.patches.values())
    home = {digest_key(*x.key): i for i, one in enumerate(postings) for x in one.patches}
    keys = [key for one in touched.patches.values() for key in _keys_of(one)]
    pairs = {
        (min(home[a], home[b]), max(home[a], home[b]))
        for a, b in find_next(connection, keys)
        if a in home and b in home and home[a] != home[b]
    }
    work["compared"] += len(pairs)
    root = [*range(len(postings))]

    def find(place: int) -> int:
        while root[place] != place:
            root[place] = root[root[place]]
            place = root[place]
        return place

    of_mail: dict[str, int] = {}
    for place, posting in enumerate(postings):
        for patch in posting.patches:
            root[find(place)] = find(of_mail.setdefault(patch.key[0], place))
    steps: list[tuple[int, Step]] = []
    for first, second in sorted(pairs):
        found = compare_postings(postings[first], postings[second])
        if found:
            root[find(first)] = find(second)
            steps += ((first, step) for step in found)
    groups: dict[int, _Group] = defaultdict(lambda: _Group([], []))
    for place, posting in enumerate(postings):
        groups[find(place)].postings.append(posting)
    for place, step in steps:
        groups[find(place)].steps.append(step)
    return [*groups.values()]


# Rows -------------------------------------------------------------------------------------------


def _make_rows(
    group: _Group,
    stored: Mapping[int, StoredPatch],
    said: Mapping[str, Sequence[Said]],
    deciders: Set[str],
) -> Iterator[SeriesRow]:
    postings = order_by_arrival(group.postings)
    members = build_lineages(postings, group.steps)
    about = [x for mail in sorted(group.mails) for x in said.get(mail, ())]
    states = decide_states(postings, members, about, deciders)
    places = {patch.key: i for i, one in enumerate(postings) for patch in one.patches}
    patches = {patch.key: patch for one in postings for patch in one.patches}
    first = min(patches.values(), key=lambda one: one.order).key[0]
    order = [*patches]
    numbers: dict[PatchKey, int] = {}
    lineages = {member.key: member.lineage for member in members}
    for key in order:
        numbers.setdefault(lineages[key], len(numbers))
    newer, taken_over = _compare_senders(members, patches)
    for member in members:
        patch, ref = patches[member.key], digest_key(*member.key)
        state = states[member.key]
        copy = stored[ref]
        reason_id = state.said.message_id if state.said else state.newer and state.newer[0]
        yield SeriesRow(
            *member.key,
            ref,
            copy.list,
            copy.month,
            copy.variant,
            first,
            places[member.key],
            numbers[member.lineage],
            member.previous[0] if member.previous else None,
            member.evidence,
            patch.is_remark,
            member.key in taken_over,
            member.key in taken_over and patch.sender not in deciders,
            member.key not in newer,
            state.state,
            reason_id,
            state.said.statement.start if state.said else None,
            state.said.statement.end if state.said else None,
            state.shas,
        )


def _compare_senders(
    members: Sequence[Member], patches: Mapping[PatchKey, SeriesPatch]
) -> tuple[set[PatchKey], set[PatchKey]]:
    """Return the patches with a newer version by their own people, and those taken over."""
    chains: dict[PatchKey, list[SeriesPatch]] = defaultdict(list)
    for member in members:
        chains[member.chain].append(patches[member.key])
    replaced: set[PatchKey] = set()
    taken_over: set[PatchKey] = set()
    for some in chains.values():
        some.sort(key=lambda one: one.order)
        taken_over |= find_taken_over(some)
        senders: set[tuple[str, str]] = set()
        for patch in reversed(some):
            if any(is_sender_of(*sender, patch) for sender in senders):
                replaced.add(patch.key)
            senders.add((patch.sender, patch.sender_name))
    return replaced, taken_over
