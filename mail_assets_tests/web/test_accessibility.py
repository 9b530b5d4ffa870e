"""Pages in a real browser work by keyboard, on narrow screens, with large text, and on paper.

https://www.w3.org/TR/WCAG22/ : 1.4.10 reflow, 2.1.1 keyboard, 2.1.2 no trap, 2.4.7 visible focus
"""

from collections.abc import Iterator
from typing import Any

import pytest

from mail_assets_tests.kept_worlds import standing_world
from mail_assets_tests.web.chromium import CHROMIUM, Chromium, browsing
from mail_assets_tests.web.conftest import fill, serving_world
from mail_assets_tests.world import World, mail

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="needs chromium, of Debian's package"),
]

UNBROKEN = "whale" * 60
HEBREW, CHINESE = "\u05d4\u05dc\u05d5\u05d5\u05d9\u05d9\u05ea\u05df", "\u9be8\u9c7c" * 60
PATCH = (
    f"whale\n\ndiff --git a/{UNBROKEN}.c b/{UNBROKEN}.c\n--- a/w.c\n+++ b/w.c\n"
    f"@@ -1,2 +1,2 @@\n-{'x' * 300}\n+{'y' * 300}\n"
)
LINKS = "\n".join(f"> https://example.org/{'deep/' * number}" for number in range(20))
MAILS = [
    mail("m0", f"whale {UNBROKEN} {CHINESE}", subject=UNBROKEN),
    mail("m1", PATCH, subject=f"Re: {UNBROKEN}", references="<m0@example.org>"),
    mail("m2", f"{HEBREW} whale!\n{LINKS}\n\n-- \n{UNBROKEN}", references="<m1@example.org>"),
    mail("m3", f"whale {HEBREW}", subject=f"{HEBREW} (whale)", references="<m2@example.org>"),
]
PATHS = [
    "/",
    "/search?q=whale&mode=fulltext",
    "/search?q=whale&mode=fulltext&group=message&list=harbor",
    f"/search?q={UNBROKEN}&mode=fulltext&sort=date",
    "/search?q=has:pach",
    *(f"/{page}/m{number}@example.org" for page in ("message", "thread") for number in range(4)),
    "/lists",
    "/lists/harbor",
    "/lists/harbor/2024-03",
    "/answer",
    f"/message/{UNBROKEN}@example.org",
]
OPEN = "document.querySelectorAll('details').forEach(one => { one.open = true; })"
#: Script after which the next Tab starts at the top of the page, even if a field has the focus.
START = (
    "document.body.tabIndex = -1; document.body.focus(); document.body.removeAttribute('tabindex')"
)
WIDTHS = "[document.documentElement.scrollWidth, document.documentElement.clientWidth]"
#: Script that returns elements wider than the page.
WIDEST = """[...document.querySelectorAll('body *')].filter(
  one => one.getBoundingClientRect().right > document.documentElement.clientWidth)
  .map(one => one.outerHTML.slice(0, 60)).slice(0, 3)"""
#: Script that returns the controls for the keyboard in order, and scrollable wide columns.
INTERACTIVE = """[...document.querySelectorAll(
  'a[href], button, input:not([type=hidden]), select, textarea, summary, pre')]
  .filter(one => one.getClientRects().length && (one.tabIndex >= 0
    || one.tagName === 'PRE' && one.scrollWidth > one.clientWidth && !one.querySelector('a')))
  .length"""
FOCUSED = """(() => {
  const one = document.activeElement, style = getComputedStyle(one);
  const box = one.getBoundingClientRect(), reached = window.reached ??= new Set();
  return {
    name: one.tagName + ' ' + (one.textContent || one.name).trim().slice(0, 40),
    seen: style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2
      && box.width > 0 && box.bottom > 0 && box.top < innerHeight && box.right > 0,
    before: window.last === undefined
      || Boolean(window.last.compareDocumentPosition(one) & Node.DOCUMENT_POSITION_FOLLOWING),
    ended: one === document.body || reached.has(one) || !reached.add(one) || !(window.last = one),
  };
})()"""
PRINTED = """({
  links: [...document.querySelectorAll('header, footer, form, .tools')]
    .filter(one => one.getClientRects().length).length,
  folded: [...document.querySelectorAll('details [dir]')].map(one => one.getClientRects().length),
  colour: getComputedStyle(document.body).color,
})"""


def evaluate(browser: Chromium, expression: str) -> Any:
    result = browser.ask("Runtime.evaluate", expression=expression, returnByValue=True)["result"]
    return result.get("value")


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    with browsing(tmp_path_factory.mktemp("chromium")) as started:
        yield started


filled = standing_world(lambda world: fill(world, *MAILS))


@pytest.fixture(scope="module")
def site(filled: World) -> Iterator[str]:
    with serving_world(filled) as client:
        yield str(client.base_url).rstrip("/")


def show(browser: Chromium, width: int) -> None:
    """Set the width of the page, and reduced motion, so that scrolling has no delay."""
    browser.ask(
        "Emulation.setDeviceMetricsOverride",
        width=width, height=640, deviceScaleFactor=1, mobile=False,
    )  # fmt: skip
    still = {"name": "prefers-reduced-motion", "value": "reduce"}
    browser.ask("Emulation.setEmulatedMedia", features=[still])


def test_no_page_is_wider_than_a_narrow_screen(site: str, browser: Chromium) -> None:
    wide = {}
    for path in PATHS:
        for width in (320, 640):  # a screen of 1280 at 400 % and 200 %
            show(browser, width)
            browser.visit(site + path)
            evaluate(browser, OPEN)
            needed, has = evaluate(browser, WIDTHS)
            if needed > has:
                wide[path[:60], width] = evaluate(browser, WIDEST)
    assert wide == {}


def test_keyboard_reaches_every_control_in_order(site: str, browser: Chromium) -> None:
    for path in PATHS:
        show(browser, 1200)
        browser.visit(site + path)
        evaluate(browser, f"{OPEN}; {START}")
        count = evaluate(browser, INTERACTIVE)
        reached = [*press_tab(browser, count + 5)]
        assert len(reached) == count, path
        assert reached[0]["name"] == "A Skip to the content"
        assert [one["name"] for one in reached if not (one["seen"] and one["before"])] == [], path


def press_tab(browser: Chromium, most: int) -> Iterator[dict[str, Any]]:
    """Yield the focused elements, from the start of the page until none has the focus."""
    for _ in range(most):
        for kind in ("keyDown", "keyUp"):
            browser.ask(
                "Input.dispatchKeyEvent", type=kind, key="Tab", code="Tab", windowsVirtualKeyCode=9
            )
        focused = evaluate(browser, FOCUSED)
        if focused["ended"]:
            return
        yield focused


def test_printed_page_has_unfolded_mail_and_no_controls(site: str, browser: Chromium) -> None:
    browser.ask("Emulation.setEmulatedMedia", media="print")
    browser.visit(f"{site}/message/m2@example.org")
    printed = evaluate(browser, PRINTED)
    browser.ask("Emulation.setEmulatedMedia", media="")
    assert (printed["links"], printed["colour"]) == (0, "rgb(0, 0, 0)")
    assert printed["folded"]
    assert all(printed["folded"])


@pytest.mark.parametrize(("number", "direction"), [(2, "ltr"), (3, "rtl")])
def test_text_has_its_own_direction(
    site: str, browser: Chromium, number: int, direction: str
) -> None:
    browser.visit(f"{site}/message/m{number}@example.org")
    assert (
        evaluate(browser, "getComputedStyle(document.querySelector('h1')).direction") == direction
    )
    body = evaluate(browser, "getComputedStyle(document.querySelector('.message [dir]')).direction")
    assert body == ("rtl" if number == 2 else "ltr")
