"""The kinds of lines in a message's body: new text, quotes, signatures, footers, patches."""
