-- Which checks have passed on what the months hold now. Used by tables/passed_checks.py.

-- name: unchecked
-- The months that have changed since a check passed on them, or of which it never has.
select p.list, p.month, p.updated_at
  from partitions p
  left join passed_checks c
    on c.asset = %(asset)s and c.check_name = %(name)s and c.list = p.list and c.month = p.month
   and c.updated_at = p.updated_at
 where p.asset = %(months_of)s and p.month is not null and c.asset is null
 order by p.list, p.month

-- name: versions
-- When months last changed: those named, or all.
select list, month, updated_at
  from partitions
 where asset = %(months_of)s and month is not null
   and (%(lists)s::text[] is null
        or (list, month) in (select * from unnest(%(lists)s::text[], %(months)s::text[])))
 order by list, month

-- name: record
insert into passed_checks (asset, check_name, list, month, updated_at)
select %(asset)s, %(name)s, *
  from unnest(%(lists)s::text[], %(months)s::text[], %(versions)s::timestamptz[])
on conflict (asset, check_name, list, month) do update set updated_at = excluded.updated_at

-- name: passed
-- The checks that have passed on what the months of some lists hold now.
select c.list, c.month, c.asset, c.check_name
  from passed_checks c
  join partitions p using (asset, list, month, updated_at)
 where c.list = any(%(lists)s)
