"""Measure the quality of search with judged queries, and detect losses."""
