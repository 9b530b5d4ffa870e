"""Which server gets which password: a source's own server only, and postgresql.org its public one.

On a redirect httpx itself drops the password at the first other server.
"""

from urllib.parse import urlsplit

from mail_assets.sources.http_options import HttpOptions


def password_for(url: str, source: str, options: HttpOptions) -> tuple[str, str] | None:
    """Return the user and password to send to `url` on behalf of the source at the URL `source`."""
    pair = options.postgresql_auth if _is_postgresql(url) else options.auth
    if not pair or not _is_own(url, source):
        return None
    user, _, password = pair.partition(":")
    return user, password


def password_remedy(url: str, source: str, options: HttpOptions) -> str:
    """Say what to do where `url` answers that a password is missing or wrong."""
    if _is_postgresql(url):
        return "check that the site still takes its public password"
    if not _is_own(url, source):
        return "no password is sent to another server than the source's; name it as the source"
    refused = " (the pair it holds is refused)" if options.auth else ""
    return f"set MAIL_HTTP_AUTH to user:password{refused}"


def _is_own(url: str, source: str) -> bool:
    """Say whether `url` is on the source's server, and reached no less securely."""
    own, other = urlsplit(source), urlsplit(url)
    return (own.hostname, own.port) == (other.hostname, other.port) and (
        other.scheme in ("https", own.scheme)
    )


def _is_postgresql(url: str) -> bool:
    return f".{urlsplit(url).hostname}".endswith(".postgresql.org")
