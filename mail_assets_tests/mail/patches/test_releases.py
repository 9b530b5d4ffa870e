"""Release announcements: what they announce, and the titles that they list."""

import pytest

from mail_assets.mail.patches.commits import find_listed, read_release

TITLE = "crane: know the limit of the load"


@pytest.mark.parametrize(
    ("subject", "name"),
    [
        ("[ANNOUNCE] crane v7", "crane v7"),
        ("[ANN] crane-tools 1.2.3-rc1", "crane-tools 1.2.3-rc1"),
        ("crane 2.0 released", "crane 2.0 released"),
        ("Announcing crane 12", "Announcing crane 12"),
        ("Crane v2.40.0", "Crane v2.40.0"),
        ("Crane 6.1-rc3", "Crane 6.1-rc3"),
        ("Release of crane 2024.05", "Release of crane 2024.05"),
        ("Re: [ANNOUNCE] crane v7", ""),
        ("[GIT PULL] crane fixes for v6.2-rc6", ""),
        ("[PATCH] crane: release the hook 2 times", ""),
        ("[crane PATCH 0/3] misc updates for release scripts v2", ""),
        ("[BUG] 6.15-rc1 crane falls", ""),
        ("When is crane 2.0 released?", ""),
        ("Release schedule of 2.0", ""),
        ("crane: release the hook", ""),
        ("Meeting on 4.5", ""),
    ],
)
def test_subject_names_the_release(subject: str, name: str) -> None:
    assert read_release(subject) == name


@pytest.mark.parametrize(
    "line",
    [
        f"      {TITLE}",
        f"  * {TITLE}",
        f"- {TITLE}.",
        f"12. {TITLE}",
        f"4e646fa490ba {TITLE}",
        f"- [4e646fa4] {TITLE} (Ann Lee)",
        f"* {TITLE} (#123)",
        f"* {TITLE} [Ann Lee]",
        "      crane: know the limit\n        of the load",
        f"      {TITLE.upper()}",
    ],
)
def test_title_is_found_in_the_list(line: str) -> None:
    body = f"A new crane.\n\nAnn Lee (2):\n{line}\n      crane: paint it\n"
    start, end = find_listed(body, TITLE) or (0, 0)
    assert body[start:end] == line


@pytest.mark.parametrize(
    "line",
    [
        f"> {TITLE}",
        f'Revert "{TITLE}"',
        f"{TITLE}, and of the hook",
        f"We now {TITLE}",
        "crane: know the limit",
        "crane: know the limit\n\n  of the load",
    ],
)
def test_other_lines_are_no_title(line: str) -> None:
    assert find_listed(f"A new crane.\n\n{line}\n", TITLE) is None


def test_short_title_is_not_looked_for() -> None:
    assert find_listed("Fix typo\n", "Fix typo") is None
