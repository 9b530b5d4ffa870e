"""Decide what became of each patch of a series, by newer versions and by what mails say.

Every state but `open` names its reason: a sentence of a mail, or the next version. Who may say so:

* `applied`: anybody, but of his own patch an author only in firm words ("pushed"), or where he
  answers it himself: below a review he may mean the suggestion;
* `rejected`: anybody else, in an answer to the patch itself;
* `withdrawn`, `superseded`: who sent or wrote the patch.

A newer version supersedes a patch only if its sender sent or wrote that patch: nobody else can
take a patch off the list of open ones. What is said by who sent or wrote the patch, or by somebody
with standing, goes before what others say, and that a stranger's version was applied is believed of
nobody else.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import NamedTuple

from mail_assets.mail.patches.outcomes import OutcomeStatement, PostedPatch, find_targets
from mail_assets.mail.patches.series import (
    Member,
    PatchKey,
    Posting,
    SeriesPatch,
    find_taken_over,
    is_sender_of,
)

#: States of a patch.
STATES = ("open", "applied", "superseded", "rejected", "withdrawn")


class Said(NamedTuple):
    """A statement, the mail that makes it, and the patch mail that this answers."""

    message_id: str
    number: int  # among the statements of the mail
    statement: OutcomeStatement
    sender: str  # address in lower case
    sender_name: str  # folded
    said_at: float  # seconds since 1970
    answered: str  # Message-ID of the nearest patch mail above it
    is_direct: bool  # it answers that mail itself


class PatchState(NamedTuple):
    """State of a patch; `said` is the reason, or `newer` is the version that supersedes it."""

    state: str
    said: Said | None = None
    newer: PatchKey | None = None

    @property
    def shas(self) -> tuple[str, ...]:
        """The commits that the reason names."""
        return self.said.statement.shas if self.said and self.state == "applied" else ()


_OPEN = PatchState("open")


def decide_states(
    postings: Sequence[Posting],
    members: Iterable[Member],
    said: Iterable[Said],
    deciders: Set[str] = frozenset(),
) -> dict[PatchKey, PatchState]:
    """Return the state of each patch of a series; `said` are the statements about its mails.

    `deciders` are addresses with standing.
    """
    patches = {patch.key: patch for posting in postings for patch in posting.patches}
    about = _find_statements(postings, said)
    chains: dict[PatchKey, list[SeriesPatch]] = defaultdict(list)
    for member in members:
        chains[member.chain].append(patches[member.key])
    states: dict[PatchKey, PatchState] = {}
    for some in chains.values():
        some.sort(key=lambda one: one.order)
        taken_over = find_taken_over(some)
        for place, patch in enumerate(some):
            heard = _with_resent(patch, some[:place], about)
            if patch.key in taken_over and patch.sender not in deciders:
                heard = [x for x in heard if x.sender in deciders or not _says_applied(x)]
            states[patch.key] = _decide(patch, some[place + 1 :], heard, deciders)
        _supersede_taken_over(some, states)
    for posting in postings:
        if posting.cover and states[posting.cover.key] == _OPEN:
            states[posting.cover.key] = _decide_cover(posting, states)
    return states


def _find_statements(
    postings: Sequence[Posting], said: Iterable[Said]
) -> Mapping[PatchKey, list[Said]]:
    """Return the statements about each patch, oldest first."""
    home = {x: one for one in postings if (x := one.unlabelled_cover)}
    home |= {patch.key[0]: posting for posting in postings for patch in posting.patches}
    about: dict[PatchKey, list[Said]] = defaultdict(list)
    for one in sorted(said, key=lambda x: (x.said_at, x.message_id, x.number)):
        if posting := home.get(one.answered):
            posted = [_posted(patch) for patch in posting.patches]
            cover = PostedPatch(one.answered, 0, True, 0, "")
            answered = next((x for x in posted if x.message_id == one.answered), cover)
            for target in find_targets(one.statement, posted, answered):
                about[target.message_id, target.place].append(one)
    return about


def _posted(patch: SeriesPatch) -> PostedPatch:
    return PostedPatch(*patch.key, patch.is_cover, patch.part, patch.title)


def _decide(
    patch: SeriesPatch,
    later: Sequence[SeriesPatch],
    about: Sequence[Said],
    deciders: Set[str],
) -> PatchState:
    newer = next((one for one in later if is_sender_of(one.sender, one.sender_name, patch)), None)
    own = {x: is_sender_of(x.sender, x.sender_name, patch) for x in about}
    known = [x for x in about if own[x] or x.sender in deciders]
    found = _decide_by(known, own, newer)
    return found if found != _OPEN else _decide_by([x for x in about if x not in known], own, None)


def _decide_by(
    about: Sequence[Said], own: Mapping[Said, bool], newer: SeriesPatch | None
) -> PatchState:
    applied = [x for x in about if _says_applied(x) and (_is_plain(x) or not own[x])]
    named = [x for x in applied if x.statement.shas]
    if named:
        return PatchState("applied", named[-1])
    if newer:
        return PatchState("superseded", newer=newer.key)
    if applied:
        return PatchState("applied", applied[-1])
    for one in reversed(about):
        outcome = one.statement.outcome
        if own[one] and outcome in {"withdrawn", "superseded"}:
            return PatchState(outcome, one)
        if not own[one] and outcome == "rejected" and one.is_direct:
            return PatchState("rejected", one)
    return _OPEN


def _with_resent(
    patch: SeriesPatch, before: Sequence[SeriesPatch], about: Mapping[PatchKey, Sequence[Said]]
) -> list[Said]:
    """Return the statements about a patch, also that its diff, sent before, was applied since."""
    found = [*about.get(patch.key, ())]
    for one in before:
        if patch.patch_id and one.patch_id == patch.patch_id:
            said = about.get(one.key, ())
            found += [x for x in said if _says_applied(x) and x.said_at > patch.sent_at]
    return sorted(found, key=lambda x: (x.said_at, x.message_id, x.number))


def _supersede_taken_over(chain: Sequence[SeriesPatch], states: dict[PatchKey, PatchState]) -> None:
    """Let a version by somebody else that was applied supersede the open ones before it."""
    applied: PatchKey | None = None
    for patch in reversed(chain):
        state = states[patch.key].state
        if state == "applied":
            applied = patch.key
        elif state == "open" and applied:
            states[patch.key] = PatchState("superseded", newer=applied)


def _is_plain(said: Said) -> bool:
    """Return whether words of a patch's author are about the patch, and not about a suggestion."""
    return said.statement.firm or said.is_direct


def _says_applied(said: Said) -> bool:
    return said.statement.outcome in {"applied", "pulled"}


def _decide_cover(posting: Posting, states: Mapping[PatchKey, PatchState]) -> PatchState:
    """Return the state that all patches of a posting have, with the reason of the last one."""
    parts = [states[patch.key] for patch in posting.patches if not patch.is_cover]
    complete = len(parts) == posting.first.parts
    if complete and len({one.state for one in parts}) == 1 and parts[0].state != "superseded":
        return parts[-1]
    return _OPEN
