"""Signatures, PGP armour, phones and sign-offs; sentences stay text."""

import pytest

from mail_assets_tests.cases import cases
from mail_assets_tests.mail.kinds import letters

BROADCAST = "---------------------------(end of broadcast)---------------------------"
HEADER = "From: Sam Poe <sam@example.org>\nSent: Monday, January 5, 2026 10:11 AM\nTo: Jo\n"
HEADER += "Subject: x"


@cases("body, expected", {
    "two signatures": ("hi\n-- \nMe\n\n-- \nlist sig", "tsssss"),
    "signature up to a quote": ("hi\n-- \nMe\n> quoted below\nanswer", "tssqt"),
    "signature up to an original message": (
        "hi\n-- \nMe\n-----Original Message-----\nFrom: A\nTo: B\n\nold",
        "tssaaaqq",
    ),
    "text below git's version": ("hi\n-- \n2.30.2\n\nv2: a comma less, as\nyou said.", "tssstt"),
    "blank lines below git's version": ("hi\n-- \n2.42.0.459.ge4e3-goog\n\n", "tssss"),
    "signature without the space": ("hi\n--\nMe", "tss"),
    "a name behind a tilde": ("No, they lift well.\n\n~Jo", "tts"),
    "a name behind a dash": ("No, they lift well.\n\n— Jo Roe", "tts"),
    "a path and a dash": ("Look into\n\n~jo/bin and\n\n— or so", "ttttt"),
    "a spoken address below a separator": (
        'It lifts.\n--\n Jo <jo at example dot org>\n "There is a crane in every harbor."',
        "tsss",
    ),
    "a letter below the separator": (
        "-- \nDear all,\n\nwe have moved.\nPlease write\nto the new address.\nJo",
        "s" + "t" * 6,
    ),
    "a signature and nothing else": ("\n-- \nJo\nExample Inc.\n", "tssss"),
    "a long signature below a quote": ("> old\n-- \n" + "Jo\n" * 6, "q" + "s" * 8),
    "-- far from the end is none": ("hi\n--\n" + "text\n" * 20, "t" * 23),
    "a long signature is none": ("hi\n-- \n" + "text\n" * 60, "t" * 63),
    "SQL comment block": ("create table a();\n--\n-- Name: b\n--\ncreate table b();", "ttttt"),
    "SQL comment": ("select 1; -- one\n-- foo\nselect 2;", "ttt"),
    "empty signature over a footer": ("hi\n-- \n-- \n" + BROADCAST + "\nTIP 4: x", "tssff"),
    "pgsql TIP with a link": (
        f"hi\n{BROADCAST}\nTIP 5: Have you checked our FAQ?\n\n  https://example.org/faq\n",
        "tfffft",
    ),
    "text below a footer stays": (f"hi\n{BROADCAST}\nTIP 4: x\n\nanswer below", "tfftt"),
    "majordomo: the separator is the footer's": (
        "hi\n-- \nSent via pgsql-x mailing list (pgsql-x@example.org)\nTo make changes:\nhttp://x",
        "tffff",
    ),
    "Mailman 2": ("hi\n" + "_" * 47 + "\nfoo mailing list\nfoo@lists.example.org\nhttps://x",
                  "tffff"),
    "Mailman 3": ("hi\n" + "_" * 47 + "\nfoo mailing list -- foo@lists.example.org\nTo unsubscribe",
                  "tfff"),
    "prose that ends like a footer": ("please send it to\nthe mailing list\nand wait", "ttt"),
    "a rule is no footer": ("a\n" + "_" * 40 + "\nb", "ttt"),
    "pipermail part": ("hi\n-- \nMe\n-------------- next part --------------\nscript", "tssft"),
    "pipermail scrubbed part": (
        "hi\n--------- next part ---------\nAn HTML attachment was scrubbed...\nURL: x",
        "tfff",
    ),
    "an answer goes on below": ("hi\n-- \nMe\nOn Mon, 5 Jan 2026, X wrote:\n> old\nmore", "tssaqt"),
    "mobile": ("ok\n\nSent from my phone\n", "ttst"),
    "mobile, below a quote": ("ok\n\nJo wrote:\n> old\n> --\nSent from my phone", "ttaqqs"),
    "prose like mobile": ("it was\nsent from my server to\nthe client", "ttt"),
    "clear-signed, without a blank line": (
        "-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA1\nreal",
        "sst",
    ),
    "clear-signed": ("-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA1\n\nreal\n"
                     "-----BEGIN PGP SIGNATURE-----\nabc\n-----END PGP SIGNATURE-----", "ssstsss"),
    "armour without end": ("-----BEGIN PGP SIGNATURE-----\n" + "text\n" * 5, "s" + "t" * 6),
})  # fmt: skip
def test_endings_of_a_mail_are_no_new_text(body: str, expected: str) -> None:
    assert letters(body) == expected


@cases(
    "below, expected",
    {
        "Outlook's rule": (f"{'_' * 32}\n{HEADER}\n\nold", "aaaaaqq"),
        "nothing below": (f"{'_' * 32}\n{HEADER}", "aaaaa"),
        "a separator": (f"-----Original Message-----\n{HEADER}\n\nold", "aaaaaqq"),
        "fields alone": (f"{HEADER}\n\nold", "aaaaqq"),
        "a wrapped attribution": (
            "On Mon, 5 Jan 2026, Sam Poe\n<sam@example.org> wrote:\n> old",
            "aaq",
        ),
        "an attribution of nothing marked": ("Jo wrote:\nold", "tt"),
        "a quote": ("> old", "q"),
        "the list's footer": (f"{'_' * 47}\ndev mailing list\ndev@example.org", "fff"),
        "a signature": ("-- \nJo Roe", "ss"),
        "a blank line": ("\nmore", "tt"),
    },
)
def test_phone_signature_is_found_above_old_text(below: str, expected: str) -> None:
    assert letters(f"Yes.\n\nSent from my iPhone\n{below}") == f"tts{expected}"


@pytest.mark.parametrize("below", ["to you", "_" * 40, "-" * 40, "From: here\nTo: there"])
def test_sentence_like_a_phones_signature_stays_text(below: str) -> None:
    assert set(letters(f"Yes.\n\nSent from my crane\n{below}\nand back")) == {"t"}


TEXT = "The crane is broken.\n\n"


@cases(
    "body, expected",
    {
        "a name under a closing": (TEXT + "Regards,\nJo", "ttts"),
        "with a blank line between": (TEXT + "Regards,\n\nJo Roe", "tttts"),
        "with a stray carriage return": (TEXT + "Regards!\r\nJo Roe", "ttts"),
        "with a no-break blank": (TEXT + "Regards,\xa0\nJo Roe", "ttts"),
        "a closing in German": (TEXT + "Viele Grüße\nJo Roe", "ttts"),
        "a name in lower case": (TEXT + "Cordialement,\njo", "ttts"),
        "closing and name on one line": (TEXT + "regards, jo roe", "tts"),
        "how to reach the owner of the name": (
            TEXT + "Regards.\n\nJo Roe\njo@example.org\n+49 30 1234567",
            "ttttsss",
        ),
        "over a telephone and a postscript": (
            TEXT + "Cheers,\nJo\nTel. +49 30/1234-567\n+1 (555) 123-4567\n\nPS: and the lift.",
            "tttssstt",
        ),
        "no name over a telephone": (TEXT + "Call us\n+49 30 1234567\n\nBye then.", "tttttt"),
        "over a postscript": (TEXT + "Cheers,\nJo\n\nPS: and the lift.", "tttstt"),
        "over a quote": (TEXT + "Cheers,\nJo\n> old\n> older", "tttsqq"),
        "thanks to somebody": (TEXT + "Thanks, Jo", "ttt"),
        "a sentence goes on": (TEXT + "Thanks,\nand good bye to you all", "tttt"),
        "a word that is no name": (TEXT + "Thanks,\neveryone", "tttt"),
        "no closing": ("Dear all,\n\nJo", "ttt"),
        "a name and nothing else": ("Jo", "t"),
        "a name that ends a sentence": (TEXT + "We met\nJo Roe", "tttt"),
    },
)
def test_name_under_a_closing_is_signature(body: str, expected: str) -> None:
    assert letters(body) == expected


@cases("body, expected", {
    "the first name": (TEXT + "Jo", "tts"),
    "behind a dash": (TEXT + "-jo", "tts"),
    "right below the text": ("It rained.\nJosephine", "ts"),
    "the first letter": (TEXT + "J.", "tts"),
    "thanks of the author": (TEXT + "Thanks, Jo", "tts"),
    "a company": (TEXT + "Jo Roe\nRoe and Sons\nhttps://roe.example", "ttsss"),
    "below a rule": (TEXT + "-" * 30 + "\nJo Roe      |  /\\_\nTel: 1 23  | /", "ttsss"),
    "the address below a rule": (
        TEXT + "━━━━━━━━\nExample Inc., Harbor 5\nMail: jo@example.org\n━━━━━━━━",
        "ttssss",
    ),
    "another address below a rule": (TEXT + "--------\nMail: ann@example.org", "tttt"),
    "no list's footer": (TEXT + "_" * 40 + "\nJo Roe\nhttps://roe.example", "ttsss"),
    "a greeting": (TEXT + "Jo,\n\nplease call.", "ttttt"),
    "somebody else": (TEXT + "Ann\nJosef Kay", "ttt" + "t"),
    "a word that begins like the name": (TEXT + "Joists", "ttt"),
    "a letter that was lost": (TEXT + "R?e", "tts"),
    "a question as long as the name": (TEXT + "ok?", "ttt"),
    "a sentence about the author": (TEXT + "Jo says it is.", "ttt"),
})  # fmt: skip
def test_authors_own_name_is_signature(body: str, expected: str) -> None:
    assert letters(body, "Josephine Roe (crane driver)", "jo@example.org") == expected


@pytest.mark.parametrize(("name", "line"), [
    ("Joerg Roe", "Jörg"), ("Joerg Roe", "J?rg"), ("Jörg Roe", "Joerg Roe"), ("Jose Roe", "José"),
    ("Soren Roe", "Søren"), ("Lukasz Roe", "Łukasz"), ("Петр Роу", "Пётр"),
])  # fmt: skip
def test_name_is_signed_with_other_accents(name: str, line: str) -> None:
    assert letters(f"{TEXT}{line}", name, "x@example.org") == "tts"


@pytest.mark.parametrize(("line", "kind"), [
    *[("山田", "s"), ("山田 太郎", "s"), ("太郎", "s"), ("山田太郎", "s"), ("山", "s")],
    *[("山本", "t"), ("田太", "t"), ("郎", "t"), ("以上", "t"), ("山田です。", "t")],
])  # fmt: skip
def test_name_without_blanks_is_signed_by_either_half(line: str, kind: str) -> None:
    assert letters(f"本文です。\n\n{line}", "山田太郎", "taro@example.jp") == "tt" + kind


RULED = "It went down at ten that night. Then it came up again."


@pytest.mark.parametrize("rule", ["--", "--\t", "—", "–", "--  "])
@pytest.mark.parametrize("below", [
    f"The second part of my mail begins here and tells more.\n\n{RULED}\n\nWhat can I do?",
    f"Next topic.\n\n{RULED}",
    f"{RULED}",
    "What can I do about the server?",
    "1. stop it\n2. start it\n3. see",
    "- the crane\n- the winch",
    f"See https://x.example for this part of it all.\n\n{RULED}\n\n{RULED}",
    "Der Server ist gestern Abend ausgefallen und kam dann wieder hoch.",
    "Сервер вчера вечером упал, и потом снова поднялся.",
    "サーバーが止まりました。",
])  # fmt: skip
def test_two_dashes_above_sentences_divide_text(rule: str, below: str) -> None:
    assert set(letters(f"Please try the options.\n\n{rule}\n{below}\n")) == {"t"}


@pytest.mark.parametrize("body", [
    "Hello.\n\n--\nJo Roe\nroom 5",
    "Hello.\n\nJo\n--\nIt is easier to mend a crane than to live with one.",
    "Hello.\n\nYours, Jo...\n\n--\nIt is easier to mend a crane than to live with one.",
    'Hello.\n\n--\n"It is easier to mend a crane than to live with one."',
    "Hello.\n\n--\nJo Roe <jo@x.example> where all the cranes are at home\nroom 5",
    "Hello.\n\n- --\nIt is easier to mend a crane than to live with one.",
    "Hello.\n\n-- \nIt is easier to mend a crane than to live with one.",
])  # fmt: skip
def test_two_dashes_above_a_saying_begin_a_signature(body: str) -> None:
    assert letters(body)[-1] == "s"


@pytest.mark.parametrize(("above", "begin", "name"), [
    ("", "s", "Jo Roe"),
    ("~~~~~~~~~~\n", "s", "Jo Roe"),
    ("Please answer to the list, not to me.\n", "s", "Jo Roe"),
    ("", "t", "Sam Poe"),
    ("a\nb\nc\n", "t", "Jo Roe"),
])  # fmt: skip
def test_long_block_below_two_dashes_is_signed_by_name(above: str, begin: str, name: str) -> None:
    block = f"--\n{above}Jo Roe      Example Inc.\n" + "a line of the address\n" * 12
    assert letters(f"Hello.\n\n{block}", name)[2] == begin


def test_rule_above_the_name_is_within_the_signature() -> None:
    rule = "_" * 60
    signature = (
        f"-- \n{rule}\n\nJo Roe    Example Inc.\nhttps://example.org\n\nCranes lift.\n{rule}"
    )
    note = "-------------- next part --------------\nAn HTML attachment was scrubbed..."
    assert letters(f"hi\n\n{signature}\n{note}", "Jo Roe") == "tt" + "s" * 8 + "ff"
    assert letters(f"hi\n\n{signature}", "Sam Poe")[3] == "f"
