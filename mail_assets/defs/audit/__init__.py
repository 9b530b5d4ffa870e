"""What Dagster shows of the searches that were served: figures, a table of days, and the chart."""
