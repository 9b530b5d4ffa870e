"""How well search answers judged queries: the measures, and what counts as worse."""
