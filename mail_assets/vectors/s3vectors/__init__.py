"""Vector buckets of AWS S3 Vectors and of Supabase: one API, one client, two ways to sign."""
