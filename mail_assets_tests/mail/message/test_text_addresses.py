"""Addresses are masked in every spelling with equal length, also by PostgreSQL."""

import random
import re
from collections.abc import Iterator

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mail_assets.mail.message.addresses import AT_MARKS
from mail_assets.mail.message.text_addresses import (
    ADDRESSES,
    DISGUISES,
    HINTS,
    MASK,
    PLAIN,
    SIGNS,
    find_addresses,
    mask_addresses,
)
from mail_assets.postgres.embedded import Cluster
from mail_assets_tests.mail.corpora import CORPORA

WRITTEN = [
    "ann@example.org", "ann.o'hara+list=x@sub.example.org", "ANN@EXAMPLE.ORG", "root@localhost",
    '"ann of harbor"@example.org', "ann@[192.0.2.1]", "änn@bücher.example", "ann\uff20example.org",
    "ann\ufe6bexample.org", "an\u200bn@exam\u00adple.org", "ann%40example.org",
    "ann=40example.org", "ann&#64;example.org", "ann&#x40;example.org", "ann&commat;example.org",
    "ann at example.org", "ann at example dot org", "ann (at) example (dot) org",
    "ann [AT] example.org", "ann<at>example.org", "ann-at-example.org", "ann @ example.org",
    "ann@ example.org", "ann @example.co.uk", "ann[@]example.org", "ann(@)example(.)org",
    "ann <@> example.org", "ann\u00a0@\u00a0example.org", "ann|at|example.org",
    "ann *at* example *dot* org", "ann-at-example-dot-org", "ann<at>example<dot>org",
    'ann "at" example.org', "ann [at]\nexample.org", "ann at {example.org", "ann @ { example.org",
    "ann@\nexample.org", "ann @ \n> example.org", "ann  @\nexample  .  com", "ann@example . com",
    "ann%2540example.org", r"ann\u0040example.org", r"ann\@example.org", "ann@@example.org",
    "ann%40example%2Eorg", "ann=40example=2Eorg", "ann&#x40;example&#x2e;org",
    "ann（at）example.org",
    "ann ［at］ example.org", "ann ‹at› example.org", "ann ⟨at⟩ example.org",
    "ann /at/ example.org", "ann&lt;at&gt;example.org", "ann &lt;at&gt; example.org",
    "ann [a] example.org", "ann[a]example.org", "an\u2060n@ex\u2063am\U000e0041ple.org",
    # HyperKitty
    "ann(a)example.org", "ann (a) example.org", "ann(a)example.ninja", "ann (a)\nexample.org",
    # many blanks, and blanks of other scripts
    "ann   at   example.org", "ann @   example.org", "ann     @     example.org",
    "ann\u3000@\u3000example.org", "ann\u3000at\u3000example.org", "ann\u2003@\u2003example.org",
    "ann\t@\texample.org", "ann%20at%20example.org", "ann&nbsp;at&nbsp;example.org",
    # line ends
    "ann\n@example.org", "ann\n> @example.org", "ann at\nexample.org", "ann\nat example.org",
    "ann =\n@example.org", "ann@=\nexample.org", "ann (at)\n> example.org", "ann at\r\nexample.org",
    "ann\u2028@example.org", "ann\n(a)example.org",
    # full width, zeros, no semicolon, look-alikes
    "\uff41\uff4e\uff4e\uff20\uff45\uff58\uff0e\uff4f\uff52\uff47", "ann \uff41\uff54 example.org",
    "ann&#0000000064;example.org", "ann&#64example.org", "ann&amp;#64;example.org",
    "ann (\u0430t) example.org", "ann at example\uff0eorg", "ann a\u200bt example.org",
    # names of the sign
    "ann[ät]example.org", "ann {ät} example.org", "ann arroba example.org", "ann chez example.org",
    "ann (arroba) example (punto) org", "ann arroba example punto com", "ann [chez] example.org",
    "ann собака example.org", "ann (at sign) example.org", "ann(@t)example.org",
    "ann (en) example.org",
    # lines of dashes, and quotes
    "ann -at- example -dot- org", "ann_at_example.org", "ann#at#example.org",
    "ann \u2014at\u2014 example.org",
    "ann \u201cat\u201d example.org", "ann at example.ninja", "ann at xn--bcher-kva.example",
    'ann "at" example "dot" org', "ann \u2018at\u2019 example \u2018dot\u2019 org",
    "ann «at» example «dot» org", "ann \uff20 example \uff0e org", "ann\uff20 example \uff0eorg",
    "ann (at) example (period) org", "ann [a t] example [d o t] org",
    # where words have no blanks
    "ann골뱅이example.org", "ann 골뱅이 example 점 org", "ann골뱅이example점com",
    "ann(골뱅이)example.org",
    "annアットexample.org", "ann アット example ドット org", "ann(アット)example.org",
    "annアットマークexample.org",
    "annあっとexample.org", "ann艾特example.org", "ann 艾特 example 点 org", "ann[艾特]example.org",
    "ann小老鼠example.org", "ann圈aexample.org", "annⓐexample.org", "ann ⓐ example.org",
    "annATexampleDOTorg", "annATexample.com",
    # words for the sign
    "ann(на)example.org", "ann [на] example.org", "ann [στο] example.org", "ann(在)example.org",
    "ann собака example точка org", "ann at-symbol example.org", "ann [at symbol] example.org",
    "ann arobase example point org", "ann (a commercial) example.org",
    # providers without a domain
    # the same signs around words
    "ann/at/example/dot/org", "ann/AT/lists/dot/example/DOT/org", "ann:at:example:dot:org",
    r"ann\at\example\dot\org", "ann,at,example,dot,org", "ann.at.example.dot.org",
    "ann--at--example--dot--org", "ann - at - example - dot - org", "ann &at; example &dot; org",
    "ann `at` example `dot` org", "ann +at+ example +dot+ org", "ann...at...example...dot...org",
    "ann at example d0t org", "ann@@@example.org",
    # Chinese
    "ann在example点org", "ann 在 example 点 org", "ann於example點org",
    # several signs, comments and tags, spelled dots of the local part
    "ann @@ example.org", "ann . bo @ example . org",
    "ann dot bo at example dot org", "ann (dot) bo (at) example (dot) org",
    "ann [dot] bo@example.org", "ann (commercial at) example.org", "ann commercial at example.org",
    "ann .at. example.org", "ann :at: example.org", "ann ..at.. example.org",
    "ann<!-- x -->@example.org", "ann@<!-- x -->example.org", "ann<span>@</span>example.org",
    "ann(no spam)@example.org", "ann@(no spam)example.org", "ann_AT_example_DOT_org",
    "ann((at))example.org",
    "ann@example\ufe52org", "ann\ufe6bexample\u2024org",
    "ann@ example. org", "ann \U0001f150 example.org",
    "ann[AT]gmail", "ann (at) gmail", "ann <at> yahoo", "ann @ gmail", "ann.bo at gmail",
]  # fmt: skip


@pytest.mark.parametrize("address", WRITTEN)
def test_address_is_masked_in_every_spelling(address: str) -> None:
    for before, after in (
        ("write to ", ", or not"),
        ("<", ">"),
        ("mailto:", "?subject=x"),
        ("case begins\n", "\nand ends here."),
        ("", ""),
    ):
        masked = mask_addresses(f"{before}{address}{after}")
        assert masked == f"{before}{MASK * len(address)}{after}"


@pytest.mark.parametrize("mark", [*AT_MARKS, " 在 ", " 於 ", " در "])
@pytest.mark.parametrize("lead", ["", "> ", "> > ", "From: ", "> E-Mail: ", "Desc: ", "Reply-To: "])
def test_marked_address_is_masked_alone_on_a_line(mark: str, lead: str) -> None:
    address = f"ana{mark}lists.example.org"
    for after in ("\nPerdón", " (Ana Gil)\n", ".\n", ""):
        masked = mask_addresses(f"Hola\n{lead}{address}{after}")
        assert masked == f"Hola\n{lead}{MASK * len(address)}{after}"


@pytest.mark.parametrize("mark", AT_MARKS)
def test_address_is_masked_as_pipermail_writes_it(mark: str) -> None:
    address = f"ana.gil{mark}lists.example.org"
    for before, after in (("Ana Gil <", "> escribió:"), ("[mailto:", "]"), ("> <", ">")):
        masked = mask_addresses(f"{before}{address}{after}")
        assert masked == f"{before}{MASK * len(address)}{after}"


#: Texts without an address.
PLAIN_TEXTS = [
    "está en github.com", "mirad el código en github.com, o a mano",
    "vai a <https://example.org/a>", "zobacz w example.org, proszę", "<stdio.h> na example.org",
    "Hola:\nmirad el código en example.org y más", "available at\nexample.org",
    "found at\n> github.com",
    "<mirad en example.org y después>", "meet at 10.30", "the manual at www.example.org",
    "@@ -1,2 +3,4 @@ static int", "react@18.2", "@Override", "at the end. Then", "5 @ 3",
    "9 @ 10.30", "-- @ example.org", "+@Override", "{@link java.util.List}",
    "    @pytest.fixture\ndef", '+ @app.route("/")', "thanks @ann", "a @ b", "y = A @ self.weight",
    "x @ w.to(device)", '"${names[@]}.txt"', "push @names, @{$other};", "timeout=40 example.org",
    ".at example.org", "at {", "look at <example.org/man>", "look at\nexample.org",
    "look at {config.options}", "https://www.example.org/at/page.html", "src/at/main.org",
    r"\def\x{\@ifnextchar y}", "@@ -1,2 +3,4 @@ example.org", "@@ -1,2 +3,4 @@ import os.path",
    "x[a] = y.id", "names[a] + b.name()", "if x&lt;at&gt;y", "", "sqrt(a) * b.in", "f(a)[b.id]",
    "if (a) b.is = 1;", "case (a): x.y", "arrive at some point in time",
    "foo\n@app.route(\"/\")", "x\n@org.junit.Test", "x\n@foo.io.Bar", "crash at main.c",
    "at 10.2Mbps",
    "config-at-arc.c", "printf(\"%s at %s.\\n\", a, b)", "1. (a) first", "user @ home", "a\n  @b",
    "Perl: @{$x}{qw(a b)}", "matrix @ vector\nx.T", "\u00b5 @ 5.2GHz",
    "look at gmail", "I am at yahoo", "the filters at gmail.", "FORMATString.org", "BATCHDOTs",
    "formATlist.id", "ⓐ first", "골뱅이 무침", "アットホームな会社", "艾特我",
    "a (на) b", "v[на] = 1",
    "代码 在 example.org 上", "我在10点to", "项目在example点", "a/at/b/dot/c", "src/at/example.org",
    "at, or dot, in", "x: at: y: dot:", "3 @@@ 4", "Linux 在 example.org，", "x.at.y.dot()",
    "x['at'] = y['dot']", "x(at)gmail()", "puts @@foo.name", "@@ -1 +1 @@ example.org",
    "f(x)@w.to(device)", "Map<K, V> @org.foo.Bar", "List<int>@x", "x(at)y()", "look, at, or dot",
    "it ends . Then", "perf   [.] memcpy", "call foo(bar)@PLT", "Meeting [at] noon",
    "version 2 (at least)",
]  # fmt: skip


@pytest.mark.parametrize("text", PLAIN_TEXTS)
def test_text_without_address_is_unchanged(text: str) -> None:
    assert mask_addresses(text) == text


@pytest.mark.parametrize(("text", "masked"), [
    # "look at" makes no address; neither does "at" after a whole address
    ("jo at\nexample.org", "#"),
    ("look at\nexample.org", "look at\nexample.org"),
    ("jo@example.org at irc.example.org", "# at irc.example.org"),
    ("git clone git@example.org:a/b.git", "git clone #:a/b.git"),
    ("https://example.org/~jo@example.org/", "https://example.org/#/"),
    ("https://lists.example.org/jo(a)example.org", "https://lists.example.org/#"),
    ("Signed-off-by: Jo <jo@example.org>", "Signed-off-by: Jo <#>"),
    ("+# Author: jo (at) example.org", "+# Author: #"),
    ("@bot jo@example.org", "@bot #"),
])  # fmt: skip
def test_only_the_address_is_masked(text: str, masked: str) -> None:
    assert re.sub(f"{MASK}+", "#", mask_addresses(text)) == masked


def test_only_the_address_of_a_url_is_masked() -> None:
    text = "https://example.org/who/ann@example.org?x=1"
    assert mask_addresses(text) == f"https://example.org/who/{MASK * 15}?x=1"


def test_adjacent_addresses_are_both_masked_whole() -> None:
    text = "write me at ann.bo@example.org . Yours"
    assert mask_addresses(text) == f"write me at {MASK * 18} . Yours"


def test_known_ids_are_not_masked() -> None:
    text = "<a1@example.org> of ann@example.org"
    assert mask_addresses(text, {"a1@example.org"}) == f"<a1@example.org> of {MASK * 15}"


@given(st.text(st.sampled_from("ab.@ -%40\n<>()\"'=&#;t\u200b\uff20{|*\\ud"), max_size=60))
def test_masked_text_has_same_length_and_no_address(text: str) -> None:
    masked = mask_addresses(text)
    assert len(masked) == len(text)
    assert not [*find_addresses(masked)]
    assert all(new in (old, MASK) for old, new in zip(text, masked, strict=True))


# --- in PostgreSQL ---


@pytest.fixture(scope="module")
def connection(cluster: Cluster) -> Iterator[psycopg.Connection]:
    with psycopg.connect(cluster.dsn("postgres"), autocommit=True) as connection:
        yield connection


BEFORE = ["", "write to ", "<", "mailto:", "> ", ", ", "(", '"', "From: ", "https://x.example.org/"]
LOCALS = [
    *("jo", "ann.bo", "a+b", "o'hara_1", '"a b"', "j\u200bo", "änn", "look", "JO", "x-y"),
    *("jo . roe", "jo dot roe", "jo [dot] roe"),
]
GAPS = [
    "", "", " ", " ", "   ", "\t", "\u3000", "\u00a0", "[", "]", "(", ")", " [", "] ", "{ ", "} ",
    " *", "-", "<b>", "(x)", " .", ". ", ")", "[", "_", "/",
    ":", ", ", "\n", "\n> ", "=\n", " \r\n", "&lt;", "&gt;", "&nbsp;",
]  # fmt: skip
MARKS = [
    "@", "@", "at", "AT", "\uff20", "\ufe6b", "%40", "%2540", "=40", "&#64;", "&#0000064;", "&#64",
    "&commat;", "\\@", "@@", "(a)", "[a]", "[ät]", "arroba", "chez", "/at/", "\uff41\uff54", "en",
    "(en)", "na", "a", "[@t]", "ⓐ", "골뱅이", "アット", "艾特", "(на)", "собака", "AT", '"at"',
    "在", "@@@", " @@ ",
]  # fmt: skip
HOSTS = ["example", "gmail", "lists.example", "b-c", "www", "bücher", "localhost", "10", "a_b"]
DOTS = [
    ".", ".", ".", " dot ", "(dot)", "[.]", "-dot-", " . ", "%2E", "=2e", "\uff0e", " \uff0e ",
    " punto ", ' "dot" ', "DOT", " point ", "점", " точка ", "/dot/", ":dot:",
    ", dot, ", "点", " d0t ",
]  # fmt: skip
TOPS = ["org", "com", "co.uk", "ninja", "c", "30", "py", "xn--p1ai", "ORG"]
AFTER = [
    "", ", or not", ">", ")", ". Yes", "?subject=x", "\nend", '"', "/a", "(x)", "; b at c", " w:",
]  # fmt: skip
PARTS = (BEFORE, LOCALS, GAPS, MARKS, GAPS, HOSTS, DOTS, TOPS, AFTER)


def mask_in_postgres(connection: psycopg.Connection, texts: list[str]) -> list[str]:
    """Mask as `mask_addresses` does; PostgreSQL puts control characters around each address."""
    rows = connection.execute(
        """
        select regexp_replace(t, case when t ~ %s then %s else %s end, '\x01\\&\x02', 'g')
          from unnest(%s::text[]) with ordinality as texts (t, n)
         order by n""",
        [DISGUISES, ADDRESSES, PLAIN, texts],
    )
    return [
        re.sub("\x01([^\x02]*)\x02", lambda found: MASK * len(found[1]), marked)
        for (marked,) in rows
    ]


def test_postgres_hides_what_python_hides(connection: psycopg.Connection) -> None:
    write = random.Random(38)
    texts = ["".join(map(write.choice, PARTS)) for _ in range(4_000)]
    masked = [*map(mask_addresses, texts)]
    assert sum(MASK in text for text in masked) > 700
    found = zip(texts, mask_in_postgres(connection, texts), masked, strict=True)
    assert [one for one in found if one[1] != one[2]] == []


def test_postgres_hides_every_spelling(connection: psycopg.Connection) -> None:
    texts = [f"case begins\n{one}\nand ends" for one in (*WRITTEN, *PLAIN_TEXTS)]
    assert mask_in_postgres(connection, texts) == [*map(mask_addresses, texts)]
    found = connection.execute(
        "select bool_and(t ~ %s) from unnest(%s::text[]) t", [SIGNS, WRITTEN]
    )
    assert found.fetchone() == (True,)


def test_text_with_a_sign_has_a_hint(connection: psycopg.Connection) -> None:
    write = random.Random(39)
    texts = ["".join(map(write.choice, PARTS)) for _ in range(4_000)]
    texts += [*WRITTEN, *PLAIN_TEXTS, *map(str.lower, WRITTEN), "a" * 1_000_000, "(a " * 300_000]
    found = connection.execute(
        "select count(*), count(*) filter (where t !~ %(hints)s)"
        " from unnest(%(texts)s::text[]) t where t ~ %(signs)s",
        {"hints": HINTS, "signs": SIGNS, "texts": texts},
    )
    signed, missed = found.fetchall()[0]
    assert signed > 2_000
    assert missed == 0


@pytest.mark.parametrize(
    "text",
    [
        "a a a at at " * 9_000, "@" * 100_000, "a@" * 50_000, "a at b." * 15_000, "=40" * 33_000,
        "a-dot-" * 17_000 + "@", '"' * 100_000, "a at" + " " * 100_000 + "b.org", "(a)" * 33_000,
        "a골뱅이" * 25_000, "aATb" * 25_000, "a골뱅이" + "b점" * 40_000, "aAT" + "bDOT" * 25_000,
        "a @ gmai" * 12_000, "a at gmail" * 10_000, "a.b at " + " " * 90_000 + "gmail",
        "\n> a en b." * 10_000, "\u200b" * 100_000, "at\n" * 33_000, "a (at) " * 15_000,
    ],
    ids=range(20),
)  # fmt: skip
def test_hostile_text_is_read_to_the_end(connection: psycopg.Connection, text: str) -> None:
    end = "\n, jo@example.org"
    assert mask_addresses(text + end).endswith(MASK * 14)
    assert mask_in_postgres(connection, [text + end])[0].endswith(MASK * 14)


def test_reported_disguises_are_masked() -> None:
    path = CORPORA / "reported" / "R44-addresses-shown.2024-03.mbox"
    if not path.exists():
        pytest.skip(f"the reported mail is not here: {path}")
    bodies = [one.partition("\n\n")[2] for one in path.read_text().split("\nFrom ")]
    assert len(bodies) == 11
    for body in bodies:
        masked = mask_addresses(body).replace(MASK, "")
        assert re.fullmatch(r"case \d+ begins[\s>]*and ends here\.\s*", masked), body
