"""Who wrote which line of a body: new text, quote, signature, footer or patch."""
