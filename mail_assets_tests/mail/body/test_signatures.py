"""Signatures, PGP armour and list footers, and what only looks like them."""

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
def test_what_ends_a_mail_is_not_new_text(body: str, expected: str) -> None:
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
def test_a_phone_signs_right_above_what_is_not_new(below: str, expected: str) -> None:
    assert letters(f"Yes.\n\nSent from my iPhone\n{below}") == f"tts{expected}"


@pytest.mark.parametrize("below", ["to you", "_" * 40, "-" * 40, "From: here\nTo: there"])
def test_a_sentence_that_begins_like_a_phones_signature_goes_on(below: str) -> None:
    assert set(letters(f"Yes.\n\nSent from my crane\n{below}\nand back")) == {"t"}
