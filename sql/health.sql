-- Faults of a database, from its catalogs and the states of its months. No statement reads a table
-- whole that grows with messages. Used by tables/health.py.

-- name: behind
-- First asset of each month that was not made from the present state of its parents. `inputs` begins
-- with the digests of the parents. A month whose archive has vanished counts if its messages were
-- loaded. `inputs` ends with the name of the index that the run filled; if that is another index, the
-- vectors of the month in the requested one are counted.
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
-- Lists with messages that are not among the named ones. Reads one row per month.
select list, count(*), sum((counts->>'stored')::bigint)::bigint
  from partitions
 where asset = 'messages' and (counts->>'stored')::bigint > 0 and list <> all(%(lists)s::text[])
 group by list
 order by list

-- name: other_lists
-- Lists whose row differs from lists.toml: shown or hidden, or another language. A list without a row
-- counts if it has messages, because its first load writes the row.
select coalesce(l.list, g.list)
  from lists l
  full join unnest(%(lists)s::text[], %(languages)s::text[]) as g (list, language) using (list)
 where case when g.list is null then l.published
            when l.list is null then exists (
                select from partitions p where p.asset = 'messages' and p.list = g.list)
            else not l.published or l.language is distinct from g.language end
 order by 1

-- name: other_defaults
-- Months with mail that was read with another language or charset than the list has now (third word
-- of `inputs`). Reads one row per month.
select p.list, p.month
  from partitions p
  join unnest(%(lists)s::text[], %(defaults)s::text[]) as l (list, defaults) on l.list = p.list
 where p.asset = 'messages' and (p.counts->>'stored')::bigint > 0
   and split_part(p.inputs, ' ', 3) <> l.defaults
 order by p.list, p.month

-- name: without_statistics
-- Our tables of more than 100 pages that have no statistics. The schema may have tables of Dagster too.
select relname
  from pg_class
 where relnamespace = to_regnamespace(quote_ident(current_schema())) and relkind = 'r'
   and relname = any(%(tables)s)
   and reltuples < 0
   and pg_relation_size(oid) > 8192 * 100
 order by relname

-- name: idle_locks
-- Our idle sessions that hold the lock of a month or of `forget`. Advisory locks of other programs are
-- ignored.
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
-- Named extensions that are not installed, and whether the server has them.
select w.name, exists (select from pg_available_extensions a where a.name = w.name)
  from unnest(%(names)s::text[]) as w (name)
 where not exists (select from pg_extension e where e.extname = w.name)
 order by w.name

-- name: silences
-- Per list: last day with mail, number of days read, and the 90th percentile of the gaps between these
-- in days. Reads one message per day, by the index messages_list_date.
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
-- Months with mail outside of the first and the last month of lists.toml.
select list, month
  from partitions
 where asset = 'messages' and (counts->>'stored')::int > 0 and list = any(%(lists)s)
   and (month < %(first)s or month > %(last)s)
 order by list, month
