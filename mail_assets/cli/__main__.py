"""`python -m mail_assets.cli`: the command line if `mail-assets` is not on the PATH."""

from mail_assets.cli import main

main(prog_name="mail-assets")
