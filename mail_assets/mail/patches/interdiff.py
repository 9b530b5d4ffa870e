"""Compare two versions of a patch or series, as git range-diff does: a diff of their diffs.

Files are compared by path, hunks without line numbers. A line of the result has two signs: the
first shows which version has it, the second is the sign of the line in its patch.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

from mail_assets.mail.patches.patch import Diff, FileDiff
from mail_assets.mail.patches.read import ReadPatch
from mail_assets.mail.patches.subjects import fold_title
from mail_assets.text.untrusted import clean_line, show_turns

#: Comparisons of two lines, per file and for all files of two versions. Beyond this limit the
#: differing part is shown as replaced.
MAX_COMPARISONS, MAX_IN_ALL = 4_000_000, 20_000_000
CONTEXT = 3  # lines around a difference
LEAST_SHARE = 0.4  # of the changed lines that two patches with different titles must share


@dataclass(slots=True)
class Effort:
    """Remaining comparisons of lines."""

    left: int = MAX_IN_ALL

    def allows(self, count: int) -> bool:
        """Return whether `count` comparisons may be made, and subtract them."""
        if count > min(self.left, MAX_COMPARISONS):
            return False
        self.left -= count
        return True


State = Literal["same", "context", "changed", "added", "dropped"]


@dataclass(frozen=True, slots=True)
class FileComparison:
    """A file in both versions of a patch.

    `state`: "context" means that only the lines around the changes differ. `lines` are the
    differences, with CONTEXT lines around; each begins with " ", "-" or "+" of the comparison, and
    marks of direction are written out.
    """

    path: str
    old_path: str  # in the old version, if that is another
    state: State
    lines: tuple[str, ...]
    is_cut: bool = False  # too long to compare line by line


@dataclass(frozen=True, slots=True)
class Version:
    """A version of a patch, from a mail or a commit."""

    name: str  # "v2 1/3", "commit 01ab23cd45ef"
    message_id: str  # "" of a commit
    title: str
    diff: Diff
    changelog: tuple[str, ...] = ()

    @property
    def patch_id(self) -> str:
        """The patch-id, "" without one."""
        return self.diff.patch_id()


def version_of_mail(read: ReadPatch) -> Version:
    """Return the version that a mail has."""
    one = read.patch
    part = f" {one.part}/{one.parts or '?'}" if one.part is not None else ""
    name = f"v{one.version}{part}"
    return Version(name, one.message_id, one.title, read.diff, one.changelog)


@dataclass(frozen=True, slots=True)
class PatchComparison:
    """A patch in both versions of a series; one of them is None if it was added or dropped."""

    old: Version | None
    new: Version | None
    state: State
    files: tuple[FileComparison, ...]
    by_git: tuple[str, ...] = ()  # the lines of `git range-diff`, if that compared it

    @property
    def title(self) -> str:
        """The title in the new version, else in the old one."""
        named = self.new or self.old
        return named.title if named else ""

    @property
    def changelog(self) -> tuple[str, ...]:
        """The words of the author on the new version."""
        return self.new.changelog if self.new else ()


def compare_series(old: Sequence[Version], new: Sequence[Version]) -> tuple[PatchComparison, ...]:
    """Compare the patches of two versions, in the order of the new one, dropped ones last."""
    partners, effort = _pair(old, new), Effort()
    found = [
        compare_patches(None if at is None else old[at], one, effort)
        for one, at in zip(new, partners, strict=True)
    ]
    taken = {*partners}
    found += [compare_patches(one, None, effort) for at, one in enumerate(old) if at not in taken]
    return tuple(found)


def compare_patches(
    old: Version | None, new: Version | None, effort: Effort | None = None
) -> PatchComparison:
    """Compare two versions of a patch, or show one that has no partner."""
    diffs = (old.diff if old else Diff(), new.diff if new else Diff())
    files = compare_diffs(*diffs, effort)
    states = {file.state for file in files}
    state: State
    if old is None or new is None:
        state = "dropped" if new is None else "added"
    elif states <= {"same"}:
        state = "same"
    else:
        state = "context" if states <= {"same", "context"} else "changed"
    return PatchComparison(old, new, state, files)


def compare_diffs(old: Diff, new: Diff, effort: Effort | None = None) -> tuple[FileComparison, ...]:
    """Compare the files of two diffs: files of the new one, then files only in the old one."""
    effort = effort or Effort()
    before = {file.path: file for file in old.files}
    by_old_name = {file.old_name: file for file in old.files}
    found: list[FileComparison] = []
    seen: set[str] = set()
    for file in new.files:
        other = before.get(file.path) or by_old_name.get(file.old_name)
        if other is None or other.path in seen:
            found.append(_compare_files(None, file, effort))
            continue
        seen.add(other.path)
        found.append(_compare_files(other, file, effort))
    found += [
        _compare_files(file, None, effort) for path, file in before.items() if path not in seen
    ]
    return tuple(found)


def _compare_files(old: FileDiff | None, new: FileDiff | None, effort: Effort) -> FileComparison:
    named = new or old
    path = clean_line(named.path) if named else ""
    before = [*_lines(old)] if old else []
    after = [*_lines(new)] if new else []
    if old is None or new is None:
        sign, lines = ("+", after) if old is None else ("-", before)
        state: State = "added" if old is None else "dropped"
        return FileComparison(path, "", state, tuple(show_turns(f"{sign}{x}") for x in lines))
    old_path = clean_line(old.path) if old.path != new.path else ""
    if before == after:
        return FileComparison(path, old_path, "same", ())
    lines_shown, is_cut = _difference(before, after, effort)
    only_context = _changes(before) == _changes(after)
    shown = tuple(map(show_turns, lines_shown))
    return FileComparison(path, old_path, "context" if only_context else "changed", shown, is_cut)


def _lines(file: FileDiff) -> Iterator[str]:
    """Yield the lines of a file's diff without line numbers, to compare versions."""
    yield from (line for line in file.extended if not line.startswith(("index ", "similarity ")))
    if file.binary:
        yield file.binary
    for hunk in file.hunks:
        yield f"@@ {hunk.function}".rstrip()
        yield from hunk.lines


def _changes(lines: Sequence[str]) -> list[str]:
    return [line for line in lines if line[:1] not in {" ", "@", "\\"}]


def _difference(
    before: Sequence[str], after: Sequence[str], effort: Effort
) -> tuple[list[str], bool]:
    """Return the differing lines with context, and whether there were too many."""
    start = 0
    while start < min(len(before), len(after)) and before[start] == after[start]:
        start += 1
    end = 0
    most = min(len(before), len(after)) - start
    while end < most and before[-1 - end] == after[-1 - end]:
        end += 1
    middle_before = before[start : len(before) - end]
    middle_after = after[start : len(after) - end]
    if not effort.allows(len(middle_before) * len(middle_after)):
        return [
            *(f" {line}" for line in before[max(0, start - CONTEXT) : start]),
            *(f"-{line}" for line in middle_before),
            *(f"+{line}" for line in middle_after),
            *(f" {line}" for line in before[len(before) - end :][:CONTEXT]),
        ], True
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    shown: list[str] = []
    for group in matcher.get_grouped_opcodes(CONTEXT):
        first = group[0][1]
        head = next((line for line in reversed(before[:first]) if line.startswith("@@")), "")
        if head:
            shown.append(f" {head}")
        for kind, old_start, old_end, new_start, new_end in group:
            if kind == "equal":
                shown += (f" {line}" for line in before[old_start:old_end])
                continue
            shown += (f"-{line}" for line in before[old_start:old_end])
            shown += (f"+{line}" for line in after[new_start:new_end])
    return shown, False


def _pair(old: Sequence[Version], new: Sequence[Version]) -> list[int | None]:
    """Return for each new patch the position of its old version.

    By patch-id, then by title, then by shared changed lines; each old version is used once. A
    single patch on both sides is a pair.
    """
    if len(old) == len(new) == 1:
        return [0]
    partners: list[int | None] = [None] * len(new)
    free = {*range(len(old))}

    def join(at: int, place: int) -> None:
        if at in free and partners[place] is None:
            partners[place] = at
            free.discard(at)

    for key in (lambda one: one.patch_id, lambda one: fold_title(one.title)):
        places: dict[str, list[int]] = {}
        for at in sorted(free):
            places.setdefault(key(old[at]), []).append(at)
        for place, one in enumerate(new):
            same = places.get(key(one)) if partners[place] is None and key(one) else None
            if same:
                join(same.pop(0), place)
    digests = [[{*one.diff.digest_lines()} for one in side] for side in (old, new)]
    shares = [
        (-len(digests[0][at] & digests[1][place]), at, place)
        for place in range(len(new))
        if partners[place] is None
        for at in sorted(free)
        if len(digests[0][at] & digests[1][place])
        >= LEAST_SHARE * max(1, min(len(digests[0][at]), len(digests[1][place])))
    ]
    for _, at, place in sorted(shares):
        join(at, place)
    return partners


# --- text ---


def format_comparison(found: Sequence[PatchComparison]) -> str:
    """Return comparisons as text: a line for each patch and file, and the lines that differ."""
    return "".join(f"{line}\n" for one in found for line in _format_patch(one))


_STATES: dict[State, str] = {
    "same": "unchanged",
    "context": "only the lines around the changes differ",
    "changed": "changed",
    "added": "new",
    "dropped": "dropped",
}


def _format_patch(one: PatchComparison) -> Iterator[str]:
    old, new = (version.name if version else "--" for version in (one.old, one.new))
    yield f"{old} -> {new}  {one.title}: {_STATES[one.state]}"
    if one.old and one.new and one.old.title != one.new.title:
        yield f"    title before: {one.old.title}"
    yield from (f"    | {line}" for line in one.changelog)
    yield from (f"    {line}" for line in one.by_git)
    if one.by_git or one.state == "same":
        return
    for file in one.files:
        if file.state == "same":
            continue
        was = f" (was {file.old_path})" if file.old_path else ""
        yield f"  {file.path}{was}: {_STATES[file.state]}"
        if file.is_cut:
            yield "    too long to be compared line by line"
        yield from (f"    {line}" for line in file.lines)
