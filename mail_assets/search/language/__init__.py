"""The query language: a request, its fields and words, and what every hit must meet."""
