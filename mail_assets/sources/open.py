"""Check the URL of a source, and open the source behind it.

A path or file:// is a folder, s3://bucket/prefix an S3 prefix, http(s):// a page of links or, with
a placeholder for the month, a URL template.
"""

from mail_assets.sources.archive_names import is_template
from mail_assets.sources.http_options import HttpOptions
from mail_assets.sources.source import ArchiveSource
from mail_assets.sources.urls import check_http_url, folder_path, s3_location, url_scheme


def check_source(url: str) -> None:
    """Raise ValueError, with a short reason, where `url` cannot be a source; opens nothing."""
    match url_scheme(url):
        case "file":
            folder_path(url)
        case "s3":
            s3_location(url)
        case _:
            check_http_url(url)


def open_source(list_name: str, url: str, *, start: str, options: HttpOptions) -> ArchiveSource:
    """Return the source of a list's archives at `url`.

    `start` ("YYYY-MM") is the first month of a template; `options` are for http(s) alone.

    Raises:
        ValueError: `url` cannot be a source.
    """
    check_source(url)
    # imported where they are opened: boto3 and httpx take 0.1 s each, and most commands open none
    match url_scheme(url):
        case "file":
            from mail_assets.sources.folder import FolderSource

            return FolderSource(list_name, url)
        case "s3":
            from mail_assets.sources.s3 import S3Source

            return S3Source(list_name, url)
    from mail_assets.sources.http import PageSource, TemplateSource

    if is_template(url):
        return TemplateSource(list_name, url, options, start)
    return PageSource(list_name, url, options)
