"""Find the ids that lead to a thread without being in one, so that a link to a thread never rots.

A thread's id is the smallest of its ids, so it changes when a late message ties two threads
together, and when its own message vanishes from the archives.

What is guaranteed of an id that ever was in a thread or was named by a message:

* One that is in a thread leads there, whatever it led to before. While messages only come,
  every id goes on being in a thread or being named by a message, so that all ids lead where
  the set of messages alone says, in whatever order and portions it was loaded.
* One that has vanished leads to its former thread for as long as that has a message left. Where
  the thread fell apart, it leads to the part with the message that came first in it. This is
  history: the set of messages no longer says what was together.
* It stops leading anywhere when the last message of that thread is gone.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from mail_assets.mail.threads.links import named_ancestors
from mail_assets.mail.threads.message import ThreadMessage, choose_copies
from mail_assets.mail.threads.tree import ThreadNode


class Alias(NamedTuple):
    """Where an id leads: to the thread of an archived message.

    `named`: a message of that thread names the id; else it was there before.
    """

    message_id: str
    named: bool


def find_aliases(
    messages: Iterable[ThreadMessage],
    nodes: Sequence[ThreadNode],
    old_nodes: Sequence[ThreadNode],
    old_aliases: Mapping[str, Alias],
) -> dict[str, Alias]:
    """Return what leads to threads that were built of `messages` as `nodes`.

    `old_nodes`, in (thread, position) order, and `old_aliases` are what these threads replace.
    """
    in_threads = {node.message_id for node in nodes}
    found: dict[str, Alias] = {}
    for m in choose_copies(messages).values():
        for x in named_ancestors(m):
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
