"""The labelled set: kinds of the lines of real messages, labelled by a person.

labelled/README.md describes its selection and its labels. It contains hashes and labels but no
mail, so it needs the archives.
"""

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from functools import cache
from pathlib import Path

from mail_assets.mail.archive.mbox import split_archive
from mail_assets.mail.body.lines import Segment
from mail_assets.mail.message.message import Message
from mail_assets.mail.message.parse import UnreadableMessageError, parse_message

LINES = Path(__file__).parent / "labelled" / "lines.jsonl"
KINDS = ("text", "quote", "attribution", "signature", "footer", "patch")
DIALECTS = {"twisted-python": "pipermail", "pgsql-announce": "pg"}

_BY_LETTER = {kind[0]: kind for kind in KINDS}
_HASH = 8  # hex digits of a line's SHA-256


@dataclass(frozen=True)
class LabelledMessage:
    """A labelled message: digest, list, month, and (hash, kind) of each visible line."""

    list_name: str
    month: str
    digest: str
    lines: tuple[tuple[str, str], ...]

    @property
    def held_out(self) -> bool:
        """True for the half to which rules must not be fitted."""
        return int(self.digest[0], 16) % 2 == 1


@dataclass
class Score:
    """Counts of lines by (label, kind found)."""

    pairs: Counter[tuple[str, str]] = field(default_factory=Counter)

    @property
    def lines(self) -> int:
        return sum(self.pairs.values())

    @property
    def accuracy(self) -> float:
        return sum(n for (label, found), n in self.pairs.items() if label == found) / self.lines

    def f1(self, *kinds: str) -> tuple[float, float, float]:
        """Return precision, recall and F1 of kinds, merged into one; 1 if there is no line."""
        right = sum(n for (a, b), n in self.pairs.items() if a in kinds and b in kinds)
        labelled = sum(n for (a, _), n in self.pairs.items() if a in kinds)
        found = sum(n for (_, b), n in self.pairs.items() if b in kinds)
        precision = right / found if found else 1.0
        recall = right / labelled if labelled else 1.0
        both = precision + recall
        return precision, recall, 2 * precision * recall / both if both else 0.0


@cache
def read_labels() -> tuple[LabelledMessage, ...]:
    rows = [json.loads(row) for row in LINES.read_text(encoding="utf-8").splitlines()]
    return tuple(
        LabelledMessage(
            row["list"],
            row["month"],
            row["message"],
            tuple((each[:_HASH], _BY_LETTER[each[_HASH]]) for each in row["lines"].split()),
        )
        for row in rows
    )


def read_month(archives: Path, list_name: str, month: str) -> Iterator[Message]:
    dialect = DIALECTS.get(list_name, "plain")
    (path,) = (archives / list_name).glob(f"*.{month.replace('-', '')}.*")
    for raw in split_archive(path, dialect):
        try:
            yield parse_message(raw, month=month, dialect=dialect)
        except UnreadableMessageError:
            continue


def group_by_month(
    labels: Iterable[LabelledMessage],
) -> dict[tuple[str, str], dict[str, LabelledMessage]]:
    months: defaultdict[tuple[str, str], dict[str, LabelledMessage]] = defaultdict(dict)
    for one in labels:
        months[one.list_name, one.month][one.digest] = one
    return months


def digest_of(message: Message) -> str:
    return hashlib.sha256(message.message_id.encode()).hexdigest()


def count_pairs(
    body: str, segments: Iterable[Segment], labelled: LabelledMessage
) -> Counter[tuple[str, str]]:
    """Compare segments with labels: (label, found) -> lines.

    Lines that are not in the set are left out.
    """
    found = [
        (hashlib.sha256(line.strip().encode()).hexdigest()[:_HASH], part.kind)
        for part in segments
        for line in body[part.start : part.end].split("\n")
        if line.strip()
    ]
    mine, theirs = [each for each, _ in labelled.lines], [each for each, _ in found]
    pairs: Counter[tuple[str, str]] = Counter()
    for a, b, size in SequenceMatcher(None, mine, theirs, autojunk=False).get_matching_blocks():
        for i in range(size):
            pairs[labelled.lines[a + i][1], found[b + i][1]] += 1
    return pairs


def score_all(
    archives: Path,
    segmenter: Callable[[list[Message]], Callable[[Message], Iterable[Segment]]],
    labels: Iterable[LabelledMessage],
) -> dict[tuple[str, bool], Score]:
    """Score a segmenter on labelled messages, for each list and half.

    The segmenter gets the messages of a month to learn from, and returns a function that cuts one.
    """
    scores: defaultdict[tuple[str, bool], Score] = defaultdict(Score)
    for (list_name, month), wanted in group_by_month(labels).items():
        messages = list(read_month(archives, list_name, month))
        cut = segmenter(messages)
        left = dict(wanted)
        for message in messages:
            labelled = left.pop(digest_of(message), None)
            if labelled is not None:
                scores[list_name, labelled.held_out].pairs += count_pairs(
                    message.body_text, cut(message), labelled
                )
    return dict(scores)
