"""Score the segments of bodies against lines labelled by hand.

    python -m benchmarks.segments ARCHIVES

ARCHIVES is the folder of the lists linux-man-full, pgsql-todo, twisted-python and pgsql-announce.
The tables have accuracy, and precision, recall and F1 of each kind, by list and half: first for the
rules alone, then with endings learnt from the messages.
"""

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

from mail_assets.mail.body.endings import EndedMail, learn_endings
from mail_assets.mail.body.lines import Segment
from mail_assets.mail.body.segments import ending_of, mark_ending, segment_body
from mail_assets.mail.body.signatures import name_words
from mail_assets.mail.message.message import Message
from mail_assets_tests.mail.body.labelled_lines import KINDS, Score, read_labels, score_all

Cut = Callable[[Message], list[Segment]]


def cut_by_rules(messages: Sequence[Message]) -> Cut:
    """Return a function that segments a message by rules alone."""
    return lambda m: segment_body(m.body_text, m.from_name, m.from_email, answers=m.answers)


def cut_by_endings(messages: Sequence[Message]) -> Cut:
    """Return a function that segments a message, with endings learnt from all messages."""
    by_rules = cut_by_rules(messages)

    def author_of(m: Message) -> str:
        return m.from_email or m.from_name

    learnt = learn_endings(
        EndedMail(
            author_of(m),
            m.subject_base,
            ending_of(m.body_text, by_rules(m)),
            m.sent_at.toordinal(),
        )
        for m in messages
    )

    def cut(m: Message) -> list[Segment]:
        parts = by_rules(m)
        match = learnt.match(author_of(m), ending_of(m.body_text, parts))
        return mark_ending(m.body_text, parts, match, name_words(m.from_name, m.from_email))

    return cut


def main() -> None:
    """Score, and print tables in Markdown."""
    parser = argparse.ArgumentParser(description="Score segments against labelled lines.")
    parser.add_argument("archives", type=Path)
    arguments = parser.parse_args()
    for title, segmenter in (("rules alone", cut_by_rules), ("learnt", cut_by_endings)):
        scores = score_all(arguments.archives, segmenter, read_labels())
        print(f"\n{title}\n\n| | lines | accuracy | {' | '.join(KINDS)} | signature or footer |")
        print("|---" * (len(KINDS) + 4) + "|")
        for half, name in ((False, "fitted"), (True, "held out")):
            for list_name in sorted({each for each, _ in scores}):
                if (list_name, half) in scores:
                    print_row(f"{list_name}, {name}", scores[list_name, half])
            whole = Score()
            for (_, each), score in scores.items():
                if each == half:
                    whole.pairs += score.pairs
            print_row(f"all, {name}", whole)


def print_row(name: str, score: Score) -> None:
    """Print a row with precision/recall/F1 of each kind."""
    cells = [
        "{:.2f}/{:.2f}/{:.3f}".format(*score.f1(*kinds))
        for kinds in [*((kind,) for kind in KINDS), ("signature", "footer")]
    ]
    print(f"| {name} | {score.lines} | {score.accuracy:.3f} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
