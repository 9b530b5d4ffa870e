"""HTML as text: lines, quotes, and hidden text."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mail_assets.mail.message.html_text import (
    MAX_HTML,
    MAX_LIST_DEPTH,
    MAX_QUOTE_DEPTH,
    html_to_text,
)


@pytest.mark.parametrize(("html", "text"), [
    ("", ""),
    ("<p>a<br>b</p><p>c</p>", "a\nb\n\nc"),
    ("<script>x</script><style>y</style><!-- z -->seen", "seen"),
    ("a &amp; b&nbsp;&lt;c&gt;", "a & b\xa0<c>"),
    ("<pre>a\n   b</pre>", "a\n   b"),
    ("<title>t</title><body></body>", ""),
    ("a\0b\r\nc", "ab c"),
    ("<div>a</div><div><br></div><div><br></div><div><br></div><div>b</div>", "a\n\nb"),
    ('<blockquote style="margin:0 0 0 40px;border:none">in</blockquote>re', "in\nre"),
    ("<blockquote>q</blockquote>reply", "> q\nreply"),
    ('<blockquote style="BORDER-LEFT: #000 2px solid">q</blockquote>reply', "> q\nreply"),
    ("<div style='border:none;border-left:solid blue 1.5pt'><div>q</div></div>n", "> q\nn"),
    ('<div class="yahoo_quoted"><div>Jo wrote:</div>q</div>', "> Jo wrote:\n> q"),
    ("<blockquote type=cite>q1<br>q2</blockquote>new", "> q1\n> q2\nnew"),
    ('<blockquote class="gmail_quote">q</blockquote>new', "> q\nnew"),
    ('<blockquote type="cite">a<blockquote type="cite">b</blockquote>c</blockquote>d',
     "> a\n>> b\n> c\nd"),
    ("</blockquote>stray", "stray"),
    ("<blockquote type=cite>open", "> open"),
    ("<a href=x>a</a> <font color='a>b'>b</font>", "a b"),
    ('<p title="a>b">c</p>', "c"),
    ("<p title=it's>a</p><p>it's b</p>", "a\n\nit's b"),
    ('<!-- <p title="x --> a "b" <p>c', 'a "b"\n\nc'),
    ("<script>if (a<b) '</p>'</script>a", "a"),
    ("<STYLE>p {}</Style >a<style>p", "a"),
    ("1 < 2 and 3 > 2", "1 < 2 and 3 > 2"),
    ("<img src='data:image/png;base64,AAAA'>a", "a"),
    ("<o:p>a</o:p><custom-tag>b</custom-tag>", "ab"),
    ("<details><summary>a</summary>b</details><nav>c</nav><form>d</form>e", "a\nb\nc\nd\ne"),
    ("<figure><figcaption>a</figcaption>b</figure><aside>c</aside>d", "a\nb\nc\nd"),
    ("a<p", "a"),
    ("\ue0f0 literal \ue0f1", "literal"),
])  # fmt: skip
def test_visible_text_keeps_its_lines(html: str, text: str) -> None:
    assert html_to_text(html) == text


@settings(max_examples=200)
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


@pytest.mark.parametrize(("html", "behind"), [
    ("<blockquote type=cite>" * 3_000, ">" * MAX_QUOTE_DEPTH + " end"),
    ("<b><a>" * 3_000, "end"),
    ("<blockquote" * 3_000, ""),
    ("<!-- " * 3_000, ""),
    ("<script>" * 3_000, ""),
    ('<a b="' * 3_001, ""),
    ("<a " + "b " * 3_000, ""),
])  # fmt: skip
def test_unclosed_markup_hides_only_later_text(html: str, behind: str) -> None:
    assert html_to_text(f"<p>seen</p>{html}end").split("\n")[0] == "seen"
    assert html_to_text(f"<p>seen</p>{html}end").removeprefix("seen").strip() == behind


@pytest.mark.parametrize("tag", ["ul", "ol"])
def test_nested_lists_are_indented_up_to_a_limit(tag: str) -> None:
    def indents(depth: int, closed: str = "") -> list[int]:
        lines = html_to_text(f"<{tag}><li>x" * depth + closed + "<p>end").split("\n")
        return [len(line) - len(line.lstrip()) for line in lines if line.strip()]

    deep = indents(3_000)
    assert len(deep) == 3_001
    assert max(deep) == max(indents(MAX_LIST_DEPTH)) > max(indents(MAX_LIST_DEPTH - 1))
    assert indents(3_000, f"</{tag}>" * 3_000)[-1] == 0


@pytest.mark.parametrize(
    "unit",
    ["<ul>x</ol>", "<ul><table><td>x</ul>", "<ul><ol>x</ul>", "<ul><table>x</ul>", "<ol>x</p>"],
)
@pytest.mark.parametrize("before", ["", "</ul>" * 2_000 + "</ol>" * 2_000])
def test_nested_lists_are_counted_despite_stray_ends(before: str, unit: str) -> None:
    html = before + unit * 2_000
    assert len(html_to_text(html)) < 10 * len(html)


def test_html_is_read_up_to_a_limit() -> None:
    assert html_to_text("x" * (MAX_HTML - 3) + "<p>unread") == "x" * (MAX_HTML - 3)


@pytest.mark.parametrize(
    "hidden",
    [
        '<div style="display:none">H</div>',
        "<div style='DISPLAY : NONE !important;'>H<div>H</div>H</div>",
        "<span style=display:none>H</span>",
        "<p hidden>H",
        '<div hidden="until-found">H</div>',
        '<span style="mso-hide:all">H</span>',
        '<span style="color:red;visibility:hidden">H</span>',
        '<span style="opacity:0;">H</span>',
        '<span style="font-size:0px;line-height:0">H</span>',
        '<div style="max-height:0px; overflow:hidden">H<p>H</p></div>',
        '<div style="height:0;width:0;overflow:hidden;">H</div>',
        '<div style="text-indent:-9999px">H</div>',
        "<template><p>H</p></template>",
        "<!--[if mso]><p>H</p><![endif]-->",
        "<!-- H --!>",
        "<!-- <p>H</p> -- >H-->",
        (
            "<style>.pre, p.x { display:none } #y { display:none }</style>"
            '<div class="a PRE">H</div><p class=x>H</p><span id="y">H</span>'
        ),
        "<ul><li style='display:none'>H<li></ul>",
        "<table><tr style='display:none'><td>H</td></tr></table>",
        "<blockquote type=cite style='display:none'>H</blockquote>",
        "<div><span style='display:none'>H</div>",
    ],
)
def test_text_that_is_hidden_is_left_out(hidden: str) -> None:
    assert html_to_text(f"<p>a</p>{hidden}<p>z</p>").split() == ["a", "z"]


@pytest.mark.parametrize("shown", [
    '<span style="opacity:0.5">V</span>',
    '<div style="font-size:0"><span style="font-size:12px">V</span>H<b>H</b></div>',
    '<div style="font-size:0.9em">V</div>', '<div style="overflow:hidden">V</div>',
    '<div style="height:0">V</div>', '<div style="line-height:0">V</div>',
    '<input type="hidden" value="H">V', '<span aria-hidden="true">V</span>',
    '<p class="hidden">V</p>', '<p title="hidden">V</p>', "<noscript>V</noscript>",
    "<style>@media print { .x { display:none } } .y { color:red }</style><p class='x y'>V</p>",
    "<!--[if !mso]><!--><p>V</p><!--<![endif]-->", "<![if !mso]>V<![endif]>", "<!-->V<!-- -->",
    "<!--->V", "<p hidden>H<p>V", "<div><p style='display:none'>H</div>V",
    "<img style='display:none' src=x>V",
])  # fmt: skip
def test_text_beside_hidden_text_is_kept(shown: str) -> None:
    assert html_to_text(f"<p>a</p>{shown}<p>z</p>").split() == ["a", "V", "z"]


@pytest.mark.parametrize("unit", [
    *["<p hidden>x", "<div hidden>", "<div style='display:none'></p>", "<template>"],
    *["<span style='font-size:0'><b style='font-size:3px'>x</div>", "<style>a{", "<p class=a>"],
])  # fmt: skip
def test_hidden_elements_without_end_are_read_once(unit: str) -> None:
    assert html_to_text(f"<p>seen</p>{unit * 20_000}").startswith("seen")
