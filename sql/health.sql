-- Faults of a database, from its catalogues and the states of its months: no table that grows with
-- messages is read whole. Used by tables/health.py.

-- name: behind
-- The first asset of each month that was not made from the present state of its parent. Inputs
-- begin with the digest of the parent, or of both parents. A month whose archive has vanished
-- counts if its messages were loaded. Inputs end with the index that a run has filled: if that was
-- another, the vectors of the month in the index in question are counted.
select list, month, asset
  from (select a.list, a.month,
               case
               when m.inputs is null or split_part(m.inputs, ' ', 1) <> coalesce(nullif(a.sha256, ''), 'none')
                    or m.inputs like '%%, with%%' then 'messages'
               when w.inputs is null or split_part(w.inputs, ' ', 1) <> m.digest then 'words'
               when t.inputs is null or split_part(t.inputs, ' ', 1) <> m.digest then 'patches'
               when c.inputs is null or split_part(c.inputs, ' ', 1) <> m.digest then 'chunks'
               when e.inputs is null or split_part(e.inputs, ' ', 1) <> c.digest then 'embeddings'
               when v.inputs is null
                    or v.inputs not like concat(m.digest, ' ', e.digest, ' %%')
                    or %(index_name)s::text <> ''
                       and right(v.inputs, length(%(index_name)s) + 1) <> ' ' || %(index_name)s
                       and (v.counts->>'chunks')::bigint <> (
                           select count(*) from vectors k
                            where k.list = a.list and k.month = a.month
                              and k.index_name = %(index_name)s and k.written) then 'vectors'
               end as asset
          from mbox_archives a
          left join partitions m on (m.asset, m.list, m.month) = ('messages', a.list, a.month)
          left join partitions w on (w.asset, w.list, w.month) = ('words', a.list, a.month)
          left join partitions t on (t.asset, t.list, t.month) = ('patches', a.list, a.month)
          left join partitions c on (c.asset, c.list, c.month) = ('chunks', a.list, a.month)
          left join partitions e on (e.asset, e.list, e.month) = ('embeddings', a.list, a.month)
          left join partitions v on (v.asset, v.list, v.month) = ('vectors', a.list, a.month)
         where a.object_key is not null or m.inputs is not null) x
 where asset is not null
 order by list, month

-- name: left_lists
-- The lists with messages that are not among the named ones. One row a month is read.
select list, count(*), sum((counts->>'stored')::bigint)::bigint
  from partitions
 where asset = 'messages' and (counts->>'stored')::bigint > 0 and list <> all(%(lists)s::text[])
 group by list
 order by list

-- name: other_lists
-- Lists whose row is not that of lists.toml: hidden, shown or read in another language. One without
-- a row counts if it has messages: its first load writes the row.
select coalesce(l.list, g.list)
  from lists l
  full join unnest(%(lists)s::text[], %(languages)s::text[]) as g (list, language) using (list)
 where case when g.list is null then l.published
            when l.list is null then exists (
                select from partitions p where p.asset = 'messages' and p.list = g.list)
            else not l.published or l.language is distinct from g.language end
 order by 1

-- name: other_defaults
-- Months with mail whose inputs name, in their third word, another language or charset than that of
-- their list. One row a month is read.
select p.list, p.month
  from partitions p
  join unnest(%(lists)s::text[], %(defaults)s::text[]) as l (list, defaults) on l.list = p.list
 where p.asset = 'messages' and (p.counts->>'stored')::bigint > 0
   and split_part(p.inputs, ' ', 3) <> l.defaults
 order by p.list, p.month

-- name: without_statistics
-- Our tables of some pages without statistics; Dagster's may stand beside them.
select relname
  from pg_class
 where relnamespace = to_regnamespace(quote_ident(current_schema())) and relkind = 'r'
   and relname = any(%(tables)s)
   and reltuples < 0
   and pg_relation_size(oid) > 8192 * 100
 order by relname

-- name: idle_locks
-- Our idle sessions that hold the lock of a month or of forgetting. Other programs have advisory
-- locks of their own.
select a.pid, coalesce(a.application_name, ''), a.state_change
  from pg_stat_activity a
 where a.datname = current_database() and a.pid <> pg_backend_pid()
   and a.application_name like 'mail_assets%%'
   and a.state like 'idle%%' and a.state_change < now() - make_interval(secs => %(seconds)s)
   and exists (select from pg_locks l where l.pid = a.pid and l.locktype = 'advisory' and l.granted)
 order by a.state_change

-- name: server_version
select current_setting('server_version')

-- name: lacks_extensions
-- Of the named extensions those that are not installed, and whether the server has them.
select w.name, exists (select from pg_available_extensions a where a.name = w.name)
  from unnest(%(names)s::text[]) as w (name)
 where not exists (select from pg_extension e where e.extname = w.name)
 order by w.name

-- name: silences
-- The last day with mail of each list, how many days are looked at, and the gap in days that nine of
-- ten gaps between these do not exceed. Of each day one message is read, by an index
-- (messages_list_date).
with recursive of_days (name, number, day) as (
    select l.name, 1,
           (select m.sent_at::date
              from messages m
             where m.list = l.name and m.sent_at <= %(now)s::timestamptz
             order by m.sent_at desc, m.message_id desc
             limit 1)
      from unnest(%(lists)s::text[]) as l (name)
    union all
    select d.name, d.number + 1,
           (select m.sent_at::date
              from messages m
             where m.list = d.name and m.sent_at < d.day
             order by m.sent_at desc, m.message_id desc
             limit 1)
      from of_days d
     where d.day is not null and d.number < %(days)s)
select name, max(day), count(*), percentile_disc(0.9) within group (order by day - before)
  from (select name, day, lag(day) over (partition by name order by day) as before
          from of_days
         where day is not null) x
 group by name
having count(*) > 1
 order by name

-- name: months_outside
-- Months with mail that lists.toml leaves out, by the first and the last month that it has.
select list, month
  from partitions
 where asset = 'messages' and (counts->>'stored')::int > 0 and list = any(%(lists)s)
   and (month < %(first)s or month > %(last)s)
 order by list, month
