"""Table of the query language, which every surface shows.

The search form of the web pages, the search tool of assistants and the help of `search` are built
from it. A test checks that docs/search.md has the same table, and that every field of fields.py is
in it.
"""

import textwrap
from typing import NamedTuple


class Form(NamedTuple):
    """One form of the language: examples, their meaning, and a short meaning.

    Only the documentation shows `more`, which is Markdown. The short description leaves out forms
    without a `short` meaning.
    """

    typed: tuple[str, ...]
    meaning: str
    short: str = ""
    more: str = ""


FORMS = (
    Form(("why do jobs run twice",), "a question: the best messages first; hits may lack words"),
    Form(
        ('"lock timeout"',),
        "a phrase that every hit contains",
        "phrase",
        "if any message has it",
    ),
    Form(
        ("leas*", "9.6*"),
        "every hit has a word or name with this beginning",
        "beginnings",
        "at least three characters",
    ),
    Form(
        ("-windows", "NOT windows"),
        "excluded, up to the next space",
        "absent",
        'also `-7.5.0`, `-/usr`, `-"two words"`, `-leas*`',
    ),
    Form(("btree AND gist",), "both are required", "both", 'like `"btree" "gist"`'),
    Form(
        ("btree OR gist",),
        "either of two words, phrases or fields",
        "either",
        "`from:tom OR from:ingrid`",
    ),
    Form(("( )", "-( )"), "a group", "groups"),
    Form(("pg_class", "heap/heapam.c", "40P01"), "names, whole or by their last part"),
    Form(
        ("C++", "C#", ".NET"),
        "names with signs",
        more="`C++` finds C++17",
    ),
    Form(
        ("3f9c2ab81d04",),
        "a commit id: finds mail that names it, with more or fewer digits too",
        more="7 to 40 digits",
    ),
    Form(
        ("from:ann", 'to:"Lane, Tom"'),
        "a part of a name; of an address too, if addresses are shown",
        "name or address",
        "quoted words in any order",
    ),
    Form(
        ("subject:wal",),
        "a part of the subject",
        "part of it",
        "with any signs: `subject:[PATCH v2]`",
    ),
    Form(
        ("file:fix.patch",),
        "a part of the name of an attachment, or of a file changed by the commit of the mail",
        "attached, or changed by its commit",
    ),
    Form(("list:NAME", "month:2024-05"), "a list, or a month of the archives", "of the archives"),
    Form(
        ("after:2024-05-17", "before:2y"),
        "a day, month or year, or an age",
        "ago: d, w, m, y",
        "`10d`, `2w`, `3m`, `2y`; `after` includes the day",
    ),
    Form(
        ("date:2023..2024-06",),
        "a range of days, months or years",
        "range",
        "one end may be missing; `date:2024-05` is one month",
    ),
    Form(
        ("has:patch", "has:attachment"),
        "messages with a patch, or with an attachment",
        "it has one",
        "also `kind:`",
    ),
    Form(("is:first", "is:reply"), "messages that begin a thread, or are replies", "in its thread"),
    Form(
        ("is:applied", "is:open"),
        "patches that were applied, or are undecided",
        "patches",
        "open: no version is applied, rejected, withdrawn or superseded",
    ),
    Form(
        ("version:latest",),
        "only the applied version of each patch, else the newest",
        "of each patch",
    ),
    Form(
        ("commit:SHA",),
        "the mail of a commit: patch, versions, discussions, reports; seven digits are enough",
        "its mail",
    ),
    Form(
        ("thread:ID", "id:ID"),
        "the thread of a message, or the message; an ID alone works too",
        "an ID alone works too",
    ),
    Form(
        ("-from:ann", "-has:patch"),
        "a dash before any field: the opposite",
        "a dash before any field: the opposite",
    ),
    Form(
        ("from:(ann OR bob)", "subject:(a b)"),
        "the field applies to each word in parentheses",
        "a field for each",
    ),
    Form(
        ("sort:newest", "sort:oldest"),
        "by date; every hit has all words",
        "by date",
        "`sort:date` is the same as `sort:newest`",
    ),
    Form(
        ("near:ID",),
        "adds the subject of this thread to the question, and leaves the thread out",
        "asked from within its thread",
    ),
    Form(
        ("mode:fulltext", "mode:semantic", "mode:hybrid"),
        "by words, by meaning, or by both",
        "words, meaning, both",
    ),
    Form(
        ("group:message", "limit:20", "offset:20", "score:0.4"),
        "single messages instead of threads; number of rows; rows to skip; least score",
        "how much is shown",
    ),
)


def describe_shortly(width: int) -> str:
    """Return the forms with their short meanings, wrapped to lines of `width`; no form is split."""
    said = [f"{', '.join(one.typed)} ({one.short})" for one in FORMS if one.short]
    whole = "; ".join(one.replace(" ", "\xa0") for one in said)
    lines = textwrap.wrap(whole, width, break_long_words=False, break_on_hyphens=False)
    return "\n".join(lines).replace("\xa0", " ")


def describe_in_markdown() -> str:
    """Return the forms as the table of docs/search.md."""
    rows = ["| you type | it means |", "|---|---|"]
    for one in FORMS:
        typed = ", ".join(f"`{form}`" for form in one.typed)
        rows.append(f"| {typed} | {one.meaning}{f'; {one.more}' if one.more else ''} |")
    return "\n".join(rows)
