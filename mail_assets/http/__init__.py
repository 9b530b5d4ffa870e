"""Parts that HTTP clients share: header fields, retries, hosts, webhooks."""
