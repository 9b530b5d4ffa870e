-- Rows that differ from what was recorded. Used by tables/damage.py.
-- Whole corpus: all of these; they run for `doctor --deep` and once a week. Each statement reads the
-- months of one list.

-- name: messages
-- Per month: number of messages, digest of their row hashes, and rows with a wrong checksum.
select month, count(*),
       encode(sha256(string_agg(row_hash, ''::bytea order by row_hash)), 'hex'),
       count(*) filter (where checksum <> message_checksum(m))
  from messages m
 where list = %(list)s
 group by month

-- name: entries
-- Per month: entries by outcome, stored entries whose message does not exist, and entries with a
-- wrong checksum.
select e.month, count(*), count(*) filter (where e.outcome = 'duplicate'),
       count(*) filter (where e.outcome = 'quarantined'),
       count(*) filter (where e.outcome = 'stored' and not exists (
           select from messages m
            where (m.list, m.month, m.message_id, m.variant)
                  = (e.list, e.month, e.message_id, e.variant)
              and m.content_hash = e.content_hash)),
       count(*) filter (where e.checksum <> entry_checksum(e))
  from archive_entries e
 where e.list = %(list)s
 group by e.month

-- name: wrong_archives
-- Months whose archive row has a wrong checksum.
select month from mbox_archives a where list = %(list)s and checksum <> archive_checksum(a)

-- name: quarantined
select month, count(*) from quarantine where list = %(list)s group by month

-- name: removed
select month, count(*) from removed_messages where list = %(list)s group by month

-- name: wrong_senders
-- Months with a sender row that no message has, or without one that a message has.
with known as (
    select month, address, person from senders where list = %(list)s),
wanted as (
    select month, lower(from_email), fold_name(from_name) || ' ' || lower(from_email)
      from messages
     where list = %(list)s)
select distinct month
  from ((table known except table wanted) union all (table wanted except table known)) d

-- name: chunks
-- Per month: number of chunks, the digest that the step makes of keys, texts and spans, chunks whose
-- position differs from their key, and tokens.
select month, count(*),
       encode(sha256(convert_to(string_agg(
           key || ' ' || encode(text_hash, 'hex') || ' [' || array_to_string(spans, ', ')
           || e']\n', '' order by message_id collate "C", variant, index), 'UTF8')), 'hex'),
       count(*) filter (where index::text <> split_part(key, '#', 2)), sum(tokens)
  from chunks
 where list = %(list)s
 group by month

-- name: patches
-- Per month: number of patches and their digest, as in patches.sql.
select month, count(*),
       encode(sha256(string_agg(
           int8send(hash_record_extended(p, 0)), ''::bytea
           order by message_id collate "C", variant, place)), 'hex')
  from patches p
 where list = %(list)s
 group by month

-- name: commits
-- Per month: number of commits and their digest, as in commits.sql.
select month, count(*),
       encode(sha256(string_agg(
           int8send(hash_record_extended(c, 0)), ''::bytea
           order by repository collate "C", sha)), 'hex')
  from commits c
 where list = %(list)s
 group by month

-- name: wrong_series
-- Series without their patch or keys, patches and keys without a series, reasons and statements of
-- mail that does not exist. Returns nothing while patches wait to be grouped.
select not exists (select from patch_changes) and (
       exists (select from patch_series s
                where not exists (
                      select from patches p
                       where (p.list, p.month, p.message_id, p.variant, p.place)
                             = (s.list, s.month, s.message_id, s.variant, s.place))
                   or not exists (select from patch_keys k where k.ref = s.ref))
    or exists (select from patches p
                where not exists (select from patch_series s where s.message_id = p.message_id))
    or exists (select from patch_keys k
                where not exists (select from patch_series s where s.ref = k.ref))
    or exists (select from patch_series s
                where s.reason_id is not null
                  and not exists (select from messages m where m.message_id = s.reason_id))
    or exists (select from patch_outcomes o
                where not exists (select from messages m where m.message_id = o.message_id)))

-- name: wrong_links
-- Whether a link belongs to no commit or leads to mail that does not exist.
select exists (
       select from commit_links l
        where not exists (select from commits c where (c.repository, c.sha) = (l.repository, l.sha))
           or l.kind <> 'missing'
              and not exists (select from messages m where m.message_id = l.message_id))

-- name: unthreaded
-- Messages in no thread, unless messages wait to be threaded.
select count(*)
  from messages m
 where not exists (select from thread_changes)
   and not exists (select from threads t where t.message_id = m.message_id)

-- name: wrong_summaries
-- Summaries without a thread, or with a wrong checksum.
select count(*)
  from thread_summaries s
 where s.checksum <> summary_checksum(s)
    or not exists (select from threads t where t.thread_id = s.thread_id)

-- name: missing_summaries
-- Whether threads lack summaries although none waits to be made: there are fewer rows than the last
-- run counted.
select exists (
       select from partitions p
        where p.asset = 'thread_summaries' and p.list is null
          and (p.counts->>'summaries')::bigint > (select count(*) from thread_summaries))
   and not exists (select from summary_changes)

-- name: unowned
-- Lists with messages, chunks, patches or commits of months that no run has recorded.
select 'messages', o.list
  from (select distinct list, month from messages) o
 where not exists (
       select from partitions p
        where (p.asset, p.list, p.month) = ('messages', o.list, o.month))
union
select 'chunks', o.list
  from (select distinct list, month from chunks) o
 where not exists (
       select from partitions p
        where (p.asset, p.list, p.month) = ('chunks', o.list, o.month))
union
select 'patches', o.list
  from (select distinct list, month from patches) o
 where not exists (
       select from partitions p
        where (p.asset, p.list, p.month) = ('patches', o.list, o.month))
union
select 'commits', o.list
  from (select distinct list, month from commits) o
 where not exists (
       select from partitions p
        where (p.asset, p.list, p.month) = ('commits', o.list, o.month))
 order by 1, 2

-- name: missing_tables
select name
  from unnest(%(tables)s::text[]) as t (name)
 where to_regclass(quote_ident(current_schema()) || '.' || quote_ident(name)) is null
 order by name

-- name: objects
-- Objects of a schema with their definitions, without the name of the schema.
select kind, name, md5(replace(definition, %(schema)s || '.', ''))
  from (select case c.relkind when 'v' then 'view' else 'table' end as kind, c.relname as name,
               c.relkind::text as definition
          from pg_class c
         where c.relnamespace = %(schema)s::regnamespace and c.relkind in ('r', 'v')
         union all
        select 'column', c.relname || '.' || a.attname,
               format_type(a.atttypid, a.atttypmod) || a.attnotnull::text || a.attgenerated::text
          from pg_class c
          join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
         where c.relnamespace = %(schema)s::regnamespace and c.relkind in ('r', 'v')
         union all
        select 'index', c.relname, pg_get_indexdef(c.oid)
          from pg_class c
          join pg_index i on i.indexrelid = c.oid and i.indisvalid
         where c.relnamespace = %(schema)s::regnamespace
         union all
        select 'function', p.proname, pg_get_function_identity_arguments(p.oid) || coalesce(
               pg_get_function_sqlbody(p.oid), p.prosrc)
          from pg_proc p
         where p.pronamespace = %(schema)s::regnamespace and p.prokind = 'f'
           and not exists (
               select from pg_depend d
                where (d.classid, d.objid, d.deptype) = ('pg_proc'::regclass, p.oid, 'e'))
         union all
        select 'trigger', c.relname || '.' || t.tgname, t.tgenabled::text || pg_get_triggerdef(t.oid)
          from pg_trigger t
          join pg_class c on c.oid = t.tgrelid
         where c.relnamespace = %(schema)s::regnamespace and not t.tgisinternal
         union all
        select 'constraint', c.relname || '.' || k.conname, pg_get_constraintdef(k.oid)
          from pg_constraint k
          join pg_class c on c.oid = k.conrelid
         where c.relnamespace = %(schema)s::regnamespace and k.contype <> 'n') o

-- name: lacks_trigrams
-- True if pg_trgm is available but not installed.
select exists (select from pg_available_extensions where name = 'pg_trgm')
   and not exists (select from pg_extension where extname = 'pg_trgm')

-- name: contested
select list, month, message_id, variant, place from contested_texts

-- name: settle_contested
select find_contested(array(
           select message_id from messages group by message_id having count(*) > 1
            union
           select message_id from contested_texts))
