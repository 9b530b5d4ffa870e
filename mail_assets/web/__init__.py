"""The archive on the web: pages for people and JSON for programs, over the one search.

What does not live here: searching (search/) and reading messages (tables/); a page shows what they
return and decides nothing.
"""
