"""Search: a request becomes a page of hits.

searcher.py is the whole way, and open.py opens a searcher. Below them stand, from top to bottom:
page.py (hits and facets), retrieval.py (both indexes are asked, PostgreSQL confirms, one
ranking), fusion.py, by_date.py, fulltext.py, semantic.py, look_up.py, direct_hits.py,
matches.py, filters.py,
query.py, and language/ (what was asked).
"""
