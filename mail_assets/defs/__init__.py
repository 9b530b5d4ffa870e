"""All code that knows Dagster: assets, checks, resources, jobs, schedules, sensors, backfill."""
