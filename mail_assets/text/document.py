"""Build the text that an encoder sees of a chunk: the message's subject, then the chunk."""

from mail_assets.text.byte_limits import cut_to_bytes

# A tokenizer makes at most one token of a UTF-8 byte (WordPiece makes three of a Hangul
# syllable), so this bounds the header in tokens too. Subjects rarely pass 120 characters.
MAX_HEADER_BYTES = 160


def build_document(header: str, text: str) -> str:
    """Return exactly what the encoder sees: the header, a line end and the text.

    A header over MAX_HEADER_BYTES in UTF-8 is cut there; an empty half leaves no line end.
    """
    header = cut_to_bytes(header.strip(), MAX_HEADER_BYTES).strip()
    return f"{header}\n{text}" if header and text else header or text
