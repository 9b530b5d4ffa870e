"""Search: turns a request into a page of hits.

open.py opens a searcher, and searcher.py answers a request. Below them, from top to bottom: page.py
(hits and facets), retrieval.py (asks both indexes, confirms in PostgreSQL, ranks), fusion.py,
by_date.py, fulltext.py, semantic.py, look_up.py, direct_hits.py, matches.py, filters.py, query.py,
and language/ (reads the query).
"""
