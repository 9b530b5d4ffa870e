"""One message out of its bytes: header fields, MIME parts, the text of its body."""
