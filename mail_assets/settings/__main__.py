"""`python -m mail_assets.settings > docs/settings.md` writes the page of all settings."""

import sys

from mail_assets.settings.variables import format_page

sys.stdout.write(format_page())
