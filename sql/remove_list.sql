-- Removing a list from the tables. Used by forgetting/remove_list.py.

-- name: months
-- Months with rows in any table.
-- Whole corpus: a person removes a list, and asks once for all that it has.
select month from mbox_archives where list = %(list)s
union
select month from partitions where list = %(list)s and month is not null
union
select month from messages where list = %(list)s
union
select month from archive_entries where list = %(list)s
union
select month from quarantine where list = %(list)s
union
select month from chunks where list = %(list)s
union
select month from patches where list = %(list)s
union
select month from commits where list = %(list)s
union
select month from vectors where list = %(list)s
union
select month from words where list = %(list)s
union
select month from former_archives where list = %(list)s
union
select month from removed_upstream where list = %(list)s
union
select month from month_checks where list = %(list)s
 order by 1

-- name: is_recorded
select exists (select from lists where list = %(list)s)

-- name: close
-- Takes effect at once for the SQL functions.
update lists set published = false where list = %(list)s and published

-- name: vectors
-- Keys of a month in the manifest of vectors, per index.
select index_name, array_agg(key order by key)
  from vectors
 where list = %(list)s and month = %(month)s
 group by index_name
 order by index_name

-- name: words
select index_name, array_agg(key order by key)
  from words
 where list = %(list)s and month = %(month)s
 group by index_name
 order by index_name

-- name: ids
select distinct message_id from messages where list = %(list)s and month = %(month)s

-- name: delete_messages
-- For `(select ...)` around the list see messages.sql.
delete from messages where list = (select %(list)s) and month = %(month)s

-- name: delete_patches
delete from patches where list = (select %(list)s) and month = %(month)s

-- name: delete_commits
-- A trigger deletes their links.
delete from commits where list = %(list)s and month = %(month)s

-- name: delete_commit_link_months
delete from commit_link_months where list = %(list)s and month = %(month)s

-- name: delete_commit_link_sources
delete from commit_link_sources where list = %(list)s and month = %(month)s

-- name: delete_chunks
delete from chunks where list = %(list)s and month = %(month)s

-- name: delete_archive_entries
delete from archive_entries where list = %(list)s and month = %(month)s

-- name: delete_quarantine
delete from quarantine where list = %(list)s and month = %(month)s

-- name: delete_former_archives
delete from former_archives where list = %(list)s and month = %(month)s

-- name: delete_removed_upstream
delete from removed_upstream where list = %(list)s and month = %(month)s

-- name: delete_removed_messages
-- Rows that hide the id of a forgotten message in other mail stay; they have digests only.
delete from removed_messages
 where list = %(list)s and month = %(month)s and message_digest is null

-- name: delete_cut_messages
delete from cut_messages
 where list = %(list)s and month = %(month)s and message_digest is null

-- name: delete_month_checks
delete from month_checks where list = %(list)s and month = %(month)s

-- name: delete_mbox_archives
delete from mbox_archives where list = %(list)s and month = %(month)s

-- name: delete_partitions
-- Only months that no index has any more.
delete from partitions p
 where p.list = %(list)s and p.month = %(month)s
   and not exists (select from vectors v where (v.list, v.month) = (p.list, p.month))
   and not exists (select from words w where (w.list, w.month) = (p.list, p.month))

-- name: count_audit
-- Adds the counts of searches that named the list to those that name the other lists.
with gone as (
    delete from search_audit where %(list)s = any(lists) returning *)
insert into search_audit (hour, surface, mode, fields, lists, hits, ms, status, searches)
select hour, surface, mode, fields, array_remove(lists, %(list)s::text), hits, ms, status,
       sum(searches)
  from gone
 group by 1, 2, 3, 4, 5, 6, 7, 8
on conflict (hour, surface, mode, fields, lists, hits, ms, status) do update
   set searches = search_audit.searches + excluded.searches

-- name: count_served
update served_searches set lists = array_remove(lists, %(list)s::text) where %(list)s = any(lists)

-- name: delete_list
-- Last: while the row exists, an interrupted removal can be continued.
delete from lists where list = %(list)s
