"""`python -m mail_assets.cli`, for where the `mail-assets` script is not on the path."""

from mail_assets.cli import main

main(prog_name="mail-assets")
