"""Removal of mail from rows, embeddings, indexes and archives."""
