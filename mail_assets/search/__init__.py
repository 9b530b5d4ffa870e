"""Search: query -> legs -> fusion -> hits.

A request (request.py, syntax.py) becomes a query (query.py, terms.py) and filters (filters.py); two
legs rank messages (fulltext_leg.py, semantic_leg.py); fusion.py makes one ranking of them, as
retrieval.py asks; hits.py and page.py show it. searcher.py does all of this, open.py opens one.
"""
