"""Share the connection to the sample corpus with the tests of search."""

from mail_assets_tests.search.conftest import connection

__all__ = ["connection"]  # fixture
