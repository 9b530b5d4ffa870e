"""Code shared by HTTP clients: header fields, retries, permitted hosts, webhooks."""
