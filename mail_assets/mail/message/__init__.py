"""Content of a message (RFC 5322, MIME): header fields, parts, body text, attachments."""
