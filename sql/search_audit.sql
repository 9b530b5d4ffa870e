-- Counts of served searches by kind. Used by tables/search_audit.py.

-- name: add
insert into served_searches (hour, surface, mode, fields, lists, hits, ms, status, searches)
values (%(hour)s, %(surface)s, %(mode)s, %(fields)s, %(lists)s, %(hits)s, %(ms)s, %(status)s,
        %(searches)s)

-- name: collect
-- Moves the added rows. Each is counted once, even if two sessions run this.
with taken as (
    delete from served_searches
    returning *
)
insert into search_audit as a (hour, surface, mode, fields, lists, hits, ms, status, searches)
select hour, surface, mode, fields, lists, hits, ms, status, sum(searches)
  from taken
 group by hour, surface, mode, fields, lists, hits, ms, status
 order by hour, surface, mode, fields, lists, hits, ms, status
on conflict (hour, surface, mode, fields, lists, hits, ms, status)
do update set searches = a.searches + excluded.searches

-- name: days
-- Searches since a time, by day.
select (hour at time zone 'UTC')::date, surface, hits, ms, status, sum(searches)::bigint
  from search_audit
 where hour >= %(since)s
 group by 1, 2, 3, 4, 5
 order by 1, 2, 3, 4, 5

-- name: count_before
select coalesce(sum(searches), 0)::bigint
  from (select searches from search_audit where hour < %(before)s
        union all
        select searches from served_searches where hour < %(before)s) as old

-- name: drop_before
delete from search_audit where hour < %(before)s

-- name: drop_served_before
delete from served_searches where hour < %(before)s
