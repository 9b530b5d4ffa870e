"""Build the thread trees of a corpus from Message-ID, In-Reply-To and References (RFC 5322).

A thread is a tree of messages and ghosts. A ghost is an id that messages name but that no archive
has. The result depends only on the set of messages, not on their order of arrival.

Linking by reference. The parent of a message is its latest reference that is not already below it.
Only a message's own fields place an archived message. The references before the parent count only
while the parent is a ghost, up to the first archived ancestor, which has fields of its own.

The messages below a ghost place it: their references claim a parent for it. A claim moves the
message that makes it, together with its answers. Other messages below the ghost move only if more
messages make the same claim than would be moved, or if just one would be moved. So neither one mail
nor two can tie threads of several messages together. Messages that name the same ghost as their
parent always share a thread.

Successive ghosts. A mail may name a thousand ids that nobody sent. So a ghost whose only child is a
ghost is left out, as an empty container in JWZ's algorithm: one ghost stands for them all. The
placeholder of a forgotten message always stays.

Linking by subject. Some threads begin with an answer to a missing message. Such a thread joins the
conversation of the last earlier message, within `SPAN`, that shares its topic and a list. It is
placed below the first message of that topic. Later mail never changes this place, so nobody can tie
two existing threads together. public-inbox and JWZ (https://www.jwz.org/doc/threading.html) join by
subject too.

The id of a thread is the smallest id in it. It changes when a late message joins two threads, and
when the message with that id vanishes from the archives. Aliases keep links to former ids alive:

* An id that is in a thread leads to that thread, and so does a ghost that is left out there.
* Another id that messages name leads to the thread of the message with the smallest id among them.
  While messages are only added, the set of messages alone decides where ids lead.
* An id that has vanished leads to its former thread while a message of it is left. If the thread
  fell apart, the id leads to the part with the message that came first in the thread.
* Once the last message of that thread is gone, the id leads nowhere.

Everything is iterative and linear: real chains are 100 deep, forged ones deeper.
"""

import math
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import NamedTuple

from mail_assets.mail.message.ids import is_placeholder


class ThreadMessage(NamedTuple):
    """The fields of a message that threading needs. Ids have no angle brackets."""

    id: str
    references: tuple[str, ...]  # oldest first
    in_reply_to: tuple[str, ...]
    sent_at: float  # seconds since 1970, UTC
    arrived_at: float = 0.0  # seconds since 1970, UTC
    tie: str = ""  # order of copies that arrived in the same second
    lists: tuple[str, ...] = ()
    topic: str = ""  # joins answers whose parent was not found; "" joins nothing
    is_answer: bool = False  # its subject says so, or it quotes
    known_at: float | None = None  # arrived_at, or sent_at if only the first load is known
    text: int = 0  # number of its text among the different texts under this id

    @property
    def order(self) -> tuple[float, float, str]:
        """Sort key of the message among all messages; earlier arrivals come first."""
        known_at = self.sent_at if self.known_at is None else self.known_at
        return known_at, self.sent_at, self.id


def choose_copies(messages: Iterable[ThreadMessage]) -> dict[str, ThreadMessage]:
    """Return one copy of each message by id: the copy that arrived first.

    Anybody may send other mail under the same id, with any date and references. The rule is the one
    of `first_copy` in sql/schema.sql; copies with equal ties are compared by all their values. The
    chosen copy gets the lists of all copies with the same text.
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

    An In-Reply-To with exactly one id names the direct parent, as in notmuch. With several ids the
    first one counts, and only if there are no references. If References contains the parent, the
    ids before it are its ancestors. The ids after it are not: Proton adds its own ids there, and
    some programs write the newest id first.
    """
    chain = [x for x in dict.fromkeys(m.references) if x != m.id]
    direct = [x for x in m.in_reply_to if x != m.id]
    if direct and (len(direct) == 1 or not chain):
        if direct[0] not in chain:
            return [*chain, direct[0]], []
        end = chain.index(direct[0]) + 1
        return chain[:end], chain[end:]
    return chain, []


#: Longest time between an answer without a found parent and the last message of its topic, in
#: seconds: 60 days. Tested on answers with a known parent: 97 of 100 find it, as with 180 days.
SPAN = 60 * 86_400.0


class Links(NamedTuple):
    """The direct parent of each id, ghosts included, and the roots that were joined by subject."""

    parents: dict[str, str | None]
    joined: set[str]


class Forest:
    """Trees of ids, built link by link; a link is never replaced and never makes a cycle.

    A disjoint set keeps the root of each id. Placing a root x below y makes a cycle exactly if x is
    the root of y. Path halving keeps this near-linear for any corpus.
    """

    def __init__(self) -> None:
        self.parents: dict[str, str | None] = {}
        self._above: dict[str, str] = {}

    def find_root(self, x: str) -> str:
        """Return the root of an id; an unknown id is its own root."""
        above = self._above
        up = above.setdefault(x, x)
        while up != x:
            above[x] = up = above[up]
            x, up = up, above[up]
        return x

    def link(self, x: str, parent: str) -> bool:
        """Place a root below another id; return False if that would make a cycle."""
        root = self.find_root(parent)
        if root == x:
            return False
        self.parents[x] = parent
        self.parents.setdefault(parent, None)
        self._above[x] = root
        return True


def link_messages(messages: Sequence[ThreadMessage]) -> Links:
    """Return the parents of messages.

    `messages` has one message per id, sorted by `ThreadMessage.order`: earlier ones take
    precedence.
    """
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

    Return two maps by message id: its ancestors up to that parent, and the first id named after the
    parent.
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
    """Places ghosts below the ids that messages name as their parents.

    A top is a message whose parent is a ghost. `sizes` has the number of messages of a top with its
    answers, and of a ghost's tree. `waiting` has the tops whose claim is not confirmed yet;
    `carried` counts the messages that these tops would move along. `spent` has the messages that
    have already moved another message.
    """

    forest: Forest
    archived: set[str]
    sizes: Counter[str] = field(default_factory=Counter)
    carried: Counter[_Claim] = field(default_factory=Counter)
    waiting: defaultdict[_Claim, list[str]] = field(default_factory=lambda: defaultdict(list))
    spent: set[str] = field(default_factory=set)

    def place(self, messages: Sequence[ThreadMessage], claims: dict[str, list[str]]) -> None:
        """Place ghosts by the claims of the messages below them, in the order of `messages`."""
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
        """Apply the claims of a top upwards, then those of the tops that they confirm."""
        climbing = [top]
        for who in climbing:  # grows during the loop
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
        """Return whether a claim has more claimants than it moves other messages.

        One claimant is enough to move one message, but each mail may do so only once.
        """
        moved = self.sizes[claim.ghost] - self.carried[claim] - self.sizes[who]
        if moved == 1 and claim not in self.waiting and who not in self.spent:
            self.spent.add(who)
            return True
        return moved <= len(self.waiting.get(claim, ()))

    def adopt(self, strays: dict[str, str]) -> None:
        """Place each ghost with one message by the first mail that names it after its parent.

        The ghost goes below that parent. `strays` maps the id of a mail to the id that it names
        after its parent.
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
    """Join trees that begin with an answer to other trees of their topic; return their roots."""
    roots = [forest.find_root(m.id) for m in messages]
    heads: dict[str, int] = {}
    for number, (m, root) in enumerate(zip(messages, roots, strict=True)):
        if root not in heads and _is_top(forest, m.id, archived):
            heads[root] = number
    answers = {root: n for root, n in heads.items() if messages[n].is_answer and messages[n].topic}
    topics = _Topics(forest, messages, roots, {messages[n].topic for n in answers.values()})
    for root, number in answers.items():  # in the order of their first messages
        topics.join(root, number)
    return topics.joined


def _is_top(forest: Forest, x: str, archived: set[str]) -> bool:
    above = forest.parents[x]
    while above is not None and above not in archived:
        above = forest.parents[above]
    return above is None


class _Topics:
    """The messages of some topics by list and date; numbers are positions in `messages`."""

    def __init__(
        self,
        forest: Forest,
        messages: Sequence[ThreadMessage],
        roots: Sequence[str],
        wanted: set[str],
    ) -> None:
        self.forest, self.messages, self.roots = forest, messages, roots
        self.joined: set[str] = set()
        # (root of a tree, topic) -> the message below which trees of the topic are placed
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
        """Place the tree that begins with message `head` below another tree of its topic."""
        topic, lists = self.messages[head].topic, self.messages[head].lists
        last = max((self._find_last(root, head, name) for name in lists), default=None)
        if last:
            place = self._places[self.roots[last[1]], topic]
            self._places[root, topic] = place
            self.forest.link(root, place)
            self.joined.add(root)

    def _find_last(self, root: str, head: int, list_name: str) -> tuple[float, int] | tuple[()]:
        """Return (date, number) of the last message before `head` that is in another tree.

        It was sent and arrived before `head`, and has its list and topic.
        """
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
    position: int  # in the thread, in pre-order, from 0
    is_ghost: bool
    by_subject: bool  # the link to parent_id was made by subject
    # ghosts that were left out between the parent and this node; only known while threads are built
    left_out: list[str] = field(default_factory=list, compare=False)


def build_trees(messages: Iterable[ThreadMessage]) -> list[ThreadNode]:
    """Thread a whole corpus; nodes come in (thread, position) order, oldest thread first.

    If several messages have one id, `choose_copies` picks the one that counts.
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
            nodes += _thread(root, children, ages, archived, joined)
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
    # a ghost is as old as the oldest message below it, or infinitely old if there is none
    ages: dict[str, float] = {}
    for x in reversed(order):
        message = archived.get(x)
        if message is not None:
            ages[x] = message.sent_at
        else:
            ages[x] = min((ages[c] for c in children.get(x, ())), default=math.inf)
    return ages


class _Place(NamedTuple):
    """The place of an id in its thread: its parent, nearest archived ancestor, root and depth."""

    above: str | None
    near: str | None
    root_id: str | None
    depth: int
    by_subject: bool
    left_out: list[str]  # ghosts between the parent and the id


def _thread(
    root: str,
    children: dict[str, list[str]],
    ages: dict[str, float],
    archived: dict[str, ThreadMessage],
    joined: set[str],
) -> list[ThreadNode]:
    nodes: list[ThreadNode] = []
    top = _Place(None, None, None, 0, False, [])
    stack: list[tuple[str, _Place]] = [(root, top)]
    while stack:
        x, place = stack.pop()
        ghost, by_subject = x not in archived, place.by_subject or x in joined
        # without ghosts that have no archived messages below them
        below = [child for child in children.get(x, ()) if ages[child] < math.inf]
        if ghost and len(below) == 1 and below[0] not in archived and not is_placeholder(x):
            place.left_out.append(x)
            stack.append((below[0], place._replace(by_subject=by_subject)))
            continue
        above, root_id = place.above, place.root_id or x
        nodes.append(
            ThreadNode(
                *(x, "", place.near, above, root_id, place.depth, len(nodes), ghost, by_subject),
                place.left_out,
            )
        )
        near, depth = (place.near, place.depth) if ghost else (x, place.depth + 1)
        for child in reversed(below):
            stack.append((child, _Place(x, near, root_id, depth, ghost and by_subject, [])))
    thread_id = min(node.message_id for node in nodes)
    for node in nodes:
        node.thread_id = thread_id
    return nodes


class Alias(NamedTuple):
    """Link from an id outside all threads to the thread of an archived message."""

    message_id: str
    named: bool  # a message of that thread names the id; else the id was once in a thread


def find_aliases(
    messages: Iterable[ThreadMessage],
    nodes: Sequence[ThreadNode],
    old_nodes: Sequence[ThreadNode],
    old_aliases: Mapping[str, Alias],
) -> dict[str, Alias]:
    """Return the aliases of the threads `nodes`, which were built from `messages`.

    `old_nodes`, in (thread, position) order, and `old_aliases` are what these threads replace.
    """
    in_threads = {node.message_id: node.thread_id for node in nodes}
    left_out = {x: node.thread_id for node in nodes for x in node.left_out}
    found: dict[str, Alias] = {}
    for m in choose_copies(messages).values():
        thread_id = in_threads[m.id]
        for x in chain(*named_ancestors(m)):
            leads = x not in in_threads and left_out.get(x, thread_id) == thread_id
            if leads and (x not in found or m.id < found[x].message_id):
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
