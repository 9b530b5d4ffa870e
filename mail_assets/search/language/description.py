"""The query language described, in one table that each surface shows.

The search form of pages, the search tool of assistants and the help of `search` are made of it. A
test compares the table of docs/search.md, and that every field of fields.py is here.
"""

import textwrap
from typing import NamedTuple


class Form(NamedTuple):
    """Something that can be typed: examples, their meaning, and the same in a few words.

    `more` is for the documentation alone, in Markdown. A form without few words is not in the
    short description.
    """

    typed: tuple[str, ...]
    meaning: str
    short: str = ""
    more: str = ""


FORMS = (
    Form(("why do jobs run twice",), "a question: best messages first; any word may be missing"),
    Form(
        ('"lock timeout"',),
        "a phrase that every hit holds",
        "phrase",
        "where any message has it",
    ),
    Form(
        ("leas*", "9.6*"),
        "every hit has a word or name that begins so",
        "beginnings",
        "three characters or more",
    ),
    Form(
        ("-windows", "NOT windows"),
        "must be absent, whatever follows the dash",
        "absent",
        'also `-7.5.0`, `-/usr`, `-"two words"`, `-leas*`',
    ),
    Form(("btree AND gist",), "both must be there", "both", 'as in `"btree" "gist"`'),
    Form(
        ("btree OR gist",),
        "either, of words, phrases and fields",
        "either",
        "`from:tom OR from:ingrid`",
    ),
    Form(("( )", "-( )"), "several together", "groups"),
    Form(
        ("pg_class", "heap/heapam.c", "40P01"), "names, as they are written and by their last part"
    ),
    Form(
        ("C++", "C#", ".NET"),
        "these names, not their letters",
        more="`C++` finds C++17, `-C#` leaves out C# alone",
    ),
    Form(
        ("3f9c2ab81d04",),
        "the id of a commit: mail that names it with more or fewer digits is found too",
        more="7 to 40 digits",
    ),
    Form(
        ("from:ann", 'to:"Lane, Tom"'),
        "a part of a name, or of an address where addresses are shown",
        "name or address",
        "the words of a value in quotes in any order",
    ),
    Form(
        ("subject:wal",),
        "a part of the subject",
        "part of it",
        "any signs: `subject:[PATCH v2]`, `subject:c++`",
    ),
    Form(
        ("file:fix.patch",),
        "a part of the name of an attachment, or of a file that its commit changes",
        "attached, or changed by its commit",
        "the mail that led to the commit: `file:lib/private.h`",
    ),
    Form(("list:NAME", "month:2024-05"), "a list, or a month of its archives", "of the archives"),
    Form(
        ("after:2024-05-17", "before:2y"),
        "a day, month or year, or how long ago",
        "ago: d, w, m, y",
        "`10d`, `2w`, `3m`, `2y`; `after` includes the day, `before` does not",
    ),
    Form(
        ("date:2023..2024-06",),
        "a range of days, months or years",
        "range",
        "one end may be left out; `date:2024-05` is one month",
    ),
    Form(
        ("has:patch", "has:attachment"),
        "messages with a patch, or with an attachment",
        "it has one",
        "`kind:` is another word for `has:` and `is:`",
    ),
    Form(("is:first", "is:reply"), "messages that begin a thread, or reply", "in its thread"),
    Form(
        ("is:applied", "is:open"),
        "patches that were applied, or that nobody has decided on",
        "patches",
        "open: not applied, refused, withdrawn or superseded, in no version",
    ),
    Form(
        ("version:latest",),
        "of each patch the version that was applied, else the newest",
        "of each patch",
        "of each cover letter too",
    ),
    Form(
        ("commit:SHA",),
        "the mail of a commit; seven digits are enough",
        "its mail",
        "the patch, its other versions, discussions, reports",
    ),
    Form(
        ("thread:ID", "id:ID"),
        "the thread of a message, or the message; an ID alone works too",
        "an ID alone works too",
    ),
    Form(
        ("-from:ann", "-has:patch"),
        "any field with a dash: the opposite",
        "a dash before any field: the opposite",
    ),
    Form(
        ("from:(ann OR bob)", "subject:(a b)"),
        "a field for each word in the parentheses",
        "a field for each",
    ),
    Form(
        ("sort:newest", "sort:oldest"),
        "by date; only messages with every word",
        "by date",
        "`sort:date` is `sort:newest`",
    ),
    Form(
        ("near:ID",),
        "asked from within a thread: its subject joins the question, and it is left out",
        "asked from within its thread",
    ),
    Form(
        ("mode:fulltext", "mode:semantic", "mode:hybrid"),
        "by words, by meaning, or by both",
        "words, meaning, both",
    ),
    Form(
        ("group:message", "limit:20", "offset:20", "score:0.4"),
        "single messages; how many rows, and from which; from which score on",
        "how much is shown",
    ),
)


def describe_shortly(width: int) -> str:
    """Return the forms with their meaning in a few words, in lines of a width; none is cut."""
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
