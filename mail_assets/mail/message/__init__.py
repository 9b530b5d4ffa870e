"""One message parsed from its bytes: header fields, MIME parts, body text, attachments."""
