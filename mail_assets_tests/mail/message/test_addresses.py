"""Address lists of mail, and addresses of pipermail in all its languages."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mail_assets.mail.message import addresses as room
from mail_assets.mail.message.addresses import AT_MARKS, MAX_ADDRESSES, Address, parse_addresses


def read(value: bytes, *, obfuscated: bool = False) -> list[Address]:
    return list(parse_addresses([value], obfuscated=obfuscated))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (b"jo@example.org", [("", "jo@example.org")]),
        (b"Jo Doe <Jo@Example.ORG>", [("Jo Doe", "jo@example.org")]),
        (b'"Doe, Jo" <jo@x.org>, ann@x.org', [("Doe, Jo", "jo@x.org"), ("", "ann@x.org")]),
        (b"Doe, Jo <jo@x.org>, ann@x.org", [("Doe, Jo", "jo@x.org"), ("", "ann@x.org")]),
        (b"jo@x.org (Jo Doe)", [("Jo Doe", "jo@x.org")]),
        (b"jo@x.org (Jo (the other) Doe)", [("Jo (the other) Doe", "jo@x.org")]),
        (b'"Jo \\"J\\" Doe" <jo@x.org>', [('Jo "J" Doe', "jo@x.org")]),
        (b"=?utf-8?q?J=C3=B6?= <j@x.org>", [("Jö", "j@x.org")]),
        (b'"=?utf-8?q?J=C3=B6?=" <j@x.org>', [("Jö", "j@x.org")]),
        # in Latin-1 the second byte of à, Š, Р and х is white space
        ("Noémi Voilà <j@x.org>".encode(), [("Noémi Voilà", "j@x.org")]),
        ('"Šárka Х." <j@x.org>'.encode(), [("Šárka Х.", "j@x.org")]),
        ("Рох, Михаил <j@x.org>".encode(), [("Рох, Михаил", "j@x.org")]),
        ("j@x.org (Михаил Рох)".encode(), [("Михаил Рох", "j@x.org")]),
        ("михаил@пример.рф".encode(), [("", "михаил@пример.рф")]),
        ("公司 公司@例子.公司".encode(), [("公司", "公司@例子.公司")]),
        ("Михаил".encode("cp1251") + b" <j@x.org>", [("Ìèõàèë", "j@x.org")]),
        (b"Jo <jo@[192.0.2.1]>", [("Jo", "jo@[192.0.2.1]")]),
        (b"=?utf-8?q?Doe=2C_Jo?= <j@x.org>", [("Doe, Jo", "j@x.org")]),
        (b"=?utf-8?q?Ops:_Jo?= <j@x.org>, k@x.org", [("Ops: Jo", "j@x.org"), ("", "k@x.org")]),
        (b"Jo =?utf-8?q?Roe;_the_(second)?= <j@x.org>", [("Jo Roe; the (second)", "j@x.org")]),
        (b"=?utf-8?q?Jo_<the_man>?= <j@x.org>", [("Jo <the man>", "j@x.org")]),
        (b"Ops: =?utf-8?q?Jo?= <j@x.org>;", [("Jo", "j@x.org")]),
        (b"=?utf-8?q?=3Ca=40b=3E?= <j@x.org>", [("<a@b>", "j@x.org")]),
        (b"J\xf6 <j@x.org>", [("Jö", "j@x.org")]),
        (b"undisclosed-recipients:;", []),
        (
            b"Team: a@x.org, Bo <b@x.org>; c@x.org",
            [("", "a@x.org"), ("Bo", "b@x.org"), ("", "c@x.org")],
        ),
        (b"a@x.org; b@x.org", [("", "a@x.org"), ("", "b@x.org")]),
        (b"a@x.org,\r\n b@x.org", [("", "a@x.org"), ("", "b@x.org")]),
        (b"root (Charlie Root)", [("Charlie Root", "root")]),
        (b"Jo Doe", [("Jo Doe", "")]),
        (b"Jo <>", [("Jo", "")]),
        (b"Jo Doe jo@x.org", [("Jo Doe", "jo@x.org")]),
        (b"jo@x.org <jo@x.org>", [("jo@x.org", "jo@x.org")]),
        (b'"Jo <jo@x.org>, ann@x.org', [("Jo", "jo@x.org"), ("", "ann@x.org")]),
        (b"Jo <jo@x.org, ann@x.org", [("Jo", "jo@x.org"), ("", "ann@x.org")]),
        (
            b"Jo (never closed <jo@x.org>, a@x.org",
            [("Jo never closed", "jo@x.org"), ("", "a@x.org")],
        ),
        (b"<jo @ x.org>", [("", "jo@x.org")]),
        (b"sys!jo@x.org", [("", "sys!jo@x.org")]),
        (b"host!jo (Jo)", [("Jo", "host!jo")]),
        (b"jo%host@relay.org", [("", "jo%host@relay.org")]),
        (b"Jo <@a.org,@b.org:jo@x.org>", [("Jo", "jo@x.org")]),
        (b"Jo <mailto:jo@x.org>", [("Jo", "jo@x.org")]),
        (b"Jo [SMTP:jo@x.org]", [("Jo", "jo@x.org")]),
        (b"Jo </O=EX/OU=A/CN=JO>", [("Jo", "/o=ex/ou=a/cn=jo")]),
        (b"<jo(home)@example.org>", [("", "jo@example.org")]),
        (b"Jo <jo@(the) x.org (here (or there))>", [("Jo", "jo@x.org")]),
        (b"Jo(a \\) man) <jo@x.org>", [("Jo", "jo@x.org")]),
        (b"jo@x . org", [("", "jo@x.org")]),
        (b"jo . doe @ x . org (Jo)", [("Jo", "jo.doe@x.org")]),
        (b"jo@x.org.", [("", "jo@x.org")]),
        (b'"jo.doe"@x.org', [("", "jo.doe@x.org")]),
        (b'Jo <"jo doe"@x.org>', [("Jo", '"jo doe"@x.org')]),
        (b'"Jo O\'" <jo@x.org>', [("Jo O'", "jo@x.org")]),
        (b"Jo O' (x) <jo@x.org>", [("Jo O'", "jo@x.org")]),
        (b"'t Hooft <jo@x.org>", [("'t Hooft", "jo@x.org")]),
        (b"''Jo'' <jo@x.org>", [("Jo", "jo@x.org")]),
        (b"Jo <jo@x.org> Ann <a@x.org>", [("Jo", "jo@x.org"), ("Ann", "a@x.org")]),
        (b"Jo <the man> <jo@x.org>", [("Jo the man", "jo@x.org")]),
        (b"Jo <jo@x.org>>", [("Jo", "jo@x.org")]),
        (b"<<jo@x.org>>", [("", "jo@x.org")]),
        (b"=?utf-8?q?J=C3=B6?=", [("J\u00f6", "")]),
        (b"=?utf-8?q?J=C3=B6_=3Cj=40x=2Eorg=3E?=", [("J\u00f6", "j@x.org")]),
        (b"=?utf-8?b?5bGx?= =?utf-8?b?55SwPGpAeC5vcmc+?=", [("\u5c71\u7530", "j@x.org")]),
        (b"=?iso-8859-1?Q?Hvad??= <h@x.dk>", [("Hvad?", "h@x.dk")]),
        (b"\x1b$B;3ED\x1b(B <y@x.jp>", [("\u5c71\u7530", "y@x.jp")]),
        (b"y@x.jp (\x1b$B;3ED\x1b(J)", [("\u5c71\u7530", "y@x.jp")]),
        (b"user at host.org (U)", [("user at host.org", "")]),
        (b"Jo <" + b"x" * 400 + b"@x.org>", [("Jo", "")]),
        (b",,;", []),
        (b"", []),
        # the whole mailbox between quotes
        (b'"Ann Roe <ann@x.org>"', [("Ann Roe", "ann@x.org")]),
        (b"'Ann Roe <ann@x.org>'", [("Ann Roe", "ann@x.org")]),
        (b'"<ann@x.org>"', [("", "ann@x.org")]),
        (b'"ann@x.org"', [("", "ann@x.org")]),
        (b'"Roe, Ann <ann@x.org>", bo@x.org', [("Roe, Ann", "ann@x.org"), ("", "bo@x.org")]),
        (b'"Ann Roe <ann@x.org>" <ann@x.org>', [("Ann Roe", "ann@x.org")]),
        (b'"Ann Roe <ann@y.org>" <ann@x.org>', [("Ann Roe <ann@y.org>", "ann@x.org")]),
        (b'"=?utf-8?q?Ann_=3Cann=40x=2Eorg=3E?="', [("Ann", "ann@x.org")]),
        # quoted local parts
        (b'"ann roe"@x.org', [("", '"ann roe"@x.org')]),
        (b'"ann roe"@x.org (Ann), bo@x.org', [("Ann", '"ann roe"@x.org'), ("", "bo@x.org")]),
        (b'Ann <"ann roe"@x.org>', [("Ann", '"ann roe"@x.org')]),
        (b'"ann@home"@x.org', [("", '"ann@home"@x.org')]),
        (b'"ann, roe"@x.org', [("", '"ann, roe"@x.org')]),
        (b'"ann \\"a\\" roe"@x.org', [("", '"ann \\"a\\" roe"@x.org')]),
        (b'"ann.roe"@x.org', [("", "ann.roe@x.org")]),
        (b'"ann roe" @x.org', [("", '"ann roe"@x.org')]),
        (b'"Ann Roe" @annroe <ann@x.org>', [("Ann Roe @annroe", "ann@x.org")]),
        # URLs and entities
        (b"Ann Roe [mailto:ann@x.org]", [("Ann Roe", "ann@x.org")]),
        (b"[mailto:ann@x.org]", [("", "ann@x.org")]),
        (b"Ann Roe [mailto:ann@x.org] <ann@x.org>", [("Ann Roe", "ann@x.org")]),
        (
            b"Ann Roe [MAILTO: ann@x.org ]; Bo [mailto:bo@x.org]",
            [("Ann Roe", "ann@x.org"), ("Bo", "bo@x.org")],
        ),
        (b"mailto:ann@x.org", [("", "ann@x.org")]),
        (b"Ann Roe &lt;ann@x.org&gt;", [("Ann Roe", "ann@x.org")]),
        (b"Ann <ann%40x.org>", [("Ann", "ann@x.org")]),
        # comments, brackets and quotes around the address
        (b"Ann Roe (ann@x.org)", [("Ann Roe", "ann@x.org")]),
        (b"Ann Roe {ann@x.org}", [("Ann Roe", "ann@x.org")]),
        (b'Ann <"ann@x.org">', [("Ann", "ann@x.org")]),
        (b"Ann <'ann@x.org'>", [("Ann", "ann@x.org")]),
        (b"Ann < ann@x.org >", [("Ann", "ann@x.org")]),
        (b"Ann <ann@x.org.>,", [("Ann", "ann@x.org")]),
        (b"Ann <<ann@x.org>>", [("Ann", "ann@x.org")]),
        (b'<"Ann" <ann@x.org>>', [("Ann", "ann@x.org")]),
        (b"Ann <ann@x.org> <ann@x.org>", [("Ann", "ann@x.org")]),
        (b"Ann <ann(at)x.org>", [("Ann", "ann@x.org")]),
        (b"Ann <ann(a)x.org>", [("Ann", "ann@x.org")]),
        (b"Ann <ann at x.org>", [("Ann", "ann@x.org")]),
        (b"\"'Ann Roe'\" <ann@x.org>", [("Ann Roe", "ann@x.org")]),
        (b'"ann@x.org" <ann@x.org>', [("ann@x.org", "ann@x.org")]),
        ("Änn <änn@bücher.example>".encode(), [("Änn", "änn@bücher.example")]),
    ],
)
def test_lists_and_damaged_mailboxes_are_read(
    value: bytes, expected: list[tuple[str, str]]
) -> None:
    assert read(value) == expected


@pytest.mark.parametrize(("value", "expected"), [
    (b"user at host.org (U Ser)", [("U Ser", "user@host.org")]),
    (b"U Ser <user at host.org>", [("U Ser", "user@host.org")]),
    (b"user@host.org", [("", "user@host.org")]),
    (b"user at host.org (user at host.org)", [("user@host.org", "user@host.org")]),
    (b"user en host.org (user en host.org)", [("user@host.org", "user@host.org")]),
    (b"user at host.org (Jo at home)", [("Jo at home", "user@host.org")]),
])  # fmt: skip
def test_pipermail_addresses_are_restored(value: bytes, expected: list[tuple[str, str]]) -> None:
    assert read(value, obfuscated=True) == expected


@settings(max_examples=200)
@given(
    st.lists(
        st.sampled_from(
            [b'"', b"<", b">", b"(", b")", b",", b";", b":", b"\\", b"a@b.c", b"=?y?q?"]
        )
        | st.binary(max_size=6)
    ).map(b"".join)
)
def test_any_value_gives_clean_addresses(value: bytes) -> None:
    for name, email in parse_addresses([value], obfuscated=True):
        assert name or email
        assert not set(name + email) & set("\0\r\n")
        assert not any(x.isspace() for x in email.rpartition('"')[2])
        assert (name + email).encode().decode() == name + email


@settings(max_examples=100)
@given(
    st.lists(
        st.tuples(
            st.text("abé, .'", max_size=8), st.from_regex(r"[a-z]{1,8}@[a-z]{1,8}", fullmatch=True)
        ),
        min_size=1,
        max_size=5,
    )
)
def test_well_formed_mailboxes_come_back(people: list[tuple[str, str]]) -> None:
    value = ", ".join(f'"{name}" <{email}>' for name, email in people)
    expected = [(" ".join(name.split()).strip("', "), email) for name, email in people]
    assert [(n.strip("', "), e) for n, e in read(value.encode())] == expected


@pytest.mark.parametrize("value", [
    b"(" * 65_536, b'"' * 65_535, b'"\\' * 32_768, b"<" * 65_536, b"a" * 65_536, b"a," * 32_768,
    b"<" + b" " * 65_000 + b">", b"a " * 32_768,
])  # fmt: skip
def test_hostile_lists_are_read_to_the_end(value: bytes) -> None:
    assert parse_addresses([value, b"jo@x.org"], obfuscated=True)[-1] == Address("", "jo@x.org")


def test_too_many_addresses_show_by_one_more_than_the_limit() -> None:
    assert len(parse_addresses([b"a@x.org," * 50_000])) == MAX_ADDRESSES + 1


MAILBOX_PIECES = [
    *("Jo", "Doe", " ", "  ", ",", ", ", "'", "(", ")", ":", ";", "\\", "at", "\t", "ö", "\0",
      "=?"),
    *('"', '"Doe, Jo"', '"Jo (man)"', "\" 'Jo' \"", "<", ">", "<>", "<a@b>", "<A.b+c=d@E-f.org>"),
    *("a@b", "a @ b", "@", "a@", "<a b@c>", "=?utf-8?q?J=C3=B6?=", "a" * 64, "b" * 256, "-", "."),
]  # fmt: skip


@settings(max_examples=200)
@given(pieces=st.lists(st.sampled_from(MAILBOX_PIECES), max_size=8), obfuscated=st.booleans())
def test_simple_mailboxes_are_read_as_any_other(pieces: list[str], obfuscated: bool) -> None:
    value = "".join(pieces).strip()
    quick = room._simple_mailboxes(value)
    assert not quick or quick == list(room._mailboxes(value, "", obfuscated))


def test_common_fields_are_read_the_short_way() -> None:
    value = '"Doe, Jo (man)" <jo@x.org>, Ann O\'Neil <ann@x.org>,bob@x.org'
    assert [x.name for x in room._simple_mailboxes(value)] == ["Doe, Jo (man)", "Ann O'Neil", ""]


def test_escaped_parenthesis_in_a_quoted_name_stays() -> None:
    assert read(b'"Jo \\(man pages\\)" <jo@x.org>') == [("Jo (man pages)", "jo@x.org")]


PEOPLE = [Address("Ana Gil", "ana.gil@lists.example.org")]


@pytest.mark.parametrize("mark", AT_MARKS)
@pytest.mark.parametrize("is_utf8", [False, True])
def test_address_and_the_name_are_read_in_every_language(mark: str, is_utf8: bool) -> None:
    charset = "utf-8" if is_utf8 else AT_MARKS[mark][0]
    value = f"ana.gil{mark}lists.example.org (Ana Gil)".encode(charset)
    assert list(parse_addresses([value], obfuscated=True)) == PEOPLE


def test_person_without_name_gets_the_address() -> None:
    value = b"ana en example.org (ana en example.org)"
    [found] = parse_addresses([value], obfuscated=True)
    assert found.email == "ana@example.org"


@pytest.mark.parametrize(("value", "expected"), [
    (b"ana en casa (x)", Address("ana en casa", "")),
    (b"Ana en Example.org <ana@example.org>", Address("Ana en Example.org", "ana@example.org")),
    (b"Jo at Home <jo@example.org>", Address("Jo at Home", "jo@example.org")),
    (b"Ana Gil en example.org y Jo", Address("Ana Gil en example.org y Jo", "")),
])  # fmt: skip
def test_names_are_not_taken_for_addresses(value: bytes, expected: Address) -> None:
    assert parse_addresses([value], obfuscated=True)[0] == expected


def test_other_archives_write_no_marks() -> None:
    [found] = parse_addresses([b"ana en example.org (Ana Gil)"])
    assert found.email == ""
