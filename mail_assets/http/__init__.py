"""What all requests over HTTP share: header fields, and when a failed request is sent again."""
