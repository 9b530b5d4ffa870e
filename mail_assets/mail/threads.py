"""Build the thread trees of a whole corpus from Message-ID, In-Reply-To and References (RFC 5322).

A thread is a tree of messages and ghosts, which are ids that messages name and no archive has. The
result depends on the set of messages alone, not on their order of arrival.

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

A thread's id is the smallest of its ids. It changes when a late message joins two threads, and
when its own message vanishes from the archives. Aliases keep links to former ids alive:

* An id that is in a thread leads there.
* Another id that messages name leads to the thread of that with the smallest id. While messages
  only come, the set of messages alone decides where ids lead.
* An id that has vanished leads to its former thread while that has a message left. If the thread
  fell apart, it leads to the part with the message that came first in it.
* It leads nowhere when the last message of that thread is gone.

Everything is iterative and linear: real chains are 100 deep and forged ones longer.
"""

import math
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import NamedTuple


class ThreadMessage(NamedTuple):
    """The fields of a message that threading needs. Ids have no angle brackets."""

    id: str
    references: tuple[str, ...]  # oldest first
    in_reply_to: tuple[str, ...]
    sent_at: float  # seconds since 1970, UTC
    arrived_at: float = 0.0  # seconds since 1970, UTC
    tie: str = ""  # order of copies that arrived in the same second
    lists: tuple[str, ...] = ()
    topic: str = ""  # what answers without a found parent are joined by; "" joins nothing
    is_answer: bool = False  # by its subject, or because it quotes
    known_at: float | None = None  # arrived_at, or sent_at if only the first load is known
    text: int = 0  # number of its text among those that contest the id

    @property
    def order(self) -> tuple[float, float, str]:
        """Position among all messages: their arrival decides who was there first."""
        known_at = self.sent_at if self.known_at is None else self.known_at
        return known_at, self.sent_at, self.id


def choose_copies(messages: Iterable[ThreadMessage]) -> dict[str, ThreadMessage]:
    """Return one copy of each message, by id: the one that arrived first.

    Anybody may send other mail under the same id, with any date and references. The rule is that of
    `first_copy` in sql/schema.sql; values without a tie are compared as a whole. The copy gets the
    lists of all copies with its text.
    """

    def rank(m: ThreadMessage) -> tuple[object, ...]:
        others = (m.in_reply_to, m.lists, m.topic, m.is_answer, m.order)
        return m.arrived_at, m.tie, m.sent_at, -len(m.references), m.references, *others

    chosen: dict[str, ThreadMessage] = {}
    copies: dict[str, list[ThreadMessage]] = {}
    for m in messages:
        other = chosen.setdefault(m.id, m)
        if other is not m:
            copies.setdefault(m.id, [other]).append(m)
            if rank(m) < rank(other):
                chosen[m.id] = m
    for x, found in copies.items():
        first = chosen[x]
        lists = {name for m in found if m.text == first.text for name in m.lists}
        chosen[x] = first._replace(lists=tuple(sorted(lists)))
    return chosen


def named_ancestors(m: ThreadMessage) -> tuple[list[str], list[str]]:
    """Return the ancestors that a message names, oldest first, and the ids after its parent.

    A sane In-Reply-To (exactly one id) is the direct parent, as in notmuch. Of several ids the
    first counts, and only if there are no references. Where References has the parent, the ids
    before it are its ancestors, as written. Those after it are not: Proton adds ids of its own
    there, and some programs write the newest id first.
    """
    chain = [x for x in dict.fromkeys(m.references) if x != m.id]
    direct = [x for x in m.in_reply_to if x != m.id]
    if direct and (len(direct) == 1 or not chain):
        if direct[0] not in chain:
            return [*chain, direct[0]], []
        end = chain.index(direct[0]) + 1
        return chain[:end], chain[end:]
    return chain, []


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


@dataclass(slots=True)
class ThreadNode:
    """One message of a thread, or a ghost with archived messages below it."""

    message_id: str
    thread_id: str  # the smallest id in the thread, ghosts included
    parent_id: str | None  # nearest archived ancestor
    parent_message_id: str | None  # direct parent, perhaps a ghost
    root_id: str  # topmost ancestor, perhaps a ghost
    depth: int  # number of archived ancestors
    position: int  # in pre-order, from 0
    is_ghost: bool
    by_subject: bool  # parent_id was found by subject


def build_trees(messages: Iterable[ThreadMessage]) -> list[ThreadNode]:
    """Thread the whole corpus; nodes come in (thread, position) order, oldest thread first.

    Of several messages with one id, `choose_copies` decides which counts.
    """
    archived = choose_copies(messages)
    parents, joined = link_messages(sorted(archived.values(), key=lambda m: m.order))
    children: defaultdict[str, list[str]] = defaultdict(list)
    roots: list[str] = []
    for x, parent in parents.items():
        if parent is None:
            roots.append(x)
        else:
            children[parent].append(x)
    ages = _ages(roots, children, archived)
    for siblings in children.values():
        if len(siblings) > 1:
            siblings.sort(key=lambda x: (ages[x], x))
    nodes: list[ThreadNode] = []
    for root in sorted(roots, key=lambda x: (ages[x], x)):
        if ages[root] < math.inf:
            nodes += _thread(root, children, parents, ages, archived, joined)
    return nodes


def _ages(
    roots: list[str], children: dict[str, list[str]], archived: dict[str, ThreadMessage]
) -> dict[str, float]:
    order: list[str] = []
    stack = list(roots)
    while stack:
        x = stack.pop()
        order.append(x)
        if x in children:
            stack.extend(children[x])
    # a ghost is as old as the oldest message below it; infinity without one
    ages: dict[str, float] = {}
    for x in reversed(order):
        message = archived.get(x)
        if message is not None:
            ages[x] = message.sent_at
        else:
            ages[x] = min((ages[c] for c in children.get(x, ())), default=math.inf)
    return ages


def _thread(
    root: str,
    children: dict[str, list[str]],
    parents: dict[str, str | None],
    ages: dict[str, float],
    archived: dict[str, ThreadMessage],
    joined: set[str],
) -> list[ThreadNode]:
    nodes: list[ThreadNode] = []
    stack: list[tuple[str, str | None, int, bool]] = [(root, None, 0, False)]
    while stack:
        x, near, depth, by_subject = stack.pop()
        ghost = x not in archived
        by_subject |= x in joined
        nodes.append(
            ThreadNode(x, "", near, parents[x], root, depth, len(nodes), ghost, by_subject)
        )
        if not ghost:
            near, depth, by_subject = x, depth + 1, False
        for child in reversed(children.get(x, ())):
            if ages[child] < math.inf:  # a ghost without archived messages below is left out
                stack.append((child, near, depth, by_subject))
    thread_id = min(node.message_id for node in nodes)
    for node in nodes:
        node.thread_id = thread_id
    return nodes


class Alias(NamedTuple):
    """An id outside all threads leads to the thread of an archived message."""

    message_id: str
    named: bool  # a message of that thread names the id; else the id was there before


def find_aliases(
    messages: Iterable[ThreadMessage],
    nodes: Sequence[ThreadNode],
    old_nodes: Sequence[ThreadNode],
    old_aliases: Mapping[str, Alias],
) -> dict[str, Alias]:
    """Return the aliases of the threads `nodes`, which were built from `messages`.

    These threads replace `old_nodes`, in (thread, position) order, and `old_aliases`.
    """
    in_threads = {node.message_id for node in nodes}
    found: dict[str, Alias] = {}
    for m in choose_copies(messages).values():
        for x in chain(*named_ancestors(m)):
            if x not in in_threads and (x not in found or m.id < found[x].message_id):
                found[x] = Alias(m.id, True)
    archived = {node.message_id for node in nodes if not node.is_ghost}
    first: dict[str, str] = {}
    for node in old_nodes:
        if node.message_id in archived:
            first.setdefault(node.thread_id, node.message_id)
    thread_of = {node.message_id: node.thread_id for node in old_nodes}
    for x in (*thread_of, *old_aliases):
        if x in in_threads or x in found:
            continue
        member = old_aliases[x].message_id if x in old_aliases else x
        heir = member if member in archived else first.get(thread_of.get(member, ""))
        if heir is not None:
            found[x] = Alias(heir, False)
    return found
