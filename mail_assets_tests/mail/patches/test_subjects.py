"""Subjects of patches are parsed into version, part, tags and title."""

import pytest

from mail_assets.mail.patches.subjects import fold_title, read_subject

# subject, version, part/parts, tags, title
CASES = """
[PATCH v3 2/5] foo: bar                  | 3 | 2/5   |               | foo: bar
[ndctl PATCH v2] x                       | 2 |       | ndctl         | x
[PATCH -next v2] x                       | 2 |       | -next         | x
[RFC PATCH net-next 0/3 v4] x            | 4 | 0/3   | rfc net-next  | x
[v2][PATCH] x                            | 2 |       |               | x
[PATCHv2] x                              | 2 |       |               | x
[PATCH 02/10 v3] x                       | 3 | 2/10  |               | x
[PATCH 1 of 3] x                         |   | 1/3   |               | x
Re: [PATCH v2 1/2] foo                   | 2 | 1/2   |               | foo
[PATCH net-next,v2] x                    | 2 |       | net-next      | x
[net-next,v2,1/3] x                      | 2 | 1/3   | net-next      | x
[PATCH-V3] x                             | 3 |       |               | x
[RFC/PATCH 1/n] x                        |   | 1/    | rfc           | x
[HACKERS] [PATCH] x (v2)                 | 2 |       | hackers       | x
[HACKERS] Fix foo                        |   |       | hackers       | Fix foo
PATCH: foo                               |   |       |               | foo
PATCH v2 1/3: foo                        | 2 | 1/3   |               | foo
[PATCH] 2/3: foo                         |   | 2/3   |               | foo
[PATCH] foo (2/3)                        |   | 2/3   |               | foo
[PATCH take 2] foo                       | 2 |       |               | foo
[PATCH try #2] foo                       | 2 |       |               | foo
[PATCH 5.10 123/456] x                   |   | 123/456 | 5.10        | x
[PATCH v4 2.1/5] x                       | 4 | 2/5   |               | x
[PATCH v2-1/3] x                         | 2 | 1/3   |               | x
[PATCH2/5] x                             |   | 2/5   |               | x
[PULL 3/20] x                            |   | 3/20  | pull          | x
[RESEND PATCH 1/2] [media] x             |   | 1/2   | resend media  | x
foo bar [PATCH v2]                       | 2 |       |               | foo bar
[PATCH v8] foo v8                        | 8 |       |               | foo
[PATCH v8 1/2] foo, V8                   | 8 | 1/2   |               | foo
[PATCH v3] nfs: know v4                  | 3 |       |               | nfs: know v4
[PATCH] nfs: know v4                     |   |       |               | nfs: know v4
AW: Re: [PATCH] y                        |   |       |               | y
[PATCH v99999999] x                      |   |       | v99999999     | x
[PATCH] Support NFS v3                   |   |       |               | Support NFS v3
[PATCH v2 (repost)] y                    | 2 |       | repost        | y
[PATCH v5 - 1/2] x                       | 5 | 1/2   |               | x
nvdimm: [PATCH v2] y                     | 2 |       |               | nvdimm: y
[patch v2]Re: y                          | 2 |       |               | y
[PATCH v3 RESEND 00/12][RFC] y           | 3 | 0/12  | resend rfc    | y
Ping: [PATCH v6 1/2] y                   | 6 | 1/2   | ping          | y
[PING^2][PATCH, arm] y                   |   |       | ping arm      | y
*PING* [PATCH v2] y                      | 2 |       | ping          | y
Re: EXTERNAL: [PATCH v2 1/2] y           | 2 | 1/2   |               | y
*** SPAM *** [EXT]: Re: [PATCH v2] y     | 2 |       |               | y
Gentle ping: Re: [PATCH] y               |   |       | ping          | y
[PATCH] ping: y                          |   |       |               | ping: y
"""


@pytest.mark.parametrize("line", CASES.strip().splitlines())
def test_subject_is_parsed(line: str) -> None:
    subject, version, part, tags, title = (field.strip() for field in line.split("|"))
    found = read_subject(subject)
    parts = f"{found.part}/{found.parts or ''}" if found.part is not None else ""
    assert (str(found.version or ""), parts) == (version, part)
    assert (" ".join(found.tags), found.title) == (tags, title)


@pytest.mark.parametrize(("subject", "is_patch", "is_answer"), [
    ("[PATCH] x", True, False),
    ("Re: [PATCH] x", True, True),
    ("[RFC] x", True, False),
    ("[bug] x", False, False),
    ("Re: x", False, True),
    ("Antwort: [PATCH v2] x", True, True),
    ("Docs: x", False, False),
    ("", False, False),
    ("[[[]]", False, False),
])  # fmt: skip
def test_subject_says_that_it_is_a_patch(subject: str, is_patch: bool, is_answer: bool) -> None:
    found = read_subject(subject)
    assert (found.is_patch, found.is_answer) == (is_patch, is_answer)


@pytest.mark.parametrize(("subject", "is_posting"), [
    ("[PATCH 8/9] x", True),
    ("[8/9] x", True),
    ("Re: [PATCH 8/9] x", False),
    ("Ping: [PATCH 8/9] x", False),
    ("[PATCH drivers:crane 8/9] x", True),
    # a robot about a commit of a branch
    ("[crane:next 8/9] crane.c:7146:5: warning: no previous prototype", False),
])  # fmt: skip
def test_subject_says_that_its_mail_posts_a_patch(subject: str, is_posting: bool) -> None:
    assert read_subject(subject).is_posting is is_posting


def test_title_is_folded_to_letters_and_digits() -> None:
    assert fold_title("Libndctl: Foo-Bar  baz.") == fold_title("libndctl foo_bar BAZ")
    assert fold_title("***") == "***"
