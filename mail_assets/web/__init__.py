"""The archive on the web: pages for people, JSON for programs, tools for assistants.

A request goes through limits.py, paths.py, documents.py or browse.py, and pages.py. search/
searches; reading/ and tables/ read messages. A wrong request, or one for something that does not
exist, raises a RequestError or a ServingError. app.py responds with its status and message.
"""
