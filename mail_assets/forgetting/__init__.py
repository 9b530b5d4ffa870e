"""Take mail out of everything: rows, embeddings, indexes, and archives."""
