"""Two versions of a patch or series are compared."""

import random

import pytest

from mail_assets.mail.patches import interdiff as module
from mail_assets.mail.patches.diff import read_diff
from mail_assets.mail.patches.interdiff import (
    Version,
    compare_patches,
    compare_series,
    format_comparison,
)

LINES = {
    "crane.c": [" int load;", "-int weight;", "+int weight_of_load;", " int height;"],
    "boat.c": [" int keel;", "+int draught;", " int mast;"],
}


def diff_of(name: str, lines: list[str], at: int = 1) -> str:
    old = sum(line[0] != "+" for line in lines)
    new = sum(line[0] != "-" for line in lines)
    body = "".join(f"{line}\n" for line in lines)
    return (
        f"diff --git a/{name} b/{name}\nindex 01ab23c..23cd45e 100644\n--- a/{name}\n+++ b/{name}\n"
        f"@@ -{at},{old} +{at},{new} @@ int lift(void)\n{body}"
    )


def version(name: str, text: str, title: str = "Limit", *changelog: str) -> Version:
    return Version(name, f"{name}@example.org", title, read_diff(text), changelog)


CRANE = diff_of("crane.c", LINES["crane.c"])
BOAT = diff_of("boat.c", LINES["boat.c"])


@pytest.mark.parametrize(("new", "state", "files"), [
    pytest.param(CRANE, "same", ["same"], id="the same"),
    pytest.param(diff_of("crane.c", LINES["crane.c"], 70), "same", ["same"], id="moved"),
    pytest.param(CRANE.replace("int height", "int size"), "context", ["context"], id="context"),
    pytest.param(CRANE.replace("weight_of_load", "mass"), "changed", ["changed"], id="changed"),
    pytest.param(CRANE + BOAT, "changed", ["same", "added"], id="a file more"),
    pytest.param(BOAT, "changed", ["added", "dropped"], id="another file"),
    pytest.param("", "changed", ["dropped"], id="no diff"),
])  # fmt: skip
def test_state_describes_the_difference(new: str, state: str, files: list[str]) -> None:
    found = compare_patches(version("v1", CRANE), version("v2", new))
    assert found.state == state
    assert [file.state for file in found.files] == files


def test_lines_have_the_sign_of_the_version_and_of_the_patch() -> None:
    new = CRANE.replace("weight_of_load", "mass")
    found = compare_series(
        [version("v1", CRANE, "Limit")], [version("v2", new, "Limits", "v2: shorter name")]
    )
    assert format_comparison(found) == (
        "v1 -> v2  Limits: changed\n"
        "    title before: Limit\n"
        "    | v2: shorter name\n"
        "  crane.c: changed\n"
        "     @@ int lift(void)\n"
        "      int load;\n"
        "     -int weight;\n"
        "    -+int weight_of_load;\n"
        "    ++int mass;\n"
        "      int height;\n"
    )


def test_renamed_file_is_compared_with_what_it_was() -> None:
    index = "index 01ab23c..23cd45e 100644"
    renamed = f"similarity index 90%\nrename from crane.c\nrename to lift.c\n{index}"
    new = CRANE.replace("b/crane.c", "b/lift.c").replace(index, renamed)
    [file] = compare_patches(version("v1", CRANE), version("v2", new)).files
    assert (file.path, file.old_path, file.state) == ("lift.c", "crane.c", "changed")


def test_names_of_compared_files_are_clean() -> None:
    lines = LINES["boat.c"]
    old, new = (version(name, diff_of(f"{name}\u202e\x1b.c", lines)) for name in ("a", "b"))
    [file] = compare_patches(old, version("v2", diff_of("a\u202e\x1b.c", lines[1:]))).files
    assert file.path == "a.c"
    assert {file.path for file in compare_patches(old, new).files} == {"a.c", "b.c"}


def test_marks_of_direction_in_code_are_written_out() -> None:
    old, new = ([f"+int a;\u202e{n}", "+int b;"] for n in (1, 2))
    for before, after in ((old, new), (new, [])):
        files = compare_patches(
            version("v1", diff_of("a.c", before)), version("v2", diff_of("a.c", after))
        ).files
        text = "\n".join(line for file in files for line in file.lines)
        assert "int a;[U+202E]" in text
        assert "\u202e" not in text


def test_patches_of_a_series_are_paired() -> None:
    long = [f"+int x{n};" for n in range(20)]
    old = [
        version("v1 1/4", CRANE, "One"),
        version("v1 2/4", BOAT, "Two"),
        version("v1 3/4", diff_of("a.c", long), "Three"),
        version("v1 4/4", diff_of("z.c", ["+int zero;"]), "Gone"),
    ]
    new = [
        version("v2 1/4", diff_of("a.c", [*long, "+int more;"]), "Third, and more"),
        version("v2 2/4", BOAT.replace("draught", "depth"), "Two"),
        version("v2 3/4", CRANE, "First"),
        version("v2 4/4", diff_of("n.c", ["+int fresh;"]), "Fresh"),
    ]
    found = compare_series(old, new)
    assert [(one.old and one.old.name, one.new and one.new.name, one.state) for one in found] == [
        ("v1 3/4", "v2 1/4", "changed"),
        ("v1 2/4", "v2 2/4", "changed"),
        ("v1 1/4", "v2 3/4", "same"),
        (None, "v2 4/4", "added"),
        ("v1 4/4", None, "dropped"),
    ]


def test_comparison_with_itself_finds_nothing() -> None:
    chance = random.Random(5)
    for _ in range(50):
        lines = [chance.choice("+- ") + chance.choice("abc") for _ in range(chance.randint(1, 30))]
        one = version("v1", diff_of("x.c", lines))
        assert compare_patches(one, one).state == "same"


def test_applying_the_signs_gives_both_versions() -> None:
    chance = random.Random(6)
    for _ in range(200):
        texts = [
            diff_of("x.c", [chance.choice("+- ") + chance.choice("ab") for _ in range(12)])
            for _ in range(2)
        ]
        old, new = (version(f"v{n}", text) for n, text in enumerate(texts, 1))
        [file] = compare_patches(old, new).files
        if file.state == "same":
            assert texts[0] == texts[1]
            continue
        for sign, one in (("-", old), ("+", new)):
            wanted = ["@@ int lift(void)", *one.diff.files[0].hunks[0].lines]
            shown = [line[1:] for line in file.lines if line[0] in {" ", sign}]
            assert _is_within(shown, wanted)


def _is_within(shown: list[str], wanted: list[str]) -> bool:
    """Return True if the lines occur in others, in the same order."""
    left = iter(wanted)
    return all(line in left for line in shown)


def test_very_long_difference_is_shown_as_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_COMPARISONS", 100)
    old, new = (diff_of("x.c", [f"+{name}{n}" for n in range(40)]) for name in "ab")
    [file] = compare_patches(version("v1", old), version("v2", new)).files
    assert file.is_cut
    assert len(file.lines) == 81
