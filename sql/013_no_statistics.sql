-- Columns that are emptied again and again: the planner's statistics, which hold common values, are
-- kept where a table has become empty, and would name what was forgotten. A change of type drops
-- those of before.

alter table thread_changes
    alter message_id set statistics 0,
    alter message_id type text;
