"""What the terminal can show, by the conventions of its environment variables.

https://no-color.org, https://docs.gitlab.com/ci/variables/predefined_variables (CI)
"""

import os
import sys


def shows_progress() -> bool:
    """Return whether standard error is a terminal on which a display can be redrawn."""
    return sys.stderr.isatty() and shows_colour() and not os.environ.get("CI")


def shows_colour() -> bool:
    """Return whether a terminal may be given colours: not with NO_COLOR or TERM=dumb."""
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") not in ("dumb", "unknown")
