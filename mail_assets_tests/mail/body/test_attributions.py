"""Attributions and Outlook's header blocks."""

import pytest

from mail_assets_tests.mail.kinds import letters


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
def test_who_wrote_what_is_quoted_below(body: str, expected: str) -> None:
    assert letters(body) == expected
