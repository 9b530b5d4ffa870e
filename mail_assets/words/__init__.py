"""The index of words: full-text search by BM25 over all messages."""
