"""List files that other programs move meanwhile: a mail program, or one that copies archives."""

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

#: How often files are listed before it is given up. A file that is moved costs one more listing.
LISTINGS = 5


def list_again(find: Callable[[], T]) -> T:
    """Return what `find` lists; again where a file was gone when it was looked at.

    It may have got another name, so that it is not left out.

    Raises:
        FileNotFoundError: that was so each time.
    """
    for _ in range(LISTINGS - 1):
        try:
            return find()
        except FileNotFoundError:
            pass
    return find()
