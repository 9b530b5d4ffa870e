"""Quote marks, attributions, header blocks, separators, and similar text."""

import pytest

from mail_assets_tests.cases import cases
from mail_assets_tests.mail.kinds import letters

FULL = "as long a line as the mail program of its author would ever send"


@cases(
    "body, expected",
    {
        "quote marks": (">> a\n> > b\nJD> c\n  > d\nme", "qqqqt"),
        "names in any script": ("山田> a\nMü> b\nИП>> c\n김철수>\nme", "qqqqt"),
        "full-width marks": ("＞ 引用\n＞引用\n山田＞ 引用\nme", "qqqt"),
        "names of Supercite": (
            '>>>>> "kh" == Kurt <kh@x.org> writes:\n\n    kh> So?\n    >> he said\nme',
            "atqqt",
        ),
        "a name of Supercite with an address": (
            '"kh" == Kurt <kh at x.org>\n\n    kh> So?\nme',
            "ttqt",
        ),
        "a string in code is no name": (
            '"abc" == p->name &&\n"abc" == q->name\n    abc> x\nme',
            "tttt",
        ),
        "names over sentences": (
            "    Martyn> we should not change this before\n    Martyn> the release.\nme",
            "qqt",
        ),
        "initials behind an indent": (
            "    mal> we should not change this before\n    mal> the release.\nme",
            "qqt",
        ),
        "a name over no sentence": ("Splus> x <- 1\nSplus> x\nMySQL> select 1;\nme", "tttt"),
        "a mark within a line": ("設定>保存\nA＞B\n1> x\nчисло> 5", "tttt"),
        "prompts quote nobody": ("psql> select 1;\nSQL> select 2\n", "ttt"),
        "a > inside a line": ("a->b > c\nif a>b\nx => y", "ttt"),
        "a Python session is no quote": ("see\n>>> import os\n>>> os.sep\n'/'", "tttt"),
        "deep quotes among others": ("> x\n>>> import os\nme", "qqt"),
        ">From escapes new text": ("me\n>From my side\nno", "ttt"),
        ">From among quotes": ("> he\n>From his side\nme", "qqt"),
        "quotes wrapped again": (f"> {FULL}\nrest\n> of it; {FULL}\nthe\n> end\nme", "qqqqqt"),
        "one rest may be an answer": (f"> {FULL}\nrest\n> of it\nme", "qtqt"),
        "a first line without its mark": (
            f"> old\n\nmine\n\nYet {FULL} and\n> would have been read by the others too.",
            "qtttqq",
        ),
        "a first line of code names": (
            "> old\n\nmine\n\nYet in PlanarCell, which is of the Type 2.0, all of the many cells\n"
            "> would have been read by the others too.",
            "qtttqq",
        ),
        "a full line above a command": (
            f"> old\n\nI tried {FULL} as\n> flash info 0\n\nmine",
            "qttqtt",
        ),
        "a full line above an arrow": (
            f"> old\n\nI tried {FULL} a-\n>b as you would have done it in that place.",
            "qttq",
        ),
        "an answer to what goes on": (
            f"> old\n\nI would not do that here.\n> {FULL} as it was before.\nmine",
            "qttqt",
        ),
        "answers to sentences": (f"> {FULL}?\nno\n> and {FULL}?\nyes\n> end", "qtqtq"),
        "answers to short lines": (f"> {FULL}\n> and so on\nno\n> and this\nyes\n> end", "qqtqtq"),
        "bars quote in threes": ("| one\n| two\n| three\nme", "qqqt"),
        "a bar among others": (
            "| one\n| two\n| three\nme\n\n| we would rather not change this before\nme\n\n| x\nme",
            "qqqttqtttt",
        ),
        "two bars do not": ("| one\n| two\nme", "ttt"),
        "bars under an attribution do": ("Xavier wrote:\n| one\n\nme\n| two\nme", "aqttqt"),
        "marks of an archive": ("Jo wrote:\n› a\n›› b\n…[2 more lines elided]…\n› c\nme", "aqqqqt"),
        "marks escaped for HTML": (
            f"Jo &lt;jo@x.org&gt; wrote:\n&gt; {FULL}\n&gt; &gt; so it is then\nme",
            "aqqt",
        ),
        "entities in code": (f"{FULL}:\n&gt;\n&lt;b&gt;\nme", "tttt"),
        "entities in a quote": (f"> {FULL}\n&gt; is what we write in this case\nme", "qtt"),
        "a link between quoted lines": (
            "> See\n>\nhttps://example.org/crane?id=1\n> for it\nme",
            "qqqqt",
        ),
        "a link below a quote": ("> See where?\nhttps://example.org/crane\n\nme", "qttt"),
        "the end of a quote wrapped again": (f"> {FULL} to\nthe others.\n\nme", "qqtt"),
        "a word below a full line": (f"> {FULL} to\nnobody\n\nme", "qttt"),
        "an answer below a full line": (
            f"> {FULL} to\nthe others, but I\nwould not.\n\nTo the others\n> a\nTo me",
            "qttttqt",
        ),
        "a verb wrapped in a quote": (
            f"> On {FULL}, 2026-01-05, Jo Doe <jo@example.org>\nwrote:\n> > so\nme",
            "qqqt",
        ),
        "a rest that is no verb": (f"> {FULL} to Jo Doe\nyes:\n> > so\nme", "qtqt"),
        "psql table": (" a | b\n---+---\n 1 | 2\n 3 | 4\n(2 rows)", "ttttt"),
        "psql table, empty first column": (" a | b\n---+---\n   | x\n   | y\n   | z", "ttttt"),
        "psql table with border": ("+---+\n| a |\n+---+\n| 1 |\n+---+", "ttttt"),
        "EXPLAIN plan": (
            "        QUERY PLAN\n-----------------\n Sort  (cost=1.1..2.2 rows=3 width=4)\n"
            "   ->  Seq Scan on t  (cost=0.0..1.0 rows=3 width=4)\n         Filter: (a > 1)",
            "ttttt",
        ),
    },
)
def test_marks_make_a_quote_without_another_explanation(body: str, expected: str) -> None:
    assert letters(body) == expected


def test_escaped_marks_quote_mail_where_no_field_names_it() -> None:
    body = f"&gt;From: Jo\n&gt; {FULL} and so on\n&gt; &gt; it goes on\n\nme"
    assert letters(body, answers=False) == "qqqtt"


PROSE = "we would rather not change this before the release."


@cases(
    "body, expected",
    {
        "tin": (f"Jo Doe (jo@example.org) wrote:\n: {PROSE}\n\nno\n: and so\nme", "aqttqt"),
        "other signs": (f"jo@example.org writes:\n\n# {PROSE}\n#> old\n#\nme", "atqqqt"),
        "initials in brackets": (f"Jo writes:\n\n[JD] {PROSE}\nme\n[JD] so", "atqtq"),
        "bars within bars": (f"Jo writes:\n|> {PROSE}\n|>|> old\nme", "aqqt"),
        "a smile": (f"Jo writes:\n: {PROSE}\n:-) yes", "aqt"),
        "a signature is marked too": (f"Jo writes:\n: {PROSE}\nme\n-- \n: Ann", "aqtss"),
        "code that is announced": ("Jo wrote:\n# make install\n# reboot\nme", "tttt"),
        "a comment that is announced": (f"By Jo it says:\n# {PROSE}\nme", "ttt"),
        "a drawing among bars": (
            f"Jo writes:\n| {PROSE}\nmine:\n+----+\n| it |\n|    |\n+----+",
            "aqttttt",
        ),
        "an indent below a sentence with by": (
            f"Take manual(7) by adding\na line like this:\n\n   {PROSE}\n   {PROSE}\n\nme",
            "ttttttt",
        ),
        "no attribution": (f"Add this:\n# {PROSE}\nme", "ttt"),
        "what is no attribution": (f"Add by adding this line:\n# {PROSE}\nme", "ttt"),
        "an indent": (f"On 5 Jan 1994, Jo wrote:\n\n   {PROSE}\n   {PROSE}\n\nme", "atqqtt"),
        "an indent again": (
            f"jo@example.org writes:\n\n   {PROSE}\n\nme\n\n   {PROSE}\n   {PROSE}\n\nme",
            "atqtttqqtt",
        ),
        "an indented first line": (f"On 5 Jan 1994, Jo wrote:\n\n   {PROSE}\nno", "tttt"),
        "an own first line": (
            f"On 5 Jan 1994, Jo wrote:\n\n   {PROSE}\n\nme\n\n   {PROSE}\n\nme",
            "atqtttttt",
        ),
        "an indented standard": (f"POSIX.1-2008 wrote:\n\n   {PROSE}\n\nme", "ttttt"),
    },
)
def test_attribution_announces_other_marks(body: str, expected: str) -> None:
    assert letters(body) == expected


WRAPPED = [
    "we would rather not change what all of them have been",
    "using since the release, and what they wrote down for it.",
]
FIELDS = "   From: Jo Roe <jo@example.org>\n   Date: Mon, 5 Jan 1994 10:11:12 +0100\n"


def _mark(mark: str) -> str:
    return "\n".join(mark + line for line in WRAPPED)


@cases(
    "body, expected",
    {
        "colons": (f"Hi.\n\n{_mark(': ')}\n\nno\n: \n: and so\nme", "ttqqttqqt"),
        "colons without a blank": (f":Hello,\n{_mark(':')}\nme", "qqqt"),
        "two colons": (f'{_mark("::")}\n::"so"\nme', "qqqt"),
        "arrows": (f"{_mark('->')}\n-> \nme", "qqqt"),
        "long arrows": (f"Hi\n{_mark('--> ')}\nme", "tqqt"),
        "exclamation marks": (f"He once stated:\n{_mark('! ')}\n!\nme", "tqqqt"),
        "a list of arrows": (f"{WRAPPED[0]}:\n-> so it is,\n-> and so it was\nme", "tttt"),
        "fields of a document": (f":Author: {WRAPPED[0]}\n:param name: as {WRAPPED[1]}\nme", "ttt"),
        "smiles": (f":-) {WRAPPED[0]}\n:-( {WRAPPED[1]}\nme", "ttt"),
        "a signature": (f"me\n-- \n{_mark(': ')}", "tsss"),
        "fields and an indent": (
            f"{FIELDS}\n   old?\n   old\n\nme\n\n   Do they read it?\n\n      code(1)\nme",
            "aatqqtttqtqt",
        ),
        "fields, an indent and code": (
            f"{FIELDS}\n   old?\n\nme:\n\n      code(1)\n\n   code(2)\n",
            "aatq" + "t" * 7,
        ),
        "fields and an indent with tabs": (f"   To: Sam\n{FIELDS}\n   old\n\t so\nme", "aaatqqt"),
        "an indented mail that begins with an attribution": (
            f"{FIELDS}\n   On Mon, Sam wrote:\n   > older\n   old\n\nme",
            "aatqqqtt",
        ),
        "an indent from the second field on": (
            f"X-Loop: dev at example.org\n{FIELDS}\n   old?\n   old\n\nme",
            "aaatqqtt",
        ),
        "a mark in front of fields": (
            "! From: Jo Roe <jo@example.org>\n! To: dev@example.org\n! Subject: Re: cranes\n!\n"
            f"! > old\n! {WRAPPED[0]}.\n\nme",
            "qqqqqqtt",
        ),
        "a mark in front of settings": (
            "# From: cranes\n# To: ships\n# Subject: none\nlift = 1",
            "tttt",
        ),
        "an indented sender alone": ("   From: Jo Roe\n\n   old\nme", "tttt"),
        "AOL": (
            "In a message dated 96-12-20 17:23:29 EST, you write:\n\n"
            f"<< {WRAPPED[0]}\n {WRAPPED[1]}\n \n Jo >>\nme\n<<{PROSE}>>\nme",
            "atqqqqtqt",
        ),
        "AOL without an attribution": (f"<< {PROSE} >>\nme", "qt"),
        "shouts": (f"<<PLEASE {PROSE}>>\nme", "tt"),
        "a document in code": ("cat << EOF\n<< a\nx >>\nme", "tttt"),
    },
)
def test_other_marks_of_answered_mail_need_no_attribution(body: str, expected: str) -> None:
    assert letters(body) == expected


def test_other_marks_of_what_answers_no_mail_are_text() -> None:
    for body in (_mark(": "), f"{FIELDS}\n   old", f"<< {PROSE} >>"):
        assert set(letters(f"Hi.\n\n{body}\nme", answers=False)) == {"t"}


@cases(
    "body, expected",
    {
        "a name and a date": (
            ">>>>> Jo Roe \n>>>>>     on Mon, 5 Jan 2026 10:11:12 +0100 writes:\n\n"
            "    > old\n    >> older\nme",
            "aatqqt",
        ),
        "a date and a name": (
            ">>>>> On 05 Jan 1998 10:11:12 +0100,\n>>>>> Jo Roe (JR) wrote:\n\nJR> old\nme",
            "aatqt",
        ),
        "no initials": ('>>>>> " " == Jo Roe <jo@example.org> writes:\n\n     > old\nme', "atqt"),
        "right above": (">>>>> Jo Roe writes:\n    > old\nme", "aqt"),
        "in a quote": (
            '>>>>> "JR" == Jo Roe <jo@example.org> writes:\n'
            '>>>>> "SP" == Sam Poe <sam@example.org> writes:\n\n   SP> old\nme',
            "qatqt",
        ),
        "five marks": ("> old\n>>>>> Jo Roe, of the people who cite,\n>>>>> said so\nme", "qqqt"),
    },
)
def test_attributions_of_supercite_have_a_line_or_two(body: str, expected: str) -> None:
    assert letters(body) == expected


def test_marks_that_a_robot_explains_are_no_quote() -> None:
    report = ">> src/crane.c:7:5: warning: unused\n     7 | int x;"
    assert letters(f"All warnings (new ones prefixed by >>):\n\n{report}") == "tttt"
    assert letters(f"> All warnings (new ones prefixed by >>):\n> {report}\nme")[1] == "q"


SESSION = ">>> import crane\n>>> crane.lift(3)\n'up'"


@cases("body, expected", {
    "above a quote": (f"Try:\n\n{SESSION}\n\n> old\n\nyes", "ttttttqtt"),
    "below a quote": (f"Jo wrote:\n> old\n\nTry:\n{SESSION}", "aqttttt"),
    "indented": ("> old\nme\n  >>> 1 + 1\n  2\n  >>>", "qtttt"),
    "a last prompt without its blank": ("see\n\n>>> lift()\n>>>\n", "ttttt"),
    "answers a session": (f"> >>> lift()\n> 'no'\nme\n{SESSION}", "qqtttt"),
    "marks without blanks": (f">>>> lift()\n>'no'\nme\n{SESSION}", "qqtttt"),
    "no output": (">>> why?\n\nso\n\n> how?\nthus", "qtttqt"),
    "depth 2 in the body": (">>> why?\nno\n\n>> how?\nthus", "qttqt"),
    "depth 2 with blanks": (">>> why?\nno\n\n> > how?\nthus", "qttqt"),
    "depth 3 with a blank": (">>> why?\nno\n\n> >> how?\nthus", "qttqt"),
    "below an attribution": ("Jo wrote:\n>>> why?\nno\n> so", "aqtq"),
    "below a quoted line": ("> he:\n>>> why?\nno\n> so", "qqtq"),
    "a signature": (f"> old\n\n{SESSION}\n-- \nJo\n>>> Cranes, x.org\n___", "q" + "t" * 4 + "ssss"),
    "a quote below a signature": ("me\n-- \nJo\nSam wrote:\n>>> why?", "tssaq"),
})  # fmt: skip
def test_python_session_among_quotes_is_no_deep_quote(body: str, expected: str) -> None:
    assert letters(body) == expected


@cases(
    "body, expected",
    {
        "a value": ("Jo wrote:\n> old\n\nmine:\n\n> x <- c(1, 2)\n> x\n[1] 1 2\n", "aq" + "t" * 7),
        "a prompt with a letter": ("Hi\nR> x <- 1; dim(x)\nNULL\nR> x\n[1] 1\nR> \nme", "t" * 7),
        "a matrix": ("> m <- diag(2)\n> m\n     [,1] [,2]\n[1,]    1    0\nme", "ttttt"),
        "an error": ('> library("crane")\nError in library("crane") : none\nme', "ttt"),
        "a command over three lines": ("> for (i in 1:2) {\n+   i\n+ }\n> i\n[1] 2", "ttttt"),
        "commands that print nothing": ("> y <- 2\n> (y)\n[1] 2\n> rm(y)\n> q()\nme", "tttttt"),
        "below quoted sentences": ("> You may try this one:\n> x[1]\n[1] 7\nme", "qttt"),
        "below a quoted paragraph": ("> You may try this one:\n>\n> x[1]\n[1] 7\nme", "qqttt"),
        "a quoted session": ("> > x\n> [1] 1\nme", "qqt"),
        "below an attribution": ("Jo wrote:\n> x\n[1] 7", "aqt"),
        "another paragraph": ("> x\n\n> x\n[1] 7", "qttt"),
        "an answer in words": ("> x <- 1\nNo, x is 2.\n", "qtt"),
        "a link": ("> crane\n[1] https://example.org/crane\nme", "qtt"),
    },
)
def test_session_of_r_among_quotes_is_text(body: str, expected: str) -> None:
    assert letters(body) == expected


def test_bars_of_autoconf_are_no_quote() -> None:
    log = '| #define NAME "crane"\n| #define VERSION 1\n| int main () {}\n'
    assert letters(f"It ends so:\n\nconfigure: failed program was:\n{log}") == "t" * 7


@cases("body, expected", {
    "attribution over three lines": (
        "Thanks!\n\nOn Mon, 5 Jan 2026 at 10:11,\nSome Body <a@x>\nwrote:\n\n> all\n> more",
        "ttaaatqq",
    ),
    "German": ("Am 05.01.2026 um 10:11 schrieb X:\n> alt\nneu", "aqt"),
    "French": ("Le lun. 5 janv. 2026 à 10:11, X <x@y> a écrit :\n> vieux\nneuf", "aqt"),
    "French, wrapped": ("Le lun. 5 janv. 2026 à 10:11, X <x@y> a\nécrit\xa0:\n> vieux", "aaq"),
    "Chinese, Gmail": ("X <x@y> 于2026年1月5日周一 10:11写道：\n> 旧\n新", "aqt"),
    "Chinese, Apple": ("在 2026年1月5日，10:11，X <x@y> 写道：\n\n> 旧", "atq"),
    "name first": ("Some Body <a@x> writes:\n> old\nnew", "aqt"),
    "name first, wrapped": ('"Some Body" <a@x.example>\nwrote:\n> old', "aaq"),
    "a star and a date": ("* Some Body <a@x>, 2026-01-05, 10:11:\n> old\nnew", "aqt"),
    "any verb": ("On Mon, Jan 05, 2026 at 01:51 PM, X scrawled:\n> old\nnew", "aqt"),
    "a dash in front, Yahoo": ("--- On Mon, 1/5/26, X <a@x> wrote:\n> old\nnew", "aqt"),
    "Cyrillic, wrapped": ("05.01.2026 в 10:02, X <a@x>\nпишет:\n> старое", "aaq"),
    "no verb": ("05.01.2026, 10:02, X <a@x>:\n> old", "aq"),
    "no date, no verb": ("On page 2 you say:\n> old\nnew", "tqt"),
    "no verb, and not right above a quote": ("At 10:11 nothing:\n\n> old\nnew", "ttqt"),
    "a verb glued to the address": (
        "On Tue, Jan 4, 2011 at 2:06 AM, Jo Doe\n<jo at example.org>wrote:\n\n> old", "aatq",
    ),
    "with dots": ("In article <1@x>, jo@example.org (Jo Doe) writes...\n>old\nnew", "aqt"),
    "with dots below an id": ("Jo Doe wrote in message <1@x>...\n>old\nnew", "aqt"),
    "without the id": ("Jo Doe wrote in message ...\n>old\nnew", "aqt"),
    "a sentence with dots": ("Thus by saying so\nit went...\n> old\nnew", "ttqt"),
    "says, of a Free-Net": ("In a previous article, jo@x (Jo) says:\n\n>old", "atq"),
    "a note below": ("Jo wrote:\n\n[much deleted]\n\n> old\nnew", "atttqt"),
    "a cut below": ("Jo wrote:\n\n<---SNIP a log--->\n\n> old\nnew", "atttqt"),
    "a cut with dots": ("Jo wrote:\n... snip ...\n> old\nnew", "atqt"),
    "a word like a cut": ("Jo wrote:\nsnippets of it:\n> old\nnew", "ttqt"),
    "a prose with by": ("For example, by adding this:\n> old", "tq"),
    "with an id": ("X via list at The Group wrote in\n <1@example.org>:\n |old\n |old\n |old\nnew",
                   "aaqqqt"),
    "not from quoted lines": ("On windows it works\n> A wrote:\n> old\nnew", "tqqt"),
    "nothing quoted": ("On Mon I wrote: nothing is quoted here\nreally", "tt"),
    "prose like it": ("Hi\nOn 3 May Tom wrote a patch for this\nand it works", "ttt"),
    "unmarked quote": ("Top.\n\nAm 05.01.2026 um 10:11 schrieb X:\nunmarked\nmore", "ttaqq"),
    "but marks below": ("Am 05.01.2026 um 10:11 schrieb X:\nunmarked\n> marked\nmine", "ttqt"),
    "but no text above": ("On 5 Jan 2026 X wrote:\nnot a top post\nso all stays", "ttt"),
    "Outlook": ("Top.\n-----Original Message-----\nFrom: A\nSent: x\nTo: y\nSubject: z\n\nold",
                "taaaaaqq"),
    "Outlook without a rule": (
        "Top.\n\nFrom: A <a@x>\nSent: Monday\nTo: B\nSubject: z\n\nold\nold",
        "ttaaaaqqq",
    ),
    "Outlook over marked quotes": ("From: A\nSent: x\nTo: y\n> old\nmine", "aaaqt"),
    "forwarded": ("-----Original Message-----\nFrom: A\nTo: B\n\nforwarded", "aaatt"),
    "git format-patch is text": (
        "here\n\nFrom 0123456789abcdef Mon Sep 17 00:00:00 2001\nFrom: A\nDate: x\n"
        "Subject: [PATCH] y\n\nreason",
        "tttttttt",
    ),
    "wrapped, address obscured": ("Jo <jo at x.example>\nwrote:\n> old", "aaq"),
    "usenet": ("Jo via some-list wrote in\n <1@x.example>:\n |a\n |b\n |c", "aaqqq"),
    "any verb over a quote": ("On 5 Jan 2026, Jo scribbled:\n> old\nnew", "aqt"),
    "no verb at all": ("* Jo <jo@x.example> [260105 10:11]:\n> old", "aq"),
    "a verb inside the quote is none above it": (
        "On windows\nall is well\n> In 2019, I wrote it\n> twice",
        "ttqq",
    ),
    "what is forwarded is new to the list": (
        "Seen?\n\n--- Forwarded message ---\nDate: x\nFrom: A\nTo: B\n\nnews\nmore",
        "ttaaaattt",
    ),
    "forwarded by mutt": (
        "FYI\n----- Forwarded message from A <a@x> -----\n\nDate: x\nFrom: A\nTo: B\n\nnews\n"
        "----- End forwarded message -----\nmine",
        "taaaaattat",
    ),
    "forwarded by Apple Mail": (
        "Begin forwarded message:\n\nDate: x\nFrom: A\nTo: B\n\nnews",
        "aaaaatt",
    ),
    "Date first": ("Top.\n\nDate: x\nFrom: A\nTo: B\nSubject: z\n\nold", "ttaaaaqq"),
    "German Outlook under a rule": (
        "Top.\n" + "_" * 40 + "\nVon: A [a@x]\nGesendet: x\nAn: B\nBetreff: z\n\nold",
        "taaaaaqq",
    ),
})  # fmt: skip
def test_attribution_is_found_above_its_quote(body: str, expected: str) -> None:
    assert letters(body) == expected


@cases("head, expected", {
    "mutt": ("On Mon, Jan 05, 2026 at 01:51:02PM +0100, Jo Roe wrote:", "a"),
    "Pine": ("On Mon, 5 Jan 2026, Jo Roe wrote:\n", "at"),
    "Gnus": ("jo@example.org (Jo Roe) writes:", "a"),
    "trn": ("In article <1@example.org>, jo@example.org wrote:", "a"),
    "Eudora": ("At 10:00 AM 1/2/97 -0500, Jo wrote:", "a"),
    "KMail": ("On Monday 05 January 2026 10:11, Jo Roe wrote:", "a"),
    "Evolution": ("On Mon, 2026-01-05 at 10:11 +0100, Jo Roe wrote:", "a"),
    "Evolution, de": ("Am Montag, den 05.01.2026, 10:11 +0100 schrieb Jo:", "a"),
    "Yahoo": ("--- On Mon, 1/5/26, Jo <jo@example.org> wrote:\n", "at"),
    "Yahoo Groups": ("--- In list@example.org, Jo <jo@...> wrote:", "a"),
    "Outlook Express": ('"Jo Roe" <jo@example.org> wrote in message news:1@example.org...', "a"),
    "Outlook Express, wrapped": (
        '"Jo Roe" <jo@example.org> wrote in message\nnews:1@example.org...',
        "aa",
    ),
    "AOL": ("In a message dated 1/5/97 10:11:12 AM, jo@example.org writes:", "a"),
    "AOL to the author": ("In a message dated 97-01-05 10:11:12 EST, you write:", "a"),
    "sez": ("Jo Roe sez:", "a"),
    "from": ("From Jo Roe:", "a"),
    "Horde": ("Quoting Jo Roe <jo@example.org>:", "a"),
    "elm": ("According to Jo Roe:", "a"),
    "a star": ("* Jo Roe <jo@example.org> [2026-01-05 10:11]:", "a"),
    "a star without an address": ("* Jo M. Roe [05/01/26 10:11]:", "a"),
    "in parentheses": ("* Jo Roe (jo@example.org) [260105 10:11]:", "a"),
    "dashes": ("-- Jo Roe <jo@example.org> wrote:", "a"),
    "Mulberry": ("--On 5 January 2026 10:11 +0000 Jo Roe\n<jo@example.org> wrote:", "aa"),
    "Gmail of 2013": ("2013/4/23 Jo Roe <jo@example.org>\n", "at"),
    "Gmail of 2013 in a Spanish archive": ("2013/4/23 Jo Roe <jo en example.org>\n", "at"),
    "a tilde": ("2013-04-23 10:11 UTC+0200 ~ Jo Roe <jo@example.org>", "a"),
    "Evolution, pt": ("Dom, 2015-11-01 às 17:54, Jo Roe escreveu:", "a"),
    "in brackets": ("[Jo Roe]", "a"),
    "one field": ("From: Jo Roe", "a"),
    "two fields": ("From: Jo Roe\nSubject: Re: x\n", "aat"),
    "said": ("Jo Roe said:", "a"),
    "date behind": ("Jo Roe wrote on 05.01.2026 10:11:", "a"),
    "inside a quote": ("> On 5 Jan 2026, Sam wrote:", "q"),
    "lost": ("Le lun. 5 janv. 2026 à 10:11, Jo Roe\n<jo@example.org> a ?crit :", "aa"),
    "Gmail, ru": ("пн, 5 янв. 2026 г. в 10:11, Jo Roe <jo@example.org>:\n", "at"),
    "Gmail, ja": ("2026年1月5日(月) 10:11 Jo Roe <jo@example.org>:\n", "at"),
    "Gnus, ja": ("<1@example.org>の記事において\njo@example.orgさんは書きました。\n", "aat"),
    "a bulletin board, zh": ("【 在 jo (阿九) 的大作中提到: 】", "a"),
    "another, zh": ("※ 引述《jo (阿九)》之銘言：", "a"),
    "Gmail, ar": ("\u200fفي الاثنين، 5 يناير 2026 في 10:11 ص تمت كتابة ما يلي بواسطة "
                  "\u202aJo\u202c\u200f <\u202a\njo@example.org\u202c\u200f>:\u200f", "aa"),
    "Gmail, es": ("El lun, 5 ene 2026 a las 10:11, Jo Roe (<\njo@example.org>) escribió:", "aa"),
    "an initial at the end of a line": (
        "On Wednesday, Jan 29, 2003, at 13:04 Europe/Paris, Jonathan M.\nRoe wrote:",
        "aa",
    ),
    "cut": ("On 12/11/20 9:32 AM, Jo Roe wrote:[...]", "a"),
})  # fmt: skip
def test_attributions_of_programs_are_found(head: str, expected: str) -> None:
    assert letters(f"{head}\n> old\nmine") == f"{expected}qt"


@cases("body, expected", {
    "Lotus Notes, forwarded": (
        "FYI\n\n"
        "---------------------- Forwarded by Jo Roe/EX on 01/05/2000 10:11 AM -----------\n\n"
        "Sam Poe <sam@example.org> on 01/05/2000 09:00:00 AM\n"
        "Please respond to sam@example.org\n"
        "To: Jo Roe/EX@EX\ncc:\nSubject: leases\n\nnews\nmore",
        "tt" + "a" * 7 + "ttt",
    ),
    "Lotus Notes, answered": (
        "Yes.\n\nSam Poe <sam@example.org>\n01/05/2000 09:00 AM\nPlease respond to sam\n\n"
        "        To:     Jo Roe/EX@EX\n        cc:\n        Subject:        leases\n\nold\nold",
        "tt" + "a" * 7 + "qqq",
    ),
    "Lotus Notes, a table as text": (
        "Yes.\n\nSam Poe <sam@example.org>\nSent by: dev-bounces@example.org\n05/01/2000 09:00\n\n"
        "To\n\nJo Roe/EX@EX\n\ncc\ndev@example.org\n\nSubject\nRe: leases\n\nold\nold",
        "tt" + "a" * 13 + "qqq",
    ),
    "Lotus Notes, a table of two columns": (
        "Yes.\n\n"
        "             Sam Poe\n"
        "             <sam@example.or\n"
        "             g>                                        To\n"
        "                                    Jo Roe/EX@EX\n"
        "             2000-01-05 09:00                          cc\n"
        "                                    dev@example.org\n"
        "                                                  Subject\n"
        "                                    Re: leases\n\n\nold\nold",
        "tt" + "a" * 8 + "qqqq",
    ),
    "Lotus Notes in Spanish": (
        "Sí.\n\nSam Poe <sam@example.org>\n05/01/2000 09:00\n\nPara\nJo Roe\ncc\n\nAsunto\n"
        "Re: x\n\nviejo",
        "tt" + "a" * 9 + "qq",
    ),
    "words at the ends of lines": (
        "It is what I sent on 05/01/2000 09:00\nTo\nyou and on the same\nSubject\nagain\n\nmine",
        "ttttttt",
    ),
    "Outlook, many recipients": (
        "Top.\n\n-----Original Message-----\nFrom: Jo Roe [mailto:jo@example.org]\n"
        "Sent: Monday, January 5, 2026 10:11 AM\nTo: a@example.org; b@example.org;\n"
        "c@example.org; d@example.org\nSubject: Re: leases\n\nold\nold",
        "tt" + "a" * 6 + "qqq",
    ),
    "Outlook, French": ("Top.\n\n________________________________\nDe : Jo <jo@example.org>\n"
                        "Envoyé : lundi 5 janvier 2026 10:11\nÀ : Sam\nObjet : Re: baux\n\nold",
                        "ttaaaaaqq"),
    "nothing above: forwarded": (
        "*From:* Jo\n*Sent:* Monday 10:11\n*To:* Sam\n*Subject:* x\n\nnews",
        "aaaatt",
    ),
    "Gmail, forwarded": (
        "See\n\n---------- Forwarded message ----------\nFrom: Jo <jo@example.org>\n"
        "Date: 2013/4/23\nSubject: x\nTo: Sam\n\n\nnews",
        "ttaaaaattt",
    ),
    "Thunderbird, forwarded": (
        "See\n-------- Forwarded Message --------\nSubject: \tx\nDate: \tMon, 5 Jan 2026\n"
        "From: \tJo\nTo: \tSam\n\nnews",
        "taaaaatt",
    ),
    "Gmail without marks": (
        "Top.\n\nOn Mon, Jan 5, 2026 at 10:11 AM Jo Roe <jo@example.org> wrote:\n\nold\nold",
        "ttaqqq",
    ),
    "wrapped, without marks": (
        "Top.\n\nAm 05.01.2026 um 10:11 schrieb Jo Roe\n<jo@example.org>:\nold",
        "ttaaq",
    ),
    "Supercite": ('JR writes:\n\n>>>>> "SP" == Sam Poe <sam@example.org> writes:\n\nSP> old\nmine',
                  "ttatqt"),
})  # fmt: skip
def test_blocks_and_separators_of_programs(body: str, expected: str) -> None:
    assert letters(body) == expected


@cases("body", {
    "a story": "On Monday John wrote: a long story\nand it went on\nfor days",
    "not alone": "Hi,\nOn 5 Jan 2026 I wrote:\n  a program\nand it works",
    "no date": "Hi\n\nAs he wrote:\n\nit is done\n",
    "two fields of a copy": "x\n\nFrom: /dev/sda\nTo: /dev/sdb\n\ndd did it",
    "YAML": "x\n\nfrom: x\nto: y\nsubject: z\n\nthat is YAML",
    "SQL": "x\n\nSELECT a\nFROM: b\nDate: c\nok",
    "questions and answers": "x\n\nQ: why\nA: so\nQ: how\nA: thus\n\nend",
    "ChangeLog": "x\n\n2026-01-05  Jo Roe  <jo@example.org>\n\n\t* f.c: New.\n\nend",
    "a date in prose": "x\n\nOn 5 May 2019 at 10:00 we met.\nIt was",
    "a heading between dashes": "x\n\n----- Results -----\n\n1 2 3\n\nend",
    "rules": "x\n----------\nTo: be or not\n----------\ny",
    "an invitation": "x\n\nDate: 5 Jan\nSubject: a talk\nPlace: here\n\nCome!",
    "words that are fields": "x\n\nAn: apple\nVon: here\nDe: there\n\nend",
    "a rule of underscores": "x\n" + "_" * 40 + "\nTo: y\nz",
    "a log": "the log says\n\n10:11:12 wrote:\n\n5 bytes",
    "code": 'printf("%s wrote:\\n", name);\n\n"> ";',
})  # fmt: skip
def test_text_similar_to_announcements_stays_text(body: str) -> None:
    assert set(letters(body)) == {"t"}


@pytest.mark.parametrize("prose", [
    "I think that is wrong.",
    "On the other hand, it is the case that this one line is longer than the one above it.",
    "See also:", "The first of the two questions that you and all the others asked me was:",
    "This is what I found, and I am sure that it is what all of us had in mind when we wrote:",
    "In 2019, they found:", "[snip]", "[...]", "x = {1: 2}", "Step 3:",
])  # fmt: skip
def test_prose_above_a_quote_stays_text(prose: str) -> None:
    assert letters(f"Hello\n\n{prose}\n> old\nmine") == "tttqt"


def test_paragraph_above_an_attribution_stays_text() -> None:
    prose = "We met on Monday and talked about it for long, as I told you\nin my last mail"
    assert letters(f"{prose}\nJo Roe wrote:\n> old") == "ttaq"
    assert letters(f"{prose}.\nOn 5 Jan 2026, Jo Roe wrote:\n> old") == "ttaq"
    assert letters("On 5 Jan it was still so. Then it broke.\nJo Roe wrote:\n> old") == "taq"


@pytest.mark.parametrize("dash", "-\u2010\u2011\u2012\u2013\u2014\u2015\u2212")
def test_any_kind_of_dash_rules_a_separator(dash: str) -> None:
    rule = dash * 7
    separator = f"{rule} Original Message {rule}"
    dated = "On Monday, January 5, 2026 10:11 AM, Jo Roe <jo@example.org> wrote:"
    assert letters(f"Yes.\n\n{separator}\n{dated}\n\n> old") == "ttaatq"
    assert letters(f"Yes.\n\n{separator}\n{dated}\n\nold\nold") == "ttaqqqq"
    assert letters(f"> old\nYes.\n-- \nMe\n{separator}\n{dated}\n> old") == "qtssaaq"
    assert set(letters(f"Yes.\n\n{rule} Results {rule}\n\n1 2 3\n{rule}\nend")) == {"t"}


HEADER = (
    "From: ann@x.example\nTo: dev@x.example\nDate: Mon, 5 Jan 2026 10:11:00 +0000\nSubject: cranes"
)


@cases(
    "body",
    {
        "a header explained": (
            "It has these:\n\nFrom: the author\nTo: the readers\nDate: when it was sent\n"
            "Subject: what it is about\n\nOf these two are needed.\n\nIs that so?"
        ),
        "a header shown": f"I get this:\n\n{HEADER}\n\nWhy is To wrong?",
        "a header shown first": f"{HEADER}\n\nWhy is To wrong?",
        "in German": "So:\n\nVon: Ann\nAn: Bob\nGesendet: 5.1.2026\nBetreff: x\n\nWarum?",
        "an attribution shown": "So:\n\nOn Mon, 5 Jan 2026, Ann <ann@x.example> wrote:\n\nthere.",
        "R": "In R:\n\n> x <- c(1,2)\n> mean(x)\n[1] 1.5\n\nWhy 1.5?",
        "R at the begin": "> x <- c(1,2)\n> mean(x)\n[1] 1.5\n\nWhy 1.5?",
        "R, wrapped": "R:\n> f <- function(x) {\n+   x\n+ }\n> f(1)\n[1] 1",
        "F#": "In F#:\n\n> let x = 5;;\nval x : int = 5\n\n> x;;",
        "Python alone": "Python:\n>>> import crane\n>>> crane.lift()\n",
        "MATLAB": "MATLAB:\n>> x = 1\n\nx =\n\n     1\n\n>> y = 2",
        "a shell goes on": "$ cat <<EOF\n> one\n> two\n> EOF\none\ntwo",
        "a shell's comment": "$ make \\\n> all\n> # that fails\nerror 2",
        "a robot's": "All:\n>> new warnings have this mark:\n>> a.c:1: error: x\n",
        "a document": "It says\n\n> The crane lifts what it can and no more.\n\nbut mine can.",
        "mutt": "In my muttrc:\n\nset indent_string=\n> \n| \n\nIs it wrong?",
        "a pipeline": "ls \\\n| sort \\\n| uniq \\\n| wc\n",
        "a prompt with a name": "It is R> that asks:\n\nR> mean(x)\n1.5",
        "a conflict": "x:\n\n<<<<<<< a\n1\n=======\n2\n>>>>>>> b\n",
        "two redirections": "Try\n\n> file cuts\n>> file appends\n\nWhich?",
    },
)
def test_first_message_has_no_quote_without_a_mark(body: str) -> None:
    assert set(letters(body, answers=False)) == {"t"}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("Hi.\n\nOn 2026-01-05, Ann wrote:\n> The crane?\nNo.", "ttaqt"),
        ("R:\n> x\n\nAnn Roe wrote:\n> The crane?\nNo.", "tttaqt"),
        ("Hi.\n\n> -----Original Message-----\n> From: Ann\n> is it up?", "ttqqq"),
        ("Hi.\n\n> On 2026-01-05, Bob wrote:\n> is it up?\n", "ttqqt"),
        ("Hi.\n\n> > is the crane up at last?\n> it is not.\nOh.", "ttqqt"),
        ("> is the crane that you have bought up at last?\nIt is.", "qt"),
        ("See:\n\n-----Original Message-----\nFrom: A\nSent: 1\nTo: B\n\nold", "ttaaaaqq"),
        ("Hi.\n\n> From: Ann\n> Date: 5 Jan 2026\n> Subject: up\n>\n> is it?", "ttqqqqq"),
    ],
)  # fmt: skip
def test_first_message_quotes_by_marks_of_mail(body: str, expected: str) -> None:
    assert letters(body, answers=False) == expected


def test_header_below_marked_quotes_is_shown() -> None:
    body = f"> Which fields?\nThese:\n\n{HEADER}\n\nand no more."
    assert letters(body) == "qttttttttt"[: body.count("\n") + 1]


OUTLOOK = (
    "From: Jo Roe\nSent: Monday, January 5, 2026 10:11\nTo: dev@example.org\nSubject: Re: x\n\n"
)
HOTMAIL = (
    "Date: Mon, 5 Jan 2026 10:11:12 +0100From: jo@example.orgTo: dev@example.orgSubject: Re: x"
)
GMAIL = "On Mon, Jan 5, 2026 at 9:08 AM Sam <sam@example.org> wrote:\n"


@cases(
    "body, expected",
    {
        "Outlook above a mail with a quote": (
            f"Top.\n\n{OUTLOOK}old\n\n{GMAIL}> older\n> quotes",
            "tt" + "a" * 4 + "q" * 6,
        ),
        "an unmarked mail with a quote": (
            f"Top.\n\n{GMAIL}old\n\nOn 05/01/2026 08:08, Ann wrote:\n> older",
            "tta" + "q" * 4,
        ),
        "marks below it": (f"{OUTLOOK}> old\nmine\n{GMAIL}> older", "aaaatqtaq"),
        "an unmarked mail that answers in a quote": (
            f"Top.\n\n{OUTLOOK}old\n> older\nold",
            "tt" + "a" * 4 + "qqqq",
        ),
        "the rest of a field above marks": (
            f"Hi,\n\n{OUTLOOK.strip()}\nof a long subject\n\n> old\nmine",
            "tt" + "a" * 4 + "ttqt",
        ),
        "Yahoo right below a name": (
            "Top, and more.\nJo\n    On Monday, 5 January 2026, 10:11:12 BST, Sam Poe "
            "<sam@example.org> wrote:  \n \n old",
            "ttaqq",
        ),
        "Spark right below a name": (
            "Top.\nSam\nOn Jan 5, 2026, 10:11 AM -0800, Jo <jo@example.org>, wrote:\nold",
            "ttaq",
        ),
        "a name behind a star": ("* Jo Roe:\n\n> old\nmine", "atqt"),
        "an item that ends in a colon": ("* Jo Roe:\nis a list\n> old", "ttq"),
        "Tutanota": ("Jan 5, 2026, 10:11 by jo@example.org:\n\n> old\nmine", "atqt"),
        "Zoho": (
            "Top.\n\n---- On Mon, 05 Jan 2026 10:11:12 +0530 Jo <jo@example.org> wrote ----\n\nold",
            "ttaqq",
        ),
        "Zoho, with a shorter end": (
            "Top.\n\n---- On Mon, 05 Jan 2026 10:11:12 +0530 Jo <jo@example.org> wrote ---\n\nold",
            "ttaqq",
        ),
        "right below a sentence": (
            "Thanks, I have built it again and now it works for me.\n"
            "On 1/5/2026 10:11:12 AM, Jo Roe <jo@example.org> wrote:\nold",
            "taq",
        ),
        "in a sentence": (
            "I read it again, and it is in what he sent to the list:\n"
            "On 1/5/2026 10:11:12 AM, Jo Roe <jo@example.org> wrote:\nit works",
            "ttt",
        ),
        "GroupWise": (
            ">>> Jo Roe <jo@example.org> schrieb am 05.01.2026 um 10:11 in\n"
            "Nachricht <1@example.org>:\n> old\nmine",
            "aaqt",
        ),
        "GroupWise above a mail with a quote": (
            f"Top.\n\n>>> Jo Roe <jo@example.org> 01/05/26 3:05 AM >>>\n{GMAIL}> older\nold",
            "ttaqqq",
        ),
        "GroupWise among answers": (
            "> old\n>>> Jo Roe <jo@example.org> 01/05/26 3:05 AM >>>\n> old\nmine",
            "qtqt",
        ),
        "Yahoo without a date": ("Top.\n\nJo Roe <jo@example.org> wrote:\n\nold\nold", "ttaqqq"),
        "Yahoo in Portuguese": ("Top.\n\nJo Roe <jo em example.org> escreveu: Não.\nold", "ttaq"),
        "Yahoo on the line of the quote": (
            "Top.\n\nJo Roe <jo@example.org> wrote: I see.\nold\n> older\nold",
            "ttaqqq",
        ),
        "Yahoo glued to the quote": ("Top.\n  Jo Roe <jo@example.org> wrote:I see.\nold", "taq"),
        "a time is no word of a quote": ("Top.\n\nJo <jo@example.org>, 10:11\nmine", "tttt"),
        "mail that quotes mail with inline answers": (
            "Top.\n\nOn Mon, Jan 5, 2026 at 5:16 PM, Jo <jo@example.org> wrote:\n\nold\n\n"
            "On Sun, Jan 4, 2026 at 5:16 PM, Sam <sam@example.org> wrote:\nDear Jo,\n\n"
            "> older\n\nold",
            "ttaqqqqqqqqq",
        ),
        "Yahoo on the line of a marked quote": (
            "Top.\n\nJo Roe <jo@example.org> wrote: > older\n> older\nold",
            "ttaqq",
        ),
        "Zimbra": ('Top.\n\n----- "Jo Roe" <jo@example.org> wrote:\nold\nold', "ttaqq"),
        "Yahoo above another's attribution": (
            "Top.\n\nJo Roe <jo@example.org> wrote:\nSam Poe wrote:\n> older\nold",
            "ttaqqq",
        ),
        "an attribution above a marked one": (
            "Top.\n\nJo Roe <jo@example.org> wrote:\nSam Poe wrote:\n> > older\n> old\nmine",
            "tttaqqt",
        ),
        "an aside above a marked quote": (
            "Top.\n\nJo Roe <jo@example.org> wrote: (about cranes)\n> old\nmine",
            "tttqt",
        ),
        "Yahoo above a mail that quotes": (
            "Top.\n\n    On Monday, 5 January 2026 at 10:11:12 GMT, Sam Poe "
            "<sam@example.org> wrote:\n \n old\n> older\nold",
            "ttaqqqq",
        ),
        "an attribution in an indented text": (
            "Top.\n\n    On Monday, 5 January 2026 at 10:11:12 GMT, Sam Poe "
            "<sam@example.org> wrote:\n\n    old\n\n> older\nmine",
            "ttttttqt",
        ),
        "Yahoo above another's attribution and bars": (
            "Top.\n\nOn 5 Jan 2026 at 10:11, Jo Roe <jo@example.org> wrote:\n\n"
            "On 4 Jan 2026 at 10:11, Sam Poe wrote:\n| older\n| older\n| older\nold",
            "ttaqqqqqq",
        ),
        "a saying in quotation marks": (
            'Top.\n\nJo Roe <jo@example.org> wrote:\n\n"It is up."\n\nIs it?',
            "ttttttt",
        ),
        "an address in a sentence": (
            "Top, as we know since a man of the name of\n"
            "Jo Roe <jo@example.org> wrote: it is up\nmine",
            "ttt",
        ),
        "a quote's attribution marked by other signs": (
            "Top.\n\n! Jo Roe <jo@example.org> wrote:\n! old\n\nmine",
            "tttttt",
        ),
        "Hotmail": (f"Top.\n\n{HOTMAIL}\n\nold\n> older\nold", "ttaqqqq"),
        "Hotmail on the line of the quote": (f"Top.\n\n{HOTMAIL}I see.\nold", "ttaq"),
        "fields in one sentence": (
            "Top.\n\nFrom: and To: and Date: and Subject: are the 4 fields\nof a header",
            "tttt",
        ),
        "lost accents": (
            "Top.\n\nL?hett?j?: Jo <jo@example.org>\nL?hetetty: 5. tammikuuta 2026 10:11\n"
            "Vastaanottaja: dev@example.org\nAihe: Re: x\n\nold",
            "ttaaaaqq",
        ),
        "QQ Mail": ("Top.\n----------Reply to Message----------\nold", "taq"),
        "wrapped below a signature": (
            "Hi\n-- \nJo Roe\nExample Inc.\nOn Mon, Jan 5, 2026 at 5:16 PM Some name of a list <"
            "\ndev@example.org> wrote:\n\n> old",
            "tsssaatq",
        ),
    },
)
def test_unmarked_mail_is_quoted_to_its_end(body: str, expected: str) -> None:
    assert letters(body) == expected


FROM_APPLE = "> On 5 Jan 2026, at 09:08, Sam <sam@example.org> wrote:\n>\n"
FROM_ANT = (
    "发件人：Jo <jo@example.org>\n发送时间：2026-01-05 10:11\n主题：x\n收件人：sam@example.org\n"
)


@cases(
    "body, expected",
    {
        "the mail begins with its quote": (
            f"Top.\n\n{OUTLOOK}{GMAIL}> older\nold\n> older\nold",
            "ttaaaa" + "q" * 6,
        ),
        "the mail was written with Apple Mail": (
            f"Top.\n\n{OUTLOOK}{FROM_APPLE}> older\n>\n> older\nold",
            "ttaaaa" + "q" * 7,
        ),
        "Yahoo above a mail of Apple Mail": (
            f"Top.\n\n{GMAIL}old\n{FROM_APPLE}> older\n>\n> older",
            "tta" + "q" * 6,
        ),
        "a mail in the mail below it": (
            f"Top.\n\n{OUTLOOK}old\n\n{OUTLOOK}> oldest\nolder",
            "ttaaaa" + "q" * 10,
        ),
        "the program marks the whole mail": (
            f"Top.\n\n{OUTLOOK}{FROM_APPLE}> > older\n> old\nmine",
            "ttaaaatqqqqt",
        ),
        "a separator without fields": (
            f"Top.\n\n--- Original Message ---\n{GMAIL}> old\nmine",
            "ttaaqt",
        ),
        "the mail answers a header": (
            f"Top.\n\n{OUTLOOK}old\n> From: Sam\n> Date: x\n> To: Jo\n> Subject: y\n> older\nold",
            "ttaaaa" + "q" * 8,
        ),
        "the mail answers a separator": (
            f"Top.\n\n{OUTLOOK}old\n> -----Original Message-----\n> older\nold",
            "ttaaaa" + "q" * 5,
        ),
        "full-width colons above a time": (f"Top.\n\n{FROM_ANT}\nold", "ttaaaaqq"),
        "a folded field that looks quoted": (f"Top.\n\n{FROM_ANT} > x\n\nold\nold", "ttaaaaaqqq"),
    },
)
def test_mail_below_fields_is_quoted_with_its_quotes(body: str, expected: str) -> None:
    assert letters(body) == expected


@pytest.mark.parametrize(
    "above",
    ["Please see inline.", "My replies in-line below.", "Antworten im Text.",
     "Voir mes réponses dans le texte.", "请见文中回复。", "インラインで回答します。"],
)  # fmt: skip
def test_answers_inline_are_text(above: str) -> None:
    assert letters(f"{above}\n\n{OUTLOOK}old?\nmine\nold?\nmine") == "ttaaaattttt"
    assert letters(f"{above}\n\n{OUTLOOK}{GMAIL}> older\nold?\nmine") == "ttaaaataqtt"


def test_answers_under_the_authors_name_are_text() -> None:
    body = f"Thanks.\n\n{OUTLOOK}old?\n[Sam] mine\nold?\n[Sam Poe]: mine"
    assert letters(body, "Samuel Poe") == "ttaaaattttt"
    assert letters(body, "Ann Roe") == "ttaaaaqqqqq"


@pytest.mark.parametrize("above", [
    "You can make the function inline.", "Find an inline assembler.", "Is it in line 5?",
])  # fmt: skip
def test_other_uses_of_inline_leave_a_quote(above: str) -> None:
    assert letters(f"{above}\n\n{OUTLOOK}old\nold") == "ttaaaaqqq"


@cases(
    "body, expected",
    {
        "answers between": (
            'Hi,\n\n\ufeffOn 1/5/26, 10:11 AM, "Jo" <jo@example.org> wrote:\n\n    old?\n\nmine\n\n'
            "    On Mon, Sam wrote:\n    > older\n    short\nmine",
            "ttatqtttqqqt",
        ),
        "in German": (
            'Am 05.01.26, 10:11 schrieb "Jo Roe" <jo@example.org>:\n\n    old?\nmine\n    old.',
            "atqtq",
        ),
        "not indented": (
            'On 1/5/26, 10:11 AM, "Jo" <jo@example.org> wrote:\n\n> old?\nmine:\n\n    code',
            "atqttt",
        ),
    },
)
def test_outlook_for_mac_indents_what_it_quotes(body: str, expected: str) -> None:
    assert letters(body) == expected


@pytest.mark.parametrize("line", [
    "在 2026/1/5 10:11, Wei Wang 写道:", "在 2026年1月5日，上午10:11，Wei <wei@example.org> 写道：",
    "Wei Wang <wei@example.org> 于2026年1月5日周一 上午10:11写道：",
    "2026年1月5日(月) 10:11 山田太郎 <taro@example.org>:", "On 2026/1/5 10:11, 王伟 wrote:",
    "At Mon, 05 Jan 2026 10:11:12 +0900, 山田太郎 wrote:",
    "2026년 1월 5일 (월) 오전 10:11, 홍길동 <hong@example.org>님이 작성:",
    "Dne 05. 01. 26 v 10:11 Jan Novák napsal(a):",
])  # fmt: skip
def test_dates_of_other_scripts_announce_unmarked_mail(line: str) -> None:
    assert letters(f"Top.\n\n{line}\n\nold\nold") == "ttaqqq"


HEAD = "From: Jo Roe <jo@example.org>\nDate: Mon, 5 Jan 2026 10:11:12 +0100\nSubject: [PATCH] x\n"


def test_head_of_a_pasted_patch_is_text() -> None:
    diff = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b"
    assert letters(f"Rebased.\n\n{HEAD}\nWhy.\n---\n{diff}") == "t" * 8 + "p" * 6
    assert letters(f"Rebased.\n\n{HEAD}\nWhy.")[-1] == "q"


def test_message_pasted_from_an_mbox_is_text() -> None:
    fields = "From: Sam Poe <sam@example.org>\nDate: Mon, 5 Jan 2026 10:11\nTo: Jo\nSubject: x"
    line = "From jo+1=a@example.org Mon Jan  5 10:11:12 2026"
    assert letters(f"Added.\n\n>{line}\n{fields}\n\nWhy.\nSo.") == "t" * 10
    assert letters(f"Added.\n\nFrom Jo, on Monday\n{fields}\n\nWhy.\nSo.")[-1] == "q"
