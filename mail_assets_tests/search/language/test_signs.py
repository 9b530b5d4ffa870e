"""The signs of the query language: each query means what its description says."""

import datetime as dt
import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mail_assets.search.language.expression import Condition, Text
from mail_assets.search.language.fields import SAME_FIELDS, is_name
from mail_assets.search.language.permalink import build_permalink, describe_request
from mail_assets.search.language.request import Request
from mail_assets.search.language.syntax import parse_request

TODAY = dt.date(2024, 3, 31)


def describe(query: str) -> str:
    """Return the meaning of a query in words."""
    said = describe_request(parse_request(Request(query), TODAY))
    return said.removesuffix(" · mode: hybrid")


@pytest.mark.parametrize(("query", "meaning"), [
    # a dash excludes whatever follows it
    ("gcc -wall", 'words: gcc · not: "wall"'),
    ("gcc -Wall", 'words: gcc · not: "Wall"'),
    ("-7.5.0", 'not: "7.5.0" · newest first'),
    ("x -7.5.0", 'words: x · not: "7.5.0"'),
    ("x -/usr", 'words: x · not: "/usr"'),
    ("x -/usr/lib/x.so", 'words: x · not: "/usr/lib/x.so"'),
    ("x -index.php", 'words: x · not: "index.php"'),
    ("x -~/x", 'words: x · not: "~/x"'),
    ("x -.pgpass", 'words: x · not: ".pgpass"'),
    ("x -pg_class", 'words: x · not: "pg_class"'),
    ("x -a/b", 'words: x · not: "a/b"'),
    ("x -@x", 'words: x · not: "@x"'),
    ("x -#123", 'words: x · not: "#123"'),
    ("x -$HOME", 'words: x · not: "$HOME"'),
    ("x -%s2", 'words: x · not: "%s2"'),
    ("x -[PATCH]", 'words: x · not: "[PATCH]"'),
    ("x -C++", 'words: x · not: "C++"'),
    ("x -c#", 'words: x · not: "c#"'),
    ("x -std::sort", 'words: x · not: "std::sort"'),
    ("x -foo()", 'words: x · not: "foo()"'),
    ("x -o'brien", 'words: x · not: "o\'brien"'),
    ("x -tom@x.org", 'words: x · not: "tom@x.org"'),
    ("x -<a@b.org>", 'words: x · not: "<a@b.org>"'),
    ("x -1,5", 'words: x · not: "1,5"'),
    ("x -22", 'words: x · not: "22"'),
    ("x -O2", 'words: x · not: "O2"'),
    ("x -rf", 'words: x · not: "rf"'),
    ("x -it's", 'words: x · not: "it\'s"'),
    ("x -é2", 'words: x · not: "é2"'),
    ("x -数据库", 'words: x · not: "数据库"'),
    ("x -:foo", 'words: x · not: ":foo"'),
    ("x -_x", 'words: x · not: "_x"'),
    ("x -mm tree", 'words: x tree · not: "mm"'),
    ("x -v2.", 'words: x · not: "v2."'),
    ("(-foo x)", 'words: x · not: "foo"'),
    ("x -foo-bar", 'words: x · not: "foo-bar"'),
    ("x -2024-05-17", 'words: x · not: "2024-05-17"'),
    ("x -foo=bar", 'words: x · not: "foo=bar"'),
    ("x -f(x)", 'words: x · not: "f(x)"'),
    ("x -NOT", 'words: x · not: "NOT"'),
    ("x -or", 'words: x · not: "or"'),
    ("x -AND", 'words: x · not: "AND"'),
    ('x -"a b"', 'words: x · not: "a b"'),
    ("x -leas*", "words: x · not: words that begin with leas"),
    ("x -9.6*", "words: x · not: words that begin with 9.6"),
    ("x -(ab cd)", "words: x · not: (ab and cd)"),
    ("x -from:tom", "words: x · not: from: tom"),
    ('x -from:"tom lane"', "words: x · not: from: tom lane"),
    ("x -subject:[PATCH v2]", "words: x · not: subject: [PATCH v2]"),
    ("x -has:patch", "words: x · not: kind: patch"),
    # other dashes do too
    ("x –foo", 'words: x · not: "foo"'),
    ("x —foo", 'words: x · not: "foo"'),
    ("x −foo", 'words: x · not: "foo"'),
    ("x ‐foo", 'words: x · not: "foo"'),
    ("x －foo", 'words: x · not: "foo"'),
    ('x —"a b"', 'words: x · not: "a b"'),
    ("x –from:tom", "words: x · not: from: tom"),
    # a dash of an option, a rule, an arrow or within a word is text
    ("ls -l", "words: ls -l"),
    ("pg_dump -t --schema-only", "words: pg_dump -t --schema-only"),
    ("returns -1", "words: returns -1"),
    ("kill -9 x", "words: kill -9 x"),
    ("a - b", "words: a - b"),
    ("a -- b", "words: a -- b"),
    ("--suite=cxl x", "words: --suite=cxl x"),
    ("p ->next", "words: p ->next"),
    ("x -= 3", "words: x -= 3"),
    ("write-ahead log", "words: write-ahead log"),
    ("a-b", "words: a-b"),
    ("foo -", "words: foo -"),
    ("x -?!", "words: x -?!"),
    ("x -…", "words: x -…"),
    ('"ab"-cd', 'words: -cd · phrase "ab"'),
    ("x -t.", "words: x -t."),
    ("—- x", "words: —- x"),
    ("-", "words: -"),
    # NOT, AND and OR
    ("NOT foo", 'not: "foo" · newest first'),
    ("ab NOT cd", 'words: ab · not: "cd"'),
    ("ab AND cd", 'phrase "ab" · phrase "cd"'),
    ("ab AND NOT cd", 'phrase "ab" · not: "cd"'),
    ("ab and not cd", "words: ab and not cd"),
    ('NOT "a b"', 'not: "a b" · newest first'),
    ("NOT from:tom", "not: from: tom · newest first"),
    ("NOT (ab cd)", "not: (ab and cd) · newest first"),
    ("NOT leas*", "not: words that begin with leas · newest first"),
    ("x NOT -cd", 'words: x · not: "cd"'),
    ("AND", "words: AND"),
    ("NOT", "words: NOT"),
    ("ab AND", "words: ab AND"),
    ("ab NOT", "words: ab NOT"),
    ("AND ab", "words: AND ab"),
    ("AND AND ab", 'phrase "AND" · phrase "ab"'),
    ("NOT NOT ab", 'not: "ab" · newest first'),
    ("ab AND OR cd", "words: (ab or cd)"),
    ("ab AND cd OR ef", 'phrase "ab" · (phrase "cd" or phrase "ef")'),
    ("ab OR cd AND ef", '(phrase "ab" or phrase "cd") · phrase "ef"'),
    ("(ab OR cd) AND ef", '(phrase "ab" or phrase "cd") · phrase "ef"'),
    ("(ab cd) AND ef", 'phrase "ab" · phrase "cd" · phrase "ef"'),
    ("ab OR NOT cd", '(ab or not: "cd")'),
    ("from:a AND from:b", "from: a · from: b · newest first"),
    ("from:a AND ab", 'from: a · phrase "ab"'),
    ("ab AND leas*", 'phrase "ab" · words that begin with leas'),
    ("ab AND pg_class", 'phrase "ab" · phrase "pg_class"'),
    ("ab AND sort:oldest", "every word of: ab · oldest first"),
    ("\\NOT ab", "words: NOT ab"),
    ("ab \\AND cd", "words: ab AND cd"),
    ('"NOT" ab', 'words: ab · phrase "NOT"'),
    ('"ab AND cd"', 'phrase "ab AND cd"'),
    ("Not foo", "words: Not foo"),
    ("ＮＯＴ foo", 'not: "foo" · newest first'),
    ("x AND (y OR NOT zz)", 'phrase "x" · (phrase "y" or not: "zz")'),
    ("IS NOT NULL", "words: IS NOT NULL"),
    ("IF NOT EXISTS", "words: IF NOT EXISTS"),
    ("MUST NOT be", "words: MUST NOT be"),
    ("NOT IN (ab)", "words: NOT IN ab"),
    ("NOT NULLIF", 'not: "NULLIF" · newest first'),
    ("VACUUM NOT FULL", 'words: VACUUM · not: "FULL"'),
    # the beginning of a word or name
    ("leas*", "words that begin with leas · newest first"),
    ("9.6*", "words that begin with 9.6 · newest first"),
    ("pg_st*", "words that begin with pg_st · newest first"),
    ("pg_*", "words that begin with pg_ · newest first"),
    (".pgp*", "words that begin with .pgp · newest first"),
    ("Müll*", "words that begin with Müll · newest first"),
    ("/usr/lib*", "words that begin with /usr/lib · newest first"),
    ("~/.pg*", "words that begin with ~/.pg · newest first"),
    ("10.1.*", "words that begin with 10.1. · newest first"),
    ("std::vec*", "words that begin with std::vec · newest first"),
    ("foo-b*", "words that begin with foo-b · newest first"),
    ("tom@x*", "words that begin with tom@x · newest first"),
    ("v16*", "words that begin with v16 · newest first"),
    ("库*", "words that begin with 库 · newest first"),
    ("数据*", "words that begin with 数据 · newest first"),
    ("été*", "words that begin with été · newest first"),
    ("CVE-2024-*", "words that begin with CVE-2024- · newest first"),
    ("C++1*", "words that begin with C++1 · newest first"),
    ("leas＊", "words that begin with leas · newest first"),
    ("v1*", "words: v1*"),
    ("a*", "words: a*"),
    ("*", "words: *"),
    ("**", "words: **"),
    ("a.*", "words: a.*"),
    ("*.c", "words: *.c"),
    ("fo*o", "words: fo*o"),
    ("(.*)", "words: .*"),
    ("x->y*", "words: x->y*"),
    ("leas* OR renew*",
     "(words that begin with leas or words that begin with renew) · newest first"),
    # a field takes any value
    ("subject:[PATCH v2]", "subject: [PATCH v2] · newest first"),
    ("subject:[PATCH v2 2/3] fix", "words: fix · subject: [PATCH v2 2/3]"),
    ("(subject:[PATCH v2]) x", "words: x · subject: [PATCH v2]"),
    ("subject:c++", "subject: c++ · newest first"),
    ('subject:"a:b"', "subject: a:b · newest first"),
    ("subject:-x", "subject: -x · newest first"),
    ("subject:???", "subject: ??? · newest first"),
    ("subject:9.6*", "subject: 9.6 · newest first"),
    ("subject:/C=US/CN=foo", "subject: /C=US/CN=foo · newest first"),
    ("subject:a=b", "subject: a=b · newest first"),
    ("subject:'memory leak' x", "words: x · subject: memory leak"),
    ("subject:'tis", "subject: 'tis · newest first"),
    ("subject:(memory leak)", "subject: memory · subject: leak · newest first"),
    ("subject:(memory OR leak)", "(subject: memory or subject: leak) · newest first"),
    ("subject:(-memory leak)", "not: subject: memory · subject: leak · newest first"),
    ("subject:[x", "subject: [x · newest first"),
    ("subject:“memory leak” x", "words: x · subject: memory leak"),
    ("subject:🦆", "subject: 🦆 · newest first"),
    ("from:@redhat.com", "from: @redhat.com · newest first"),
    ("from:o'brien", "from: o'brien · newest first"),
    ("from:(tom lane)", "from: tom · from: lane · newest first"),
    ("from:(tom OR ingrid) x", "words: x · (from: tom or from: ingrid)"),
    ("from:“Tom Lane”", "from: Tom Lane · newest first"),
    ("from:„Tom Lane“", "from: Tom Lane · newest first"),
    ("from:<tom@x.org>", "from: tom@x.org · newest first"),
    ("from:.de", "from: .de · newest first"),
    ("to:+list", "to: +list · newest first"),
    ("to:(hackers)", "to: hackers · newest first"),
    ("id:abc", "id: abc · newest first"),
    ("id:<abc>", "id: abc · newest first"),
    ("id:<a b@c.org>", "id: a b@c.org · newest first"),
    ("id:a@b", "id: a@b · newest first"),
    ("id:42", "id: 42 · newest first"),
    ("thread:<a@b>", "thread: a@b · newest first"),
    ("file:*.patch", "file: .patch · newest first"),
    ("file:.config", "file: .config · newest first"),
    ("file:-v2.diff", "file: -v2.diff · newest first"),
    ("file:'a b.txt'", "file: a b.txt · newest first"),
    ("list:(aa bb)", "(list: aa or list: bb) · newest first"),
    ("has:(patch reply)", "kind: patch · kind: reply · newest first"),
    # what is not like a value is text
    ("subject: foo", "words: subject: foo"),
    ("from: tom", "words: from: tom"),
    ("From:tom x", "words: From:tom x"),
    ("mode:0644", "words: mode:0644"),
    ("limit:64MB", "words: limit:64MB"),
    ("file:main.c:12", "words: file:main.c:12"),
    ("file:///etc/passwd", "words: file:///etc/passwd"),
    ("to:127.0.0.1:5432", "words: to:127.0.0.1:5432"),
    ("thread:0x7f", "words: thread:0x7f"),
    ("after:30ms", "words: after:30ms"),
    ("subject:", "words: subject:"),
    ('foo:"bar"', 'words: foo: · phrase "bar"'),
    ("foo:bar", "words: foo:bar"),
    ("\\subject:x", "words: subject:x"),
    ("subject\\:x", "words: subject:x"),
    # what is pasted may have other quotes, width and invisible characters
    ("“hot table” x", 'words: x · phrase "hot table"'),
    ("„hot table“ x", 'words: x · phrase "hot table"'),
    ("«hot table» x", 'words: x · phrase "hot table"'),
    ("« hot table » x", 'words: x · phrase "hot table"'),
    ("»hot table« x", 'words: x · phrase "hot table"'),
    ("”hot table” x", 'words: x · phrase "hot table"'),
    ("＂hot table＂ x", 'words: x · phrase "hot table"'),
    ('“hot table" x', 'words: x · phrase "hot table"'),
    ("“hot table x", "words: hot table x"),
    ('"a “b” c"', 'phrase "a “b” c"'),
    ("ｆｒｏｍ：tom", "from: tom · newest first"),
    ("from：tom", "from: tom · newest first"),
    ("l\u200bease", "words: lease"),
    ("\ufefffrom:tom", "from: tom · newest first"),
    ("from:t\u200bom", "from: tom · newest first"),
    ("-\u200bfoo x", 'words: x · not: "foo"'),
    ('"hot\u200b table"', 'phrase "hot table"'),
    ("le\xadase", "words: lease"),
    ("x\u3000y", "words: x y"),
    ("a\xa0-bad", 'words: a · not: "bad"'),
    # an order and other options
    ("x sort:oldest", "every word of: x · oldest first"),
    ("x sort:newest", "every word of: x · newest first"),
    ("x sort:date", "every word of: x · newest first"),
    ("x sort:relevance", "words: x"),
    ("sort:oldest list:a", "list: a · oldest first"),
    ("-foo sort:oldest", 'not: "foo" · oldest first'),
])  # fmt: skip
def test_query_means_what_its_signs_say(query: str, meaning: str) -> None:
    assert describe(query) == meaning
    link = build_permalink(parse_request(Request(query), TODAY))
    assert sorted(describe(link).split(" · ")) == sorted(meaning.split(" · "))


#: Characters of names: a dash before any text of them excludes it, whatever its first sign is.
NAME = st.text(string.ascii_letters + string.digits + "./_@#$%+~:[]{}!?&;,'^é数", min_size=2)


@given(NAME, st.sampled_from("-–—−"), st.sampled_from(["", "lease ", "lease\n"]))
@settings(max_examples=200)
def test_dash_excludes_all_of_what_follows(name: str, dash: str, before: str) -> None:
    letters = [one for one in name if one.isalnum() or one == "_"]
    field = name.partition(":")[0]
    if not letters or len(name.rstrip(".,;:!?")) < 2 or name[-1] == ":":
        return
    if is_name(field) or field in SAME_FIELDS:  # -from:x
        return
    [[condition]] = parse_request(Request(f"{before}{dash}{name}"), TODAY).clauses
    assert condition == Condition(Text("phrase", name), negated=True)
