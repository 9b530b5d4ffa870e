"""The archive on the web: pages for people, JSON for programs, tools for assistants.

A request goes through limits.py, app.py, documents.py or browse.py, and pages.py. Searching is in
search/, reading messages in reading/ and tables/. A request that is wrong, or asks for what is not
here, raises a RequestError or a ServingError: app.py answers with its status and its text.
"""
