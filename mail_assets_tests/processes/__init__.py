"""Tests of mail_assets.processes."""
