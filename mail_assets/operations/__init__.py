"""Operations on a home: examine, back up, restore."""

#: Days that `prune` keeps everything: by default, and at least.
KEEP_DAYS, LEAST_DAYS = 90, 30
