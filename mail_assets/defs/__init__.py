"""All code that imports Dagster: assets, checks, resources, jobs, schedules, sensors, backfill."""
