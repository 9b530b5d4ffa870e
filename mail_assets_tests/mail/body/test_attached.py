"""Segments of a body with attached messages: each text is a body of its own."""

from mail_assets.mail.body.segments import segment_body, segment_with_attached

OWN = "> quoted\nSee below.\n-- \nJo\n\n"
HEAD = "From: Ann <ann@example.org>\nDate: Mon, 5 Jan 2026\nSubject: lease\n\n"
INNER = "New text\nOn Monday Jo wrote:\n> old\n-- \nAnn\n"


def test_a_body_without_attached_messages_is_segmented_as_ever() -> None:
    assert segment_with_attached(OWN, ()) == segment_body(OWN)


def test_an_attached_message_has_quotes_and_a_signature_of_its_own() -> None:
    body = OWN + HEAD + INNER
    attached = [(len(OWN), len(OWN) + len(HEAD))]
    parts = segment_with_attached(body, attached)
    assert [(part.kind, body[part.start : part.end]) for part in parts] == [
        ("quote", "> quoted\n"),
        ("text", "See below.\n"),
        ("signature", "-- \nJo\n\n"),
        ("text", HEAD + "New text\n"),
        ("attribution", "On Monday Jo wrote:\n"),
        ("quote", "> old\n"),
        ("signature", "-- \nAnn\n"),
    ]


def test_segments_of_one_kind_are_joined_where_messages_meet() -> None:
    body = "one\n\nSubject: b\n\ntwo\n\nthree\n"
    parts = segment_with_attached(body, [(5, 17), (22, 22)])
    assert parts == [(0, len(body), "text")]
