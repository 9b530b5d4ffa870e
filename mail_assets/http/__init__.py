"""What every request over HTTP has in common."""
