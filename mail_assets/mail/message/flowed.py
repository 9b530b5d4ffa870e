"""Paragraphs of format=flowed text as one line each (RFC 3676)."""


def unflow(text: str, *, delsp: bool = False) -> str:
    """format=flowed to logical lines (RFC 3676 section 4).

    Quote marks stay in front of every line and space-stuffing is undone. The signature
    separator `-- ` and blank lines are never joined to their neighbours, though some senders
    leave a space at the end of a paragraph.
    """
    lines: list[str] = []
    paragraph: list[str] = []  # pieces of an open flowed line
    open_depth = 0
    for line in text.split("\n"):
        rest = line.lstrip(">")
        depth = len(line) - len(rest)
        rest = rest.removeprefix(" ")
        if paragraph and (depth != open_depth or rest == "-- " or not rest):
            lines.append("".join(paragraph))
            paragraph = []
        if not paragraph:
            paragraph.append(">" * depth + " " * bool(depth and rest))
            open_depth = depth
        flowed = rest.endswith(" ") and rest != "-- "
        paragraph.append(rest[:-1] if flowed and delsp else rest)
        if not flowed:
            lines.append("".join(paragraph))
            paragraph = []
    if paragraph:
        lines.append("".join(paragraph))
    return "\n".join(lines)
