"""Write a corpus: monthly archives of its lists, and lists.toml."""

from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

from benchmarks.corpus.curves import Curves
from benchmarks.corpus.layout import CorpusMonth, plan_months
from benchmarks.corpus.source import SourceList
from benchmarks.corpus.transplant import Transplant, Transplanted
from benchmarks.corpus.vocabulary import Renaming, Vocabulary, read_vocabulary
from mail_assets.mail.archive.compression import create_archive
from mail_assets.sources.message_source import format_message


class Corpus:
    """The messages of a corpus, month after month."""

    def __init__(self, lists: Sequence[SourceList], density: int) -> None:
        self.vocabulary = read_vocabulary(
            message for one in lists for month in one.months.values() for message in month
        )
        self._lists, self._density = lists, density

    def months(self, messages: int) -> Iterator[tuple[CorpusMonth, Iterator[Transplanted]]]:
        """Yield the months with their messages, which must be read before the next month."""
        epochs: dict[int, Transplant] = {}
        left = messages
        for month in plan_months(self._lists, self._density):
            if month.epochs.start not in epochs:
                epochs = {one: make_transplant(self.vocabulary, one) for one in month.epochs}
            written = (
                epochs[epoch].write(message, month.years)
                for message in month.source.months[month.source_month]
                for epoch in month.epochs
            )
            some = [one for one, _ in zip(written, range(left), strict=False)]
            left -= len(some)
            yield month, iter(some)
            if not left:
                return


def make_transplant(vocabulary: Vocabulary, epoch: int) -> Transplant:
    """Return what writes the messages of an epoch."""
    return Transplant(Renaming(vocabulary, epoch), epoch)


def write_corpus(corpus: Corpus, out: Path, messages: int, suffix: str = "") -> Curves:
    """Write a corpus of so many messages into a new folder; `suffix` is "" or ".gz".

    Raises:
        FileExistsError: the folder holds a corpus.
    """
    curves = Curves()
    out.mkdir(parents=True, exist_ok=True)
    for month, written in corpus.months(messages):
        folder = out / month.list_name
        folder.mkdir(exist_ok=True)
        name = f"{month.list_name}.{month.month.replace('-', '')}{suffix}"
        with create_archive(folder / name, suffix) as file:
            for message in written:
                file.write(format_message(message.raw))
                curves.add((month.list_name, month.month), message)
    curves.finish()
    (out / "lists.toml").write_text(_lists_toml([*curves.months]))
    return curves


def _lists_toml(months: Sequence[tuple[str, str]]) -> str:
    lists = dict.fromkeys(sorted(name for name, _ in months))
    first, last = min(month for _, month in months), max(month for _, month in months)
    lines = [f'first_month = "{first}"', f'last_month = "{last}"']
    return "\n".join(
        chain(
            lines,
            *(
                (
                    "",
                    f"[{name}]",
                    f'source = "{name}"',
                    'dialect = "mboxrd"',
                    'language = "english"',
                    f'start = "{min(month for one, month in months if one == name)}"',
                )
                for name in lists
            ),
            ("",),
        )
    )
