"""Addresses are found in every spelling, and masked at their length."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mail_assets.mail.message.addresses import AT_MARKS
from mail_assets.web.addresses import MASK, find_addresses, mask_addresses

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
]  # fmt: skip


@pytest.mark.parametrize("address", WRITTEN)
def test_address_is_masked_in_every_spelling(address: str) -> None:
    for before, after in (
        ("write to ", ", or not"),
        ("<", ">"),
        ("mailto:", "?subject=x"),
        ("", ""),
    ):
        masked = mask_addresses(f"{before}{address}{after}")
        assert masked == f"{before}{MASK * len(address)}{after}"


@pytest.mark.parametrize("mark", AT_MARKS)
def test_address_is_masked_as_pipermail_writes_it(mark: str) -> None:
    address = f"ana.gil{mark}lists.example.org"
    for before, after in (("Ana Gil <", "> escribió:"), ("[mailto:", "]"), ("> <", ">")):
        masked = mask_addresses(f"{before}{address}{after}")
        assert masked == f"{before}{MASK * len(address)}{after}"


#: Texts without an address.
PLAIN = [
    "está en github.com", "mirad el código en github.com, o a mano",
    "vai a <https://example.org/a>", "zobacz w example.org", "<stdio.h> na example.org",
    "<mirad en example.org y después>", "meet at 10.30", "the manual at www.example.org",
    "@@ -1,2 +3,4 @@ static int", "react@18.2", "@Override", "at the end. Then", "5 @ 3",
    "9 @ 10.30", "-- @ example.org", "+@Override", "{@link java.util.List}",
    "    @pytest.fixture\ndef", '+ @app.route("/")', "thanks @ann", "a @ b", "y = A @ self.weight",
    "x @ w.to(device)", '"${names[@]}.txt"', "push @names, @{$other};", "timeout=40 example.org",
    ".at example.org", "at {", "look at <example.org/man>", "look at\nexample.org",
    "look at {config.options}", "https://www.example.org/at/page.html", "src/at/main.org",
    r"\def\x{\@ifnextchar y}", "@@ -1,2 +3,4 @@ example.org", "@@ -1,2 +3,4 @@ import os.path",
    "x[a] = y.id", "names[a] + b.name()", "if x&lt;at&gt;y", "",
]  # fmt: skip


@pytest.mark.parametrize("text", PLAIN)
def test_text_without_address_is_unchanged(text: str) -> None:
    assert mask_addresses(text) == text


def test_url_keeps_all_but_its_address() -> None:
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
