"""The two indexes of the mail, vectors and words, made by one pattern.

Each has a name that carries what made its entries (names.py), a manifest in Postgres of the keys
that it should have, and is filled month by month (month.py). Search asks the live one (live.py).
"""
