"""The body of a message taken apart: new text, quotes, signatures, footers, patches."""
