"""The word index: full-text search by BM25 over all messages."""
