"""Leave out what a model thinks before it answers.

Servers that know the model send it apart, or not at all; others send it as the answer's beginning,
between `<think>` and `</think>`, as the models of DeepSeek and Qwen write it.
"""

from collections.abc import Iterable, Iterator

_BEGIN, _END = "<think>", "</think>"


def leave_out_thoughts(texts: Iterable[str]) -> Iterator[str]:
    """Yield the texts of an answer without thoughts before it; of those without end nothing."""
    pieces = iter(texts)
    head = ""
    for text in pieces:
        head += text
        begun = head.lstrip()
        if begun.startswith(_BEGIN):
            _, ended, answer = begun.partition(_END)
            if answer.strip():
                yield answer.lstrip()
                break
            # however long they are, each piece is looked at once
            head = _BEGIN + (_END if ended else begun[len(_BEGIN) :][-len(_END) :])
        elif not _BEGIN.startswith(begun):
            yield head
            break
    else:
        if head and not head.startswith(_BEGIN):
            yield head
    yield from pieces
