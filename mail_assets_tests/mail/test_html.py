"""HTML bodies as text."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mail_assets.mail.html import MAX_HTML, html_to_text


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("", ""),
        ("<p>a<br>b</p><p>c</p>", "a\nb\n\nc"),
        ("<script>x</script><style>y</style><!-- z -->seen", "seen"),
        ("a &amp; b&nbsp;&lt;c&gt;", "a & b\xa0<c>"),
        ("<pre>a\n   b</pre>", "a\n   b"),
        ("<title>t</title><body></body>", ""),
        ("a\0b\r\nc", "ab c"),
        ("<div>a</div><div><br></div><div><br></div><div><br></div><div>b</div>", "a\n\nb"),
        ("<blockquote>indented</blockquote>reply", "indented\nreply"),
        ("<blockquote type=cite>q1<br>q2</blockquote>new", "> q1\n> q2\nnew"),
        ('<blockquote class="gmail_quote">q</blockquote>new', "> q\nnew"),
        (
            '<blockquote type="cite">a<blockquote type="cite">b</blockquote>c</blockquote>d',
            "> a\n>> b\n> c\nd",
        ),
        ("</blockquote>stray", "stray"),
        ("<blockquote type=cite>open", "> open"),
        ("\ue0f0 literal \ue0f1", "literal"),
    ],
)
def test_visible_text_keeps_its_lines(html: str, text: str) -> None:
    assert html_to_text(html) == text


@settings(deadline=None, max_examples=200, derandomize=True)
@given(
    st.lists(
        st.sampled_from(
            [
                "<blockquote type=cite>",
                "</blockquote>",
                "<p>",
                "<!--",
                "<table><tr>",
                "&#0;",
                "&#xd800;",
            ]
        )
        | st.text(max_size=10)
        | st.sampled_from(["\ud800", "\0", "\ue0f0", "\ue0f1", "<", ">", "</"])
    ).map("".join)
)
def test_any_html_gives_text_for_postgres(html: str) -> None:
    text = html_to_text(html)
    assert not set(text) & set("\0\r\ue0f0\ue0f1")
    assert text.encode().decode() == text


@pytest.mark.slow
@pytest.mark.parametrize(
    "html",
    [
        "<div>" * 100_000,
        "<table><tr><td>" * 20_000,
        "<b><a>" * 30_000,
        "&" * MAX_HTML,
        "<p " + "a=b " * 200_000 + ">",
        "<blockquote type=cite>" * 50_000,
        "<blockquote" * 100_000,
    ],
)
def test_hostile_html_ends(html: str) -> None:
    text = html_to_text(html + "</p>end")
    assert text == html_to_text(html + "</p>end")
    assert len(text) <= MAX_HTML
