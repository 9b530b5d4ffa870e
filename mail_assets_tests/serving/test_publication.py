"""The one door: what is not listed as an id is masked, wherever it stands."""

from mail_assets.serving.publication import HIDDEN, SHOWN, Publication

DOCUMENT = {
    "message_id": "id1@example.org",
    "from_email": "ann@example.org",
    "from_name": "ann@example.org",
    "new_field": [{"deep": ("by ann@example.org", 3, None)}],
    "authors": {"ann@example.org": 2},
}


def test_a_field_that_nobody_thought_of_is_masked() -> None:
    seen = Publication(HIDDEN).publish(DOCUMENT)
    assert seen == {
        "message_id": "id1@example.org",
        "from_name": "\u2022" * 15,
        "new_field": [{"deep": [f"by {chr(0x2022) * 15}", 3, None]}],
    }


def test_nothing_is_masked_where_addresses_are_shown() -> None:
    assert Publication(SHOWN).publish(DOCUMENT) is DOCUMENT
