"""Assets, checks, jobs, schedules and sensors of your own: docs/extending.md."""
