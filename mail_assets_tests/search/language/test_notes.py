"""Notes on a query: the reading of ambiguous signs, and the spelling of the other reading."""

import pytest

from mail_assets.search.language.request import Request
from mail_assets.search.language.syntax import parse_request

ALONE = "Only exclusions were asked for: all other messages are listed by date."


def notes(query: str) -> list[str]:
    return [*parse_request(Request(query)).notes]


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("-Wall", [ALONE, '-Wall was read as: without Wall. To find it, write "-Wall".']),
        ("-vacuum", [ALONE, '-vacuum was read as: without vacuum. To find it, write "-vacuum".']),
        ("NOT foo", [ALONE, 'NOT foo was read as: without foo. To find it, write "NOT foo".']),
        ("-from:tom -has:patch", [ALONE]),
        ("-Wall gcc", ['-Wall was read as: without Wall. To find it, write "-Wall".']),
        ("gcc -O2", ['-O2 was read as: without O2. To find it, write "-O2".']),
        ("gcc -fPIC", ['-fPIC was read as: without fPIC. To find it, write "-fPIC".']),
        ("rm -rf x", ['-rf was read as: without rf. To find it, write "-rf".']),
        ("gcc -std=c99", ['-std=c99 was read as: without std=c99. To find it, write "-std=c99".']),
        ("error -110", ['-110 was read as: without 110. To find it, write "-110".']),
        ("x —foo", ['—foo was read as: without foo. To find it, write "—foo".']),
        ("x NOT FULL", ['NOT FULL was read as: without FULL. To find it, write "NOT FULL".']),
        ("IF NOT EXISTS", [
            "NOT EXISTS was searched as words. To exclude EXISTS, write -EXISTS."]),
        ("MUST NOT be", ["MUST NOT was searched as words."]),
        ("ls -t", [
            "-t was searched as text, like an option of a command. To exclude it, write -\"t\"."]),
        ("pg_dump --schema-only", [
            "--schema-only was searched as text, like an option of a command. To exclude it, write "
            '-"schema-only".']),
        ("mode:0644", [
            "mode:0644 was searched as text: it is not like a value of mode:. To use the field, "
            'write mode:"0644".']),
        ("From:tom x", [
            "From:tom was searched as text: fields are in lower case, from:tom."]),
        ("subject: foo", [
            "subject: has no value and was searched as text: write the value without a blank "
            "before it, subject:word."]),
        ("Subject: foo", [
            "Subject: has no value and was searched as text: write the value without a blank "
            "before it, subject:word."]),
        ("is:PATCH x", ["is:PATCH was searched as text: fields are in lower case, is:patch."]),
        ("fom:tom x", ["fom: is no field and was searched as text; did you mean from:?"]),
        ("s:lease", ["s: is no field and was searched as text; did you mean subject:?"]),
        ('from:"tom x', ["The quote before tom x is not closed and was left out."]),
        ('author:"tom x"', [
            "author: is no field and was searched as text; did you mean from:?"]),
        ("author:tom x", [
            "author: is no field and was searched as text; did you mean from:?"]),
        ("lease since:2024-05", [
            "since: is no field and was searched as text; did you mean after:?"]),
        ("Cc:tom", ["Cc: is no field and was searched as text; did you mean to:?"]),
        ("lease newer_than:2m", ["newer_than: was read as after:."]),
        ('dfn:lease.c rt:20240501..20240601 tc:"Tom Lane"', [
            "dfn: was read as file:.", "rt: was read as date:.", "tc: was read as to:."]),
        ("dt:1.month.ago..", [
            "dt: is no field and was searched as text; did you mean date:?"]),
        ("nq:lease label:inbox dfhh:lease_init", [
            "nq: is no field and was searched as text; write the words alone.",
            "label: is no field and was searched as text; for one list, write list:NAME.",
            "dfhh: is no field and was searched as text; write a function or file that is changed, "
            "alone or in file:."]),
        ("*lease of", [
            "*lease was searched as lease: words are found whole or by their beginning, lease*, "
            "and names by their parts too."]),
        ("*lease*", [
            "*lease* was searched as lease: words are found whole or by their beginning, lease*, "
            "and names by their parts too."]),
        ("lease 2024-05-17", [
            "2024-05-17 was searched as text. For mail of that time, write date:2024-05-17."]),
        ("2024-05", ["2024-05 was searched as text. For mail of that time, write date:2024-05."]),
        # nothing to say
        ('"2024-05" 2024 2024-13 CVE-2024-05 2024-05-17x', []),
        ("date:2024-05 author: cc", []),
        ("int *p = &x; *p++; lease* * **", []),
        ("lease -worker", []),
        ("lease NOT worker", []),
        ("lease -7.5.0 -/usr -from:tom", []),
        ("-vacuum from:tom", []),
        ("a - b -> c -= d", []),
        ("write-ahead log", []),
        ('"-Wall" gcc', []),
        ("Error: no such file", []),
        ("http://x.org std::sort", []),
        ('subject:"a" from:@x id:42', []),
        ('a 3.5" disk in C:\\x, see Subject: foo', []),
    ],
)  # fmt: skip
def test_ambiguous_signs_are_named(query: str, said: list[str]) -> None:
    assert notes(query) == said


def test_at_most_three_signs_of_a_kind_are_named() -> None:
    assert len(notes("gcc -O1 -O2 -O3 -O4 -a -b -c -d")) == 6
    assert max(map(len, notes(f"-X{'x' * 1_900}"))) < 200
