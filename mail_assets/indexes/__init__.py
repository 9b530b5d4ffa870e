"""The two indexes of the mail, vectors and words, made by one pattern.

Each has a name that identifies how its entries were made (names.py), and a manifest in Postgres of
the keys that it should have. It is filled month by month (month.py). Search uses the live one
(live.py).
"""
