"""The sensors: what starts runs by itself, and what reports failed ones."""
