"""Signatures, PGP armour, phones and sign-offs; sentences are never taken."""

import pytest

from mail_assets_tests.mail.kinds import letters

BROADCAST = "---------------------------(end of broadcast)---------------------------"
HEADER = "From: Sam Poe <sam@example.org>\nSent: Monday, January 5, 2026 10:11 AM\nTo: Jo\n"
HEADER += "Subject: x"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param("hi\n-- \nMe\n\n-- \nlist sig", "tsssss", id="two signatures"),
        pytest.param("hi\n-- \nMe\n> quoted below\nanswer", "tssqt", id="signature up to a quote"),
        pytest.param(
            "hi\n-- \nMe\n-----Original Message-----\nFrom: A\nTo: B\n\nold",
            "tssaaaqq",
            id="signature up to an original message",
        ),
        pytest.param("hi\n--\nMe", "tss", id="signature without the space"),
        pytest.param("No, they lift well.\n\n~Jo", "tts", id="a name behind a tilde"),
        pytest.param("No, they lift well.\n\n— Jo Roe", "tts", id="a name behind a dash"),
        pytest.param("Look into\n\n~jo/bin and\n\n— or so", "ttttt", id="a path and a dash"),
        pytest.param(
            'It lifts.\n--\n Jo <jo at example dot org>\n "There is a crane in every harbor."',
            "tsss",
            id="a spoken address below a separator",
        ),
        pytest.param(
            "-- \nDear all,\n\nwe have moved.\nPlease write\nto the new address.\nJo",
            "s" + "t" * 6,
            id="a letter below the separator",
        ),
        pytest.param("\n-- \nJo\nExample Inc.\n", "tssss", id="a signature and nothing else"),
        pytest.param(
            "> old\n-- \n" + "Jo\n" * 6, "q" + "s" * 8, id="a long signature below a quote"
        ),
        pytest.param("hi\n--\n" + "text\n" * 20, "t" * 23, id="-- far from the end is none"),
        pytest.param("hi\n-- \n" + "text\n" * 60, "t" * 63, id="a long signature is none"),
        pytest.param(
            "create table a();\n--\n-- Name: b\n--\ncreate table b();",
            "ttttt",
            id="SQL comment block",
        ),
        pytest.param("select 1; -- one\n-- foo\nselect 2;", "ttt", id="SQL comment"),
        pytest.param(
            "hi\n-- \n-- \n" + BROADCAST + "\nTIP 4: x", "tssff", id="empty signature over a footer"
        ),
        pytest.param(
            f"hi\n{BROADCAST}\nTIP 5: Have you checked our FAQ?\n\n  https://example.org/faq\n",
            "tfffft",
            id="pgsql TIP with a link",
        ),
        pytest.param(
            f"hi\n{BROADCAST}\nTIP 4: x\n\nanswer below", "tfftt", id="text below a footer stays"
        ),
        pytest.param(
            "hi\n-- \nSent via pgsql-x mailing list (pgsql-x@example.org)\nTo make changes:\nhttp://x",
            "tffff",
            id="majordomo: the separator is the footer's",
        ),
        pytest.param(
            "hi\n" + "_" * 47 + "\nfoo mailing list\nfoo@lists.example.org\nhttps://x",
            "tffff",
            id="Mailman 2",
        ),
        pytest.param(
            "hi\n" + "_" * 47 + "\nfoo mailing list -- foo@lists.example.org\nTo unsubscribe",
            "tfff",
            id="Mailman 3",
        ),
        pytest.param(
            "please send it to\nthe mailing list\nand wait",
            "ttt",
            id="prose that ends like a footer",
        ),
        pytest.param("a\n" + "_" * 40 + "\nb", "ttt", id="a rule is no footer"),
        pytest.param(
            "hi\n-- \nMe\n-------------- next part --------------\nscript",
            "tssft",
            id="pipermail part",
        ),
        pytest.param(
            "hi\n--------- next part ---------\nAn HTML attachment was scrubbed...\nURL: x",
            "tfff",
            id="pipermail scrubbed part",
        ),
        pytest.param(
            "hi\n-- \nMe\nOn Mon, 5 Jan 2026, X wrote:\n> old\nmore",
            "tssaqt",
            id="an answer goes on below",
        ),
        pytest.param("ok\n\nSent from my phone\n", "ttst", id="mobile"),
        pytest.param("it was\nsent from my server to\nthe client", "ttt", id="prose like mobile"),
        pytest.param(
            "-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA1\n\nreal\n"
            "-----BEGIN PGP SIGNATURE-----\nabc\n-----END PGP SIGNATURE-----",
            "ssstsss",
            id="clear-signed",
        ),
        pytest.param(
            "-----BEGIN PGP SIGNATURE-----\n" + "text\n" * 5, "s" + "t" * 6, id="armour without end"
        ),
    ],
)
def test_endings_of_a_mail_are_no_new_text(body: str, expected: str) -> None:
    assert letters(body) == expected


@pytest.mark.parametrize(
    ("below", "expected"),
    [
        pytest.param(f"{'_' * 32}\n{HEADER}\n\nold", "aaaaaqq", id="Outlook's rule"),
        pytest.param(f"{'_' * 32}\n{HEADER}", "aaaaa", id="nothing below"),
        pytest.param(f"-----Original Message-----\n{HEADER}\n\nold", "aaaaaqq", id="a separator"),
        pytest.param(f"{HEADER}\n\nold", "aaaaqq", id="fields alone"),
        pytest.param(
            "On Mon, 5 Jan 2026, Sam Poe\n<sam@example.org> wrote:\n> old",
            "aaq",
            id="a wrapped attribution",
        ),
        pytest.param("Jo wrote:\nold", "tt", id="an attribution of nothing marked"),
        pytest.param("> old", "q", id="a quote"),
        pytest.param(
            f"{'_' * 47}\ndev mailing list\ndev@example.org", "fff", id="the list's footer"
        ),
        pytest.param("-- \nJo Roe", "ss", id="a signature"),
        pytest.param("\nmore", "tt", id="a blank line"),
    ],
)
def test_phone_signature_is_found_above_old_text(below: str, expected: str) -> None:
    assert letters(f"Yes.\n\nSent from my iPhone\n{below}") == f"tts{expected}"


@pytest.mark.parametrize("below", ["to you", "_" * 40, "-" * 40, "From: here\nTo: there"])
def test_sentence_that_begins_like_a_phones_signature_goes_on(below: str) -> None:
    assert set(letters(f"Yes.\n\nSent from my crane\n{below}\nand back")) == {"t"}


TEXT = "The crane is broken.\n\n"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param(TEXT + "Regards,\nJo", "ttts", id="a name under a closing"),
        pytest.param(TEXT + "Regards,\n\nJo Roe", "tttts", id="with a blank line between"),
        pytest.param(TEXT + "Regards!\r\nJo Roe", "ttts", id="with a stray carriage return"),
        pytest.param(TEXT + "Regards,\xa0\nJo Roe", "ttts", id="with a no-break blank"),
        pytest.param(TEXT + "Viele Grüße\nJo Roe", "ttts", id="a closing in German"),
        pytest.param(TEXT + "Cordialement,\njo", "ttts", id="a name in lower case"),
        pytest.param(TEXT + "regards, jo roe", "tts", id="closing and name on one line"),
        pytest.param(
            TEXT + "Regards.\n\nJo Roe\njo@example.org\n+49 30 1234567",
            "ttttsss",
            id="how to reach the owner of the name",
        ),
        pytest.param(TEXT + "Cheers,\nJo\n\nPS: and the lift.", "tttstt", id="over a postscript"),
        pytest.param(TEXT + "Cheers,\nJo\n> old\n> older", "tttsqq", id="over a quote"),
        pytest.param(TEXT + "Thanks, Jo", "ttt", id="thanks to somebody"),
        pytest.param(TEXT + "Thanks,\nand good bye to you all", "tttt", id="a sentence goes on"),
        pytest.param(TEXT + "Thanks,\neveryone", "tttt", id="a word that is no name"),
        pytest.param("Dear all,\n\nJo", "ttt", id="no closing"),
        pytest.param("Jo", "t", id="a name and nothing else"),
        pytest.param(TEXT + "We met\nJo Roe", "tttt", id="a name that ends a sentence"),
    ],
)
def test_name_under_a_closing_signs(body: str, expected: str) -> None:
    assert letters(body) == expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param(TEXT + "Jo", "tts", id="the first name"),
        pytest.param(TEXT + "-jo", "tts", id="behind a dash"),
        pytest.param("It rained.\nJosephine", "ts", id="right below the text"),
        pytest.param(TEXT + "J.", "tts", id="the first letter"),
        pytest.param(TEXT + "Thanks, Jo", "tts", id="thanks of the author"),
        pytest.param(TEXT + "Jo Roe\nRoe and Sons\nhttps://roe.example", "ttsss", id="a company"),
        pytest.param(
            TEXT + "-" * 30 + "\nJo Roe      |  /\\_\nTel: 1 23  | /", "ttsss", id="below a rule"
        ),
        pytest.param(
            TEXT + "_" * 40 + "\nJo Roe\nhttps://roe.example", "ttsss", id="no list's footer"
        ),
        pytest.param(TEXT + "Jo,\n\nplease call.", "ttttt", id="a greeting"),
        pytest.param(TEXT + "Ann\nJosef Kay", "ttt" + "t", id="somebody else"),
        pytest.param(TEXT + "Joists", "ttt", id="a word that begins like the name"),
        pytest.param(TEXT + "R?e", "tts", id="a letter that was lost"),
        pytest.param(TEXT + "ok?", "ttt", id="a question as long as the name"),
        pytest.param(TEXT + "Jo says it is.", "ttt", id="a sentence about the author"),
    ],
)
def test_author_s_own_name_signs(body: str, expected: str) -> None:
    assert letters(body, "Josephine Roe (crane driver)", "jo@example.org") == expected


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        *[("山田", "s"), ("山田 太郎", "s"), ("太郎", "s"), ("山田太郎", "s"), ("山", "s")],
        *[("山本", "t"), ("田太", "t"), ("郎", "t"), ("以上", "t"), ("山田です。", "t")],
    ],
)
def test_name_without_blanks_is_signed_by_either_half(line: str, kind: str) -> None:
    assert letters(f"本文です。\n\n{line}", "山田太郎", "taro@example.jp") == "tt" + kind


RULED = "It went down at ten that night. Then it came up again."


@pytest.mark.parametrize("rule", ["--", "--\t", "—", "–", "--  "])
@pytest.mark.parametrize(
    "below",
    [
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
    ],
)
def test_two_dashes_above_sentences_divide_text(rule: str, below: str) -> None:
    assert set(letters(f"Please try the options.\n\n{rule}\n{below}\n")) == {"t"}


@pytest.mark.parametrize(
    "body",
    [
        "Hello.\n\n--\nJo Roe\nroom 5",
        "Hello.\n\nJo\n--\nIt is easier to mend a crane than to live with one.",
        "Hello.\n\nYours, Jo...\n\n--\nIt is easier to mend a crane than to live with one.",
        'Hello.\n\n--\n"It is easier to mend a crane than to live with one."',
        "Hello.\n\n--\nJo Roe <jo@x.example> where all the cranes are at home\nroom 5",
        "Hello.\n\n- --\nIt is easier to mend a crane than to live with one.",
        "Hello.\n\n-- \nIt is easier to mend a crane than to live with one.",
    ],
)
def test_two_dashes_above_a_saying_sign(body: str) -> None:
    assert letters(body)[-1] == "s"
