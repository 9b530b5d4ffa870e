"""Word indexes: which messages have the words of a question, ranked by BM25.

Nothing here knows Dagster, PostgreSQL, or how a text becomes lexemes.
"""
