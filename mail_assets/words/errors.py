"""Errors of indexes of words; cheap to import where they are only caught."""


class WordsError(RuntimeError):
    """An index of words refuses or fails: names it, the fault and the remedy."""


class MissingWordsError(WordsError):
    """The index does not exist."""
