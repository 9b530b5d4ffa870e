"""Operations on a home: examine, back up, restore."""

#: Days that `prune` keeps everything: the default and the minimum.
KEEP_DAYS, LEAST_DAYS = 90, 30
