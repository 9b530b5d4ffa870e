"""What Dagster shows of the quality of search: its history, the tables and the chart."""
