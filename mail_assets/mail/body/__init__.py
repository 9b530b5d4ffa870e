"""Classification of each line of a body: new text, quote, signature, footer or patch."""
