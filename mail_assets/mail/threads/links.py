"""Parents of messages: by reference, then by subject.

By reference. A message is below the parent that it names itself: its latest reference that is not
already below it. Nothing but its own fields moves a message that is archived. What it says of its
parent's ancestors counts only where no archive has the parent (a ghost), up to the first archived
ancestor: that one speaks for itself.

A ghost is placed by the messages below it. A claim moves the message that makes it, with its
answers. It moves other messages below the ghost only if more mails claim the same place than there
are such messages; one such message may be moved by one mail. So no mail ties threads of several
messages together, and neither do two. What names the same ghost as its parent is one thread in any
case.

By subject. A thread that begins with an answer to a missing message joins the conversation of the
last message before it, within `SPAN`, that has its topic and a list in common, and stands below the
first message of that topic. Later mail never changes where it joins, so nobody can tie two threads
that exist. public-inbox and JWZ (https://www.jwz.org/doc/threading.html) join by subject too.

Everything is iterative and linear: real chains are 100 deep and forged ones longer.
"""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from mail_assets.mail.threads.message import ThreadMessage, named_ancestors

#: Seconds between an answer without a found parent and the last message of its topic: 60 days.
#: Of answers whose parent is known 97 of 100 are found again, as with 180 days.
SPAN = 60 * 86_400.0


class Links(NamedTuple):
    """The direct parent of each id, ghosts included, and the ids that joined by subject."""

    parents: dict[str, str | None]
    joined: set[str]


class Forest:
    """Trees of ids that are linked one by one; no link is ever replaced, and none makes a cycle.

    A disjoint set keeps the root of an id, so hanging a root x below y makes a cycle exactly when x
    is the root of y. Path halving makes it near-linear for any corpus.
    """

    def __init__(self) -> None:
        self.parents: dict[str, str | None] = {}
        self._above: dict[str, str] = {}

    def find_root(self, x: str) -> str:
        """Return the root of an id; an unknown id is a tree of its own."""
        above = self._above
        up = above.setdefault(x, x)
        while up != x:
            above[x] = up = above[up]
            x, up = up, above[up]
        return x

    def link(self, x: str, parent: str) -> bool:
        """Hang a root below another id; return whether that was possible."""
        root = self.find_root(parent)
        if root == x:
            return False
        self.parents[x] = parent
        self.parents.setdefault(parent, None)
        self._above[x] = root
        return True


def link_messages(messages: Sequence[ThreadMessage]) -> Links:
    """Return the parents of messages, one of each id, in the order that decides."""
    forest = Forest()
    archived = {m.id for m in messages}
    claims, strays = _link_parents(forest, messages)
    ghosts = _Ghosts(forest, archived)
    ghosts.place(messages, claims)
    ghosts.adopt(strays)
    return Links(forest.parents, _join_by_subject(forest, messages, archived))


def _link_parents(
    forest: Forest, messages: Sequence[ThreadMessage]
) -> tuple[dict[str, list[str]], dict[str, str]]:
    """Link each message below its parent.

    Return the ancestors that each names, up to that parent, and the first id after it.
    """
    claims: dict[str, list[str]] = {}
    strays: dict[str, str] = {}
    for m in messages:
        line, after = named_ancestors(m)
        while line and not forest.link(m.id, line[-1]):
            line.pop()
        if line:
            claims[m.id] = line
            if after:
                strays[m.id] = after[0]
        else:
            forest.parents.setdefault(m.id, None)
    return claims, strays


class _Claim(NamedTuple):
    ghost: str
    above: str


@dataclass
class _Ghosts:
    """Places ghosts below the ids that other messages name as their parents.

    A top is a message whose parent is a ghost. `sizes` counts the messages of a top and its
    answers, and those of the tree of a ghost. `waiting` are tops whose claim is not confirmed, and
    `carried` counts the messages that it would move with them. `spent` are mails that have moved a
    message of others.
    """

    forest: Forest
    archived: set[str]
    sizes: Counter[str] = field(default_factory=Counter)
    carried: Counter[_Claim] = field(default_factory=Counter)
    waiting: defaultdict[_Claim, list[str]] = field(default_factory=lambda: defaultdict(list))
    spent: set[str] = field(default_factory=set)

    def place(self, messages: Sequence[ThreadMessage], claims: dict[str, list[str]]) -> None:
        """Place ghosts by the claims of the messages below them, one message after the other."""
        parents, archived = self.forest.parents, self.archived
        top_of: dict[str, str] = {}
        tops: list[str] = []
        for m in messages:
            root = self.forest.find_root(m.id)
            if root in archived:
                continue
            path, x = [m.id], parents[m.id]
            while x in archived and x not in top_of:
                path.append(x)
                x = parents[x]
            top = top_of[x] if x in top_of else path[-1]
            top_of.update(dict.fromkeys(path, top))
            self.sizes.update((root, top))
            if top == m.id:
                tops.append(top)
        for top in tops:
            self._climb(top, claims)

    def _climb(self, top: str, claims: dict[str, list[str]]) -> None:
        """Follow the claims of a top upwards, and of those that had waited for its confirmation."""
        climbing = [top]
        for who in climbing:  # it grows
            line = claims[who]
            while len(line) > 1 and line[-1] not in self.archived:
                claim = _Claim(line[-1], line[-2])
                placed = self.forest.parents[claim.ghost]
                if placed is None:
                    if not self._is_confirmed(claim, who):
                        self.waiting[claim].append(who)
                        self.carried[claim] += self.sizes[who]
                        break
                    if not self._link(*claim):
                        break
                    climbing += self.waiting.pop(claim, [])
                elif placed != claim.above:
                    break
                line.pop()

    def _is_confirmed(self, claim: _Claim, who: str) -> bool:
        """Return whether a claim has more mails than messages of others that it moves."""
        moved = self.sizes[claim.ghost] - self.carried[claim] - self.sizes[who]
        if moved == 1 and claim not in self.waiting and who not in self.spent:
            self.spent.add(who)
            return True
        return moved <= len(self.waiting.get(claim, ()))

    def adopt(self, strays: dict[str, str]) -> None:
        """Hang a ghost with one message below the parent of the first mail that names it after it.

        `strays` are the ids that mails name after their parents.
        """
        parents = self.forest.parents
        for who, ghost in strays.items():
            above = parents[who]
            is_root = ghost not in self.archived and parents.get(ghost, "") is None
            if is_root and above and self.sizes[ghost] == 1 and who not in self.spent:
                self.spent.add(who)
                self._link(ghost, above)

    def _link(self, ghost: str, above: str) -> bool:
        if not self.forest.link(ghost, above):
            return False
        self.sizes[self.forest.find_root(above)] += self.sizes[ghost]
        return True


def _join_by_subject(
    forest: Forest, messages: Sequence[ThreadMessage], archived: set[str]
) -> set[str]:
    """Join the trees that begin with an answer to others of their topic; return their roots."""
    roots = [forest.find_root(m.id) for m in messages]
    heads: dict[str, int] = {}
    for number, (m, root) in enumerate(zip(messages, roots, strict=True)):
        if root not in heads and _is_top(forest, m.id, archived):
            heads[root] = number
    answers = {root: n for root, n in heads.items() if messages[n].is_answer and messages[n].topic}
    topics = _Topics(forest, messages, roots, {messages[n].topic for n in answers.values()})
    for root, number in answers.items():  # in the order of their heads
        topics.join(root, number)
    return topics.joined


def _is_top(forest: Forest, x: str, archived: set[str]) -> bool:
    above = forest.parents[x]
    while above is not None and above not in archived:
        above = forest.parents[above]
    return above is None


class _Topics:
    """The messages of some topics, by list and date; numbers are positions in `messages`."""

    def __init__(
        self,
        forest: Forest,
        messages: Sequence[ThreadMessage],
        roots: Sequence[str],
        wanted: set[str],
    ) -> None:
        self.forest, self.messages, self.roots = forest, messages, roots
        self.joined: set[str] = set()
        # (root of a tree, topic) -> the message that others of the topic are put below
        self._places: dict[tuple[str, str], str] = {}
        self._sent: defaultdict[tuple[str, str], list[tuple[float, int]]] = defaultdict(list)
        for number, (m, root) in enumerate(zip(messages, roots, strict=True)):
            if m.topic in wanted:
                self._places.setdefault((root, m.topic), m.id)
                for name in m.lists:
                    self._sent[name, m.topic].append((m.sent_at, number))
        for dates in self._sent.values():
            dates.sort()

    def join(self, root: str, head: int) -> None:
        """Put a tree that begins with the message `head` below another of its topic, if any."""
        topic, lists = self.messages[head].topic, self.messages[head].lists
        last = max((self._find_last(root, head, name) for name in lists), default=None)
        if last:
            place = self._places[self.roots[last[1]], topic]
            self._places[root, topic] = place
            self.forest.link(root, place)
            self.joined.add(root)

    def _find_last(self, root: str, head: int, list_name: str) -> tuple[float, int] | tuple[()]:
        """Return the last message of other trees that was sent and had arrived before the head."""
        m = self.messages[head]
        dates = self._sent[list_name, m.topic]
        for place in range(bisect_left(dates, (m.sent_at, head)) - 1, -1, -1):
            at, number = dates[place]
            if at < m.sent_at - SPAN:
                break
            if number < head and self.forest.find_root(self.roots[number]) != root:
                return at, number
        return ()
