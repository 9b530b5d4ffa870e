"""Quote marks, attributions, header blocks and separators, and lookalikes."""

import pytest

from mail_assets_tests.mail.kinds import letters

FULL = "as long a line as the mail program of its author would ever send"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param(">> a\n> > b\nJD> c\n  > d\nme", "qqqqt", id="quote marks"),
        pytest.param("山田> a\nMü> b\nИП>> c\n김철수>\nme", "qqqqt", id="names in any script"),
        pytest.param("＞ 引用\n＞引用\n山田＞ 引用\nme", "qqqt", id="full-width marks"),
        pytest.param("設定>保存\nA＞B\n1> x\nчисло> 5", "tttt", id="a mark within a line"),
        pytest.param("psql> select 1;\nSQL> select 2\n", "ttt", id="prompts quote nobody"),
        pytest.param("a->b > c\nif a>b\nx => y", "ttt", id="a > inside a line"),
        pytest.param(
            "see\n>>> import os\n>>> os.sep\n'/'", "tttt", id="a Python session is no quote"
        ),
        pytest.param("> x\n>>> import os\nme", "qqt", id="deep quotes among others"),
        pytest.param("me\n>From my side\nno", "ttt", id=">From escapes new text"),
        pytest.param("> he\n>From his side\nme", "qqt", id=">From among quotes"),
        pytest.param(
            f"> {FULL}\nrest\n> of it; {FULL}\nthe\n> end\nme", "qqqqqt", id="quotes wrapped again"
        ),
        pytest.param(f"> {FULL}\nrest\n> of it\nme", "qtqt", id="one rest may be an answer"),
        pytest.param(
            f"> {FULL}?\nno\n> and {FULL}?\nyes\n> end", "qtqtq", id="answers to sentences"
        ),
        pytest.param(
            f"> {FULL}\n> and so on\nno\n> and this\nyes\n> end",
            "qqtqtq",
            id="answers to short lines",
        ),
        pytest.param("| one\n| two\n| three\nme", "qqqt", id="bars quote in threes"),
        pytest.param("| one\n| two\nme", "ttt", id="two bars do not"),
        pytest.param(
            "Xavier wrote:\n| one\n\nme\n| two\nme", "aqttqt", id="bars under an attribution do"
        ),
        pytest.param(" a | b\n---+---\n 1 | 2\n 3 | 4\n(2 rows)", "ttttt", id="psql table"),
        pytest.param(
            " a | b\n---+---\n   | x\n   | y\n   | z", "ttttt", id="psql table, empty first column"
        ),
        pytest.param("+---+\n| a |\n+---+\n| 1 |\n+---+", "ttttt", id="psql table with border"),
        pytest.param(
            "        QUERY PLAN\n-----------------\n Sort  (cost=1.1..2.2 rows=3 width=4)\n"
            "   ->  Seq Scan on t  (cost=0.0..1.0 rows=3 width=4)\n         Filter: (a > 1)",
            "ttttt",
            id="EXPLAIN plan",
        ),
    ],
)
def test_marks_make_a_quote_without_another_explanation(body: str, expected: str) -> None:
    assert letters(body) == expected


SESSION = ">>> import crane\n>>> crane.lift(3)\n'up'"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param(f"Try:\n\n{SESSION}\n\n> old\n\nyes", "ttttttqtt", id="above a quote"),
        pytest.param(f"Jo wrote:\n> old\n\nTry:\n{SESSION}", "aqttttt", id="below a quote"),
        pytest.param("> old\nme\n  >>> 1 + 1\n  2\n  >>>", "qtttt", id="indented"),
        pytest.param("see\n\n>>> lift()\n>>>\n", "ttttt", id="a last prompt without its blank"),
        pytest.param(f"> >>> lift()\n> 'no'\nme\n{SESSION}", "qqtttt", id="answers a session"),
        pytest.param(f">>>> lift()\n>'no'\nme\n{SESSION}", "qqtttt", id="marks without blanks"),
        pytest.param(">>> why?\n\nso\n\n> how?\nthus", "qtttqt", id="no output"),
        pytest.param(">>> why?\nno\n\n>> how?\nthus", "qttqt", id="depth 2 in the body"),
        pytest.param(">>> why?\nno\n\n> > how?\nthus", "qttqt", id="depth 2 with blanks"),
        pytest.param(">>> why?\nno\n\n> >> how?\nthus", "qttqt", id="depth 3 with a blank"),
        pytest.param("Jo wrote:\n>>> why?\nno\n> so", "aqtq", id="below an attribution"),
        pytest.param("> he:\n>>> why?\nno\n> so", "qqtq", id="below a quoted line"),
    ],
)
def test_python_session_among_quotes_is_no_deep_quote(body: str, expected: str) -> None:
    assert letters(body) == expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param(
            "Thanks!\n\nOn Mon, 5 Jan 2026 at 10:11,\nSome Body <a@x>\nwrote:\n\n> all\n> more",
            "ttaaatqq",
            id="attribution over three lines",
        ),
        pytest.param("Am 05.01.2026 um 10:11 schrieb X:\n> alt\nneu", "aqt", id="German"),
        pytest.param(
            "Le lun. 5 janv. 2026 à 10:11, X <x@y> a écrit :\n> vieux\nneuf", "aqt", id="French"
        ),
        pytest.param(
            "Le lun. 5 janv. 2026 à 10:11, X <x@y> a\nécrit\xa0:\n> vieux",
            "aaq",
            id="French, wrapped",
        ),
        pytest.param(
            "X <x@y> 于2026年1月5日周一 10:11写道：\n> 旧\n新", "aqt", id="Chinese, Gmail"
        ),
        pytest.param("在 2026年1月5日，10:11，X <x@y> 写道：\n\n> 旧", "atq", id="Chinese, Apple"),
        pytest.param("Some Body <a@x> writes:\n> old\nnew", "aqt", id="name first"),
        pytest.param('"Some Body" <a@x.example>\nwrote:\n> old', "aaq", id="name first, wrapped"),
        pytest.param(
            "* Some Body <a@x>, 2026-01-05, 10:11:\n> old\nnew", "aqt", id="a star and a date"
        ),
        pytest.param(
            "On Mon, Jan 05, 2026 at 01:51 PM, X scrawled:\n> old\nnew", "aqt", id="any verb"
        ),
        pytest.param(
            "--- On Mon, 1/5/26, X <a@x> wrote:\n> old\nnew", "aqt", id="a dash in front, Yahoo"
        ),
        pytest.param(
            "05.01.2026 в 10:02, X <a@x>\nпишет:\n> старое", "aaq", id="Cyrillic, wrapped"
        ),
        pytest.param("05.01.2026, 10:02, X <a@x>:\n> old", "aq", id="no verb"),
        pytest.param("On page 2 you say:\n> old\nnew", "tqt", id="no date, no verb"),
        pytest.param(
            "At 10:11 nothing:\n\n> old\nnew", "ttqt", id="no verb, and not right above a quote"
        ),
        pytest.param(
            "X via list at The Group wrote in\n <1@example.org>:\n |old\n |old\n |old\nnew",
            "aaqqqt",
            id="with an id",
        ),
        pytest.param(
            "On windows it works\n> A wrote:\n> old\nnew", "tqqt", id="not from quoted lines"
        ),
        pytest.param("On Mon I wrote: nothing is quoted here\nreally", "tt", id="nothing quoted"),
        pytest.param(
            "Hi\nOn 3 May Tom wrote a patch for this\nand it works", "ttt", id="prose like it"
        ),
        pytest.param(
            "Top.\n\nAm 05.01.2026 um 10:11 schrieb X:\nunmarked\nmore",
            "ttaqq",
            id="unmarked quote",
        ),
        pytest.param(
            "Am 05.01.2026 um 10:11 schrieb X:\nunmarked\n> marked\nmine",
            "ttqt",
            id="but marks below",
        ),
        pytest.param(
            "On 5 Jan 2026 X wrote:\nnot a top post\nso all stays", "ttt", id="but no text above"
        ),
        pytest.param(
            "Top.\n-----Original Message-----\nFrom: A\nSent: x\nTo: y\nSubject: z\n\nold",
            "taaaaaqq",
            id="Outlook",
        ),
        pytest.param(
            "Top.\n\nFrom: A <a@x>\nSent: Monday\nTo: B\nSubject: z\n\nold\nold",
            "ttaaaaqqq",
            id="Outlook without a rule",
        ),
        pytest.param(
            "From: A\nSent: x\nTo: y\n> old\nmine", "aaaqt", id="Outlook over marked quotes"
        ),
        pytest.param(
            "-----Original Message-----\nFrom: A\nTo: B\n\nforwarded", "aaatt", id="forwarded"
        ),
        pytest.param(
            "here\n\nFrom 0123456789abcdef Mon Sep 17 00:00:00 2001\nFrom: A\nDate: x\n"
            "Subject: [PATCH] y\n\nreason",
            "tttttttt",
            id="git format-patch is text",
        ),
        pytest.param("Jo <jo at x.example>\nwrote:\n> old", "aaq", id="wrapped, address obscured"),
        pytest.param(
            "Jo via some-list wrote in\n <1@x.example>:\n |a\n |b\n |c", "aaqqq", id="usenet"
        ),
        pytest.param("On 5 Jan 2026, Jo scribbled:\n> old\nnew", "aqt", id="any verb over a quote"),
        pytest.param("* Jo <jo@x.example> [260105 10:11]:\n> old", "aq", id="no verb at all"),
        pytest.param(
            "On windows\nall is well\n> In 2019, I wrote it\n> twice",
            "ttqq",
            id="a verb inside the quote is none above it",
        ),
        pytest.param(
            "Seen?\n\n--- Forwarded message ---\nDate: x\nFrom: A\nTo: B\n\nnews\nmore",
            "ttaaaattt",
            id="what is forwarded is new to the list",
        ),
        pytest.param(
            "FYI\n----- Forwarded message from A <a@x> -----\n\nDate: x\nFrom: A\nTo: B\n\nnews\n"
            "----- End forwarded message -----\nmine",
            "taaaaattat",
            id="forwarded by mutt",
        ),
        pytest.param(
            "Begin forwarded message:\n\nDate: x\nFrom: A\nTo: B\n\nnews",
            "aaaaatt",
            id="forwarded by Apple Mail",
        ),
        pytest.param(
            "Top.\n\nDate: x\nFrom: A\nTo: B\nSubject: z\n\nold", "ttaaaaqq", id="Date first"
        ),
        pytest.param(
            "Top.\n" + "_" * 40 + "\nVon: A [a@x]\nGesendet: x\nAn: B\nBetreff: z\n\nold",
            "taaaaaqq",
            id="German Outlook under a rule",
        ),
    ],
)
def test_attribution_is_found_above_its_quote(body: str, expected: str) -> None:
    assert letters(body) == expected


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        pytest.param("On Mon, Jan 05, 2026 at 01:51:02PM +0100, Jo Roe wrote:", "a", id="mutt"),
        pytest.param("On Mon, 5 Jan 2026, Jo Roe wrote:\n", "at", id="Pine"),
        pytest.param("jo@example.org (Jo Roe) writes:", "a", id="Gnus"),
        pytest.param("In article <1@example.org>, jo@example.org wrote:", "a", id="trn"),
        pytest.param("At 10:00 AM 1/2/97 -0500, Jo wrote:", "a", id="Eudora"),
        pytest.param("On Monday 05 January 2026 10:11, Jo Roe wrote:", "a", id="KMail"),
        pytest.param("On Mon, 2026-01-05 at 10:11 +0100, Jo Roe wrote:", "a", id="Evolution"),
        pytest.param("Am Montag, den 05.01.2026, 10:11 +0100 schrieb Jo:", "a", id="Evolution, de"),
        pytest.param("--- On Mon, 1/5/26, Jo <jo@example.org> wrote:\n", "at", id="Yahoo"),
        pytest.param("--- In list@example.org, Jo <jo@...> wrote:", "a", id="Yahoo Groups"),
        pytest.param(
            '"Jo Roe" <jo@example.org> wrote in message news:1@example.org...',
            "a",
            id="Outlook Express",
        ),
        pytest.param(
            '"Jo Roe" <jo@example.org> wrote in message\nnews:1@example.org...',
            "aa",
            id="Outlook Express, wrapped",
        ),
        pytest.param(
            "In a message dated 1/5/97 10:11:12 AM, jo@example.org writes:", "a", id="AOL"
        ),
        pytest.param("Quoting Jo Roe <jo@example.org>:", "a", id="Horde"),
        pytest.param("According to Jo Roe:", "a", id="elm"),
        pytest.param("* Jo Roe <jo@example.org> [2026-01-05 10:11]:", "a", id="a star"),
        pytest.param("* Jo Roe (jo@example.org) [260105 10:11]:", "a", id="in parentheses"),
        pytest.param("-- Jo Roe <jo@example.org> wrote:", "a", id="dashes"),
        pytest.param(
            "--On 5 January 2026 10:11 +0000 Jo Roe\n<jo@example.org> wrote:", "aa", id="Mulberry"
        ),
        pytest.param("2013/4/23 Jo Roe <jo@example.org>\n", "at", id="Gmail of 2013"),
        pytest.param("2013-04-23 10:11 UTC+0200 ~ Jo Roe <jo@example.org>", "a", id="a tilde"),
        pytest.param("Dom, 2015-11-01 às 17:54, Jo Roe escreveu:", "a", id="Evolution, pt"),
        pytest.param("[Jo Roe]", "a", id="in brackets"),
        pytest.param("From: Jo Roe", "a", id="one field"),
        pytest.param("From: Jo Roe\nSubject: Re: x\n", "aat", id="two fields"),
        pytest.param("Jo Roe said:", "a", id="said"),
        pytest.param("Jo Roe wrote on 05.01.2026 10:11:", "a", id="date behind"),
        pytest.param("> On 5 Jan 2026, Sam wrote:", "q", id="inside a quote"),
        pytest.param(
            "Le lun. 5 janv. 2026 à 10:11, Jo Roe\n<jo@example.org> a ?crit :", "aa", id="lost"
        ),
        pytest.param(
            "пн, 5 янв. 2026 г. в 10:11, Jo Roe <jo@example.org>:\n", "at", id="Gmail, ru"
        ),
        pytest.param("2026年1月5日(月) 10:11 Jo Roe <jo@example.org>:\n", "at", id="Gmail, ja"),
        pytest.param(
            "\u200fفي الاثنين، 5 يناير 2026 في 10:11 ص تمت كتابة ما يلي بواسطة "
            "\u202aJo\u202c\u200f <\u202a\n"
            "jo@example.org\u202c\u200f>:\u200f",
            "aa",
            id="Gmail, ar",
        ),
        pytest.param(
            "El lun, 5 ene 2026 a las 10:11, Jo Roe (<\njo@example.org>) escribió:",
            "aa",
            id="Gmail, es",
        ),
        pytest.param(
            "On Wednesday, Jan 29, 2003, at 13:04 Europe/Paris, Jonathan M.\nRoe wrote:",
            "aa",
            id="an initial at the end of a line",
        ),
        pytest.param("On 12/11/20 9:32 AM, Jo Roe wrote:[...]", "a", id="cut"),
    ],
)
def test_attributions_of_programs_are_found(head: str, expected: str) -> None:
    assert letters(f"{head}\n> old\nmine") == f"{expected}qt"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param(
            "FYI\n\n"
            "---------------------- Forwarded by Jo Roe/EX on 01/05/2000 10:11 AM -----------\n\n"
            "Sam Poe <sam@example.org> on 01/05/2000 09:00:00 AM\n"
            "Please respond to sam@example.org\n"
            "To: Jo Roe/EX@EX\ncc:\nSubject: leases\n\nnews\nmore",
            "tt" + "a" * 7 + "ttt",
            id="Lotus Notes, forwarded",
        ),
        pytest.param(
            "Yes.\n\nSam Poe <sam@example.org>\n01/05/2000 09:00 AM\nPlease respond to sam\n\n"
            "        To:     Jo Roe/EX@EX\n        cc:\n        Subject:        leases\n\nold\nold",
            "tt" + "a" * 7 + "qqq",
            id="Lotus Notes, answered",
        ),
        pytest.param(
            "Top.\n\n-----Original Message-----\nFrom: Jo Roe [mailto:jo@example.org]\n"
            "Sent: Monday, January 5, 2026 10:11 AM\nTo: a@example.org; b@example.org;\n"
            "c@example.org; d@example.org\nSubject: Re: leases\n\nold\nold",
            "tt" + "a" * 6 + "qqq",
            id="Outlook, many recipients",
        ),
        pytest.param(
            "Top.\n\n________________________________\nDe : Jo <jo@example.org>\n"
            "Envoyé : lundi 5 janvier 2026 10:11\nÀ : Sam\nObjet : Re: baux\n\nold",
            "ttaaaaaqq",
            id="Outlook, French",
        ),
        pytest.param(
            "*From:* Jo\n*Sent:* Monday 10:11\n*To:* Sam\n*Subject:* x\n\nnews",
            "aaaatt",
            id="nothing above: forwarded",
        ),
        pytest.param(
            "See\n\n---------- Forwarded message ----------\nFrom: Jo <jo@example.org>\n"
            "Date: 2013/4/23\nSubject: x\nTo: Sam\n\n\nnews",
            "ttaaaaattt",
            id="Gmail, forwarded",
        ),
        pytest.param(
            "See\n-------- Forwarded Message --------\nSubject: \tx\nDate: \tMon, 5 Jan 2026\n"
            "From: \tJo\nTo: \tSam\n\nnews",
            "taaaaatt",
            id="Thunderbird, forwarded",
        ),
        pytest.param(
            "Top.\n\nOn Mon, Jan 5, 2026 at 10:11 AM Jo Roe <jo@example.org> wrote:\n\nold\nold",
            "ttaqqq",
            id="Gmail without marks",
        ),
        pytest.param(
            "Top.\n\nAm 05.01.2026 um 10:11 schrieb Jo Roe\n<jo@example.org>:\nold",
            "ttaaq",
            id="wrapped, without marks",
        ),
        pytest.param(
            'JR writes:\n\n>>>>> "SP" == Sam Poe <sam@example.org> writes:\n\nSP> old\nmine',
            "ttatqt",
            id="Supercite",
        ),
    ],
)
def test_blocks_and_separators_of_programs(body: str, expected: str) -> None:
    assert letters(body) == expected


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("On Monday John wrote: a long story\nand it went on\nfor days", id="a story"),
        pytest.param("Hi,\nOn 5 Jan 2026 I wrote:\n  a program\nand it works", id="not alone"),
        pytest.param("Hi\n\nAs he wrote:\n\nit is done\n", id="no date"),
        pytest.param("x\n\nFrom: /dev/sda\nTo: /dev/sdb\n\ndd did it", id="two fields of a copy"),
        pytest.param("x\n\nfrom: x\nto: y\nsubject: z\n\nthat is YAML", id="YAML"),
        pytest.param("x\n\nSELECT a\nFROM: b\nDate: c\nok", id="SQL"),
        pytest.param("x\n\nQ: why\nA: so\nQ: how\nA: thus\n\nend", id="questions and answers"),
        pytest.param(
            "x\n\n2026-01-05  Jo Roe  <jo@example.org>\n\n\t* f.c: New.\n\nend", id="ChangeLog"
        ),
        pytest.param("x\n\nOn 5 May 2019 at 10:00 we met.\nIt was", id="a date in prose"),
        pytest.param("x\n\n----- Results -----\n\n1 2 3\n\nend", id="a heading between dashes"),
        pytest.param("x\n----------\nTo: be or not\n----------\ny", id="rules"),
        pytest.param("x\n\nDate: 5 Jan\nSubject: a talk\nPlace: here\n\nCome!", id="an invitation"),
        pytest.param("x\n\nAn: apple\nVon: here\nDe: there\n\nend", id="words that are fields"),
        pytest.param("x\n" + "_" * 40 + "\nTo: y\nz", id="a rule of underscores"),
        pytest.param("the log says\n\n10:11:12 wrote:\n\n5 bytes", id="a log"),
        pytest.param('printf("%s wrote:\\n", name);\n\n"> ";', id="code"),
    ],
)
def test_lookalikes_of_announcements_stay_text(body: str) -> None:
    assert set(letters(body)) == {"t"}


@pytest.mark.parametrize(
    "prose",
    [
        "I think that is wrong.",
        "On the other hand, it is the case that this one line is longer than the one above it.",
        "See also:",
        "The first of the two questions that you and all the others asked me was:",
        "This is what I found, and I am sure that it is what all of us had in mind when we wrote:",
        "In 2019, they found:",
        "[snip]",
        "[...]",
        "x = {1: 2}",
        "Step 3:",
    ],
)
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


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(
            "It has these:\n\nFrom: the author\nTo: the readers\nDate: when it was sent\n"
            "Subject: what it is about\n\nOf these two are needed.\n\nIs that so?",
            id="a header explained",
        ),
        pytest.param(f"I get this:\n\n{HEADER}\n\nWhy is To wrong?", id="a header shown"),
        pytest.param(f"{HEADER}\n\nWhy is To wrong?", id="a header shown first"),
        pytest.param(
            "So:\n\nVon: Ann\nAn: Bob\nGesendet: 5.1.2026\nBetreff: x\n\nWarum?", id="in German"
        ),
        pytest.param(
            "They write\n\nOn Mon, 5 Jan 2026 10:11, Ann <ann@x.example> wrote:\n\nabove it.",
            id="an attribution shown",
        ),
        pytest.param("In R:\n\n> x <- c(1,2)\n> mean(x)\n[1] 1.5\n\nWhy 1.5?", id="R"),
        pytest.param("> x <- c(1,2)\n> mean(x)\n[1] 1.5\n\nWhy 1.5?", id="R at the begin"),
        pytest.param("R:\n> f <- function(x) {\n+   x\n+ }\n> f(1)\n[1] 1", id="R, wrapped"),
        pytest.param("In F#:\n\n> let x = 5;;\nval x : int = 5\n\n> x;;", id="F#"),
        pytest.param("Python:\n>>> import crane\n>>> crane.lift()\n", id="Python alone"),
        pytest.param("MATLAB:\n>> x = 1\n\nx =\n\n     1\n\n>> y = 2", id="MATLAB"),
        pytest.param("$ cat <<EOF\n> one\n> two\n> EOF\none\ntwo", id="a shell goes on"),
        pytest.param("$ make \\\n> all\n> # that fails\nerror 2", id="a shell's comment"),
        pytest.param("All:\n>> new warnings have this mark:\n>> a.c:1: error: x\n", id="a robot's"),
        pytest.param(
            "The manual says\n\n> The crane lifts what it can and no more.\n\nbut mine does more.",
            id="a document",
        ),
        pytest.param("In my muttrc:\n\nset indent_string=\n> \n| \n\nIs it wrong?", id="mutt"),
        pytest.param("ls \\\n| sort \\\n| uniq \\\n| wc\n", id="a pipeline"),
        pytest.param("It is R> that asks:\n\nR> mean(x)\n1.5", id="a prompt with a name"),
        pytest.param("x:\n\n<<<<<<< a\n1\n=======\n2\n>>>>>>> b\n", id="a conflict"),
        pytest.param("Try\n\n> file cuts\n>> file appends\n\nWhich?", id="two redirections"),
    ],
)
def test_first_message_quotes_nothing_without_a_mark(body: str) -> None:
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
GMAIL = "On Mon, Jan 5, 2026 at 9:08 AM Sam <sam@example.org> wrote:\n"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param(
            f"Top.\n\n{OUTLOOK}old\n\n{GMAIL}> older\n> quotes", "tt" + "a" * 4 + "q" * 6,
            id="Outlook above a mail with a quote",
        ),
        pytest.param(
            f"Top.\n\n{GMAIL}old\n\nOn 05/01/2026 08:08, Ann wrote:\n> older", "tta" + "q" * 4,
            id="an unmarked mail with a quote",
        ),
        pytest.param(f"{OUTLOOK}> old\nmine\n{GMAIL}> older", "aaaatqtaq", id="marks below it"),
        pytest.param(
            f"Top.\n\n{OUTLOOK}unmarked\n> older\nmine", "tt" + "a" * 4 + "ttqt",
            id="answers in an unmarked mail",
        ),
        pytest.param(
            "Top, and more.\nJo\n    On Monday, 5 January 2026, 10:11:12 BST, Sam Poe "
            "<sam@example.org> wrote:  \n \n old", "ttaqq", id="Yahoo right below a name",
        ),
        pytest.param(
            "Top.\nSam\nOn Jan 5, 2026, 10:11 AM -0800, Jo <jo@example.org>, wrote:\nold",
            "ttaq", id="Spark right below a name",
        ),
        pytest.param("* Jo Roe:\n\n> old\nmine", "atqt", id="a name behind a star"),
        pytest.param("* Jo Roe:\nis a list\n> old", "ttq", id="an item that ends in a colon"),
        pytest.param(
            "Jan 5, 2026, 10:11 by jo@example.org:\n\n> old\nmine", "atqt", id="Tutanota"
        ),
        pytest.param(
            "Top.\n----------Reply to Message----------\nold", "taq", id="QQ Mail"
        ),
        pytest.param(
            "Hi\n-- \nJo Roe\nExample Inc.\nOn Mon, Jan 5, 2026 at 5:16 PM Some name of a list <"
            "\ndev@example.org> wrote:\n\n> old", "tsssaatq", id="wrapped below a signature",
        ),
    ],
)  # fmt: skip
def test_unmarked_mail_is_quoted_to_its_end(body: str, expected: str) -> None:
    assert letters(body) == expected


HEAD = "From: Jo Roe <jo@example.org>\nDate: Mon, 5 Jan 2026 10:11:12 +0100\nSubject: [PATCH] x\n"


def test_head_of_a_pasted_patch_is_text() -> None:
    diff = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b"
    assert letters(f"Rebased.\n\n{HEAD}\nWhy.\n---\n{diff}") == "t" * 8 + "p" * 6
    assert letters(f"Rebased.\n\n{HEAD}\nWhy.")[-1] == "q"
