"""Answers are made from the corpus that search finds in."""

from mail_assets_tests.search.conftest import connection

__all__ = ["connection"]  # fixture
