"""Names under a text, with what stands below them, are signature; sentences never are."""

import pytest

from mail_assets_tests.mail.kinds import letters

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
def test_a_name_under_a_closing_signs(body: str, expected: str) -> None:
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
def test_the_author_s_own_name_signs(body: str, expected: str) -> None:
    assert letters(body, "Josephine Roe (crane driver)", "jo@example.org") == expected


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        *[("山田", "s"), ("山田 太郎", "s"), ("太郎", "s"), ("山田太郎", "s"), ("山", "s")],
        *[("山本", "t"), ("田太", "t"), ("郎", "t"), ("以上", "t"), ("山田です。", "t")],
    ],
)
def test_a_name_without_blanks_is_signed_by_either_half(line: str, kind: str) -> None:
    assert letters(f"本文です。\n\n{line}", "山田太郎", "taro@example.jp") == "tt" + kind
