"""Operations on a home: examine, back up, restore, prune."""
