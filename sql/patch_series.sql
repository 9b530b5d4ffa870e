-- Series of patches: building those that have changed. Used by tables/patch_series.py.

-- name: has_changes
select exists (select from patch_changes) or exists (select from changed_standing)

-- name: note_standing
insert into patch_changes select message_id from changed_standing

-- name: find_standing
with asked as materialized (
    select address, has_standing(address, array(select list from lists)) as has_standing
      from unnest(%(addresses)s::text[]) as x (address)),
noted as (
    update patch_outcomes o
       set was_known = a.has_standing
      from unnest(%(senders)s::text[], %(ids)s::text[]) as x (address, id)
      join asked a using (address)
     where o.message_id = x.id and o.was_known is distinct from a.has_standing)
select address from asked where has_standing

-- name: take_changes
-- In the physical order of the table: nearly that of the months.
delete from patch_changes
 where ctid = any(array(select ctid from patch_changes limit %(most)s))
returning message_id

-- name: take_changes_of
delete from patch_changes where message_id = any(%(ids)s) returning message_id

-- name: settle_states
-- Whole corpus: computes the states of all patches, as change_all queues all patches.
select settle_patch_states(array(
    select series_id from patch_series union select series_id from patch_states))

-- name: digest_states
-- Whole corpus: for doctor --deep.
select count(*), coalesce(sum(hashtextextended(s::text, 0)::numeric), 0) from patch_states s

-- name: change_all
-- Whole corpus: series are built for the first time, or by another version of the code.
with noted as (
    delete from patch_changes)
insert into patch_changes
select message_id
  from (select message_id, min(month) as month
          from (select message_id, month from patches
                union all
                select message_id, month
                  from messages
                 where is_answer or in_reply_to <> '{}' or refs <> '{}') o
         group by message_id
        union all
        select message_id, ''
          from (select message_id from patch_series union select message_id from patch_outcomes) o
         where not exists (select from messages m where m.message_id = o.message_id)) c
 order by month

-- name: delete_foreign_keys
-- Whole corpus: as change_all.
delete from patch_keys k where not exists (select from patch_series s where s.ref = k.ref)

-- name: answers
-- Answers among some messages: the copy that arrived first, and whether the id is contested.
select m.message_id, m.subject, m.body_text, m.segments, m.from_email, m.from_name, m.sent_at,
       m.refs || m.in_reply_to as ancestors,
       exists (select from contested_texts c where c.message_id = m.message_id and c.place > 1)
  from unnest(%(ids)s::text[]) as w (message_id)
 cross join lateral first_copy(w.message_id) m
 where m.in_reply_to <> '{}' or m.refs <> '{}'

-- name: outcomes_of
-- Statements in some mails.
select message_id, number, outcome, start_at, end_at, shas, title, parts, whole, firm, from_email,
       from_name, sent_at, ancestors
  from patch_outcomes
 where message_id = any(%(ids)s)

-- name: outcomes_about
-- Statements in mail that refers to one of some messages.
select message_id, number, outcome, start_at, end_at, shas, title, parts, whole, firm, from_email,
       from_name, sent_at, ancestors
  from patch_outcomes
 where ancestors && %(ids)s::text[]

-- name: all_outcomes
-- Whole corpus: as all_rows.
select message_id, number, outcome, start_at, end_at, shas, title, parts, whole, firm, from_email,
       from_name, sent_at, ancestors
  from patch_outcomes

-- name: delete_outcomes
delete from patch_outcomes where message_id = any(%(ids)s)

-- name: copy_outcomes
copy patch_outcomes (message_id, number, outcome, start_at, end_at, shas, title, parts, whole, firm,
                     from_email, from_name, sent_at, ancestors)
from stdin

-- name: with_patches
-- Messages with patches, among some.
select distinct message_id from patches where message_id = any(%(ids)s)

-- name: patches
-- Patches of some messages, in the copy that arrived first.
select p.list, p.month, p.variant, p.message_id, p.place, p.kind, p.source, p.title,
       p.title_key, p.tags, p.version, p.part, p.parts, m.from_email, m.from_name, p.author_email,
       p.author_name, p.sent_at, p.patch_id,
       array(select f ->> 'path' from jsonb_array_elements(p.files) as f) as paths,
       p.line_digests, p.change_id, p.links, m.refs || m.in_reply_to, p.flags,
       case m.arrival_source when 'loaded' then null else m.arrived_at end
  from unnest(%(ids)s::text[]) as w (message_id)
 cross join lateral first_copy(w.message_id) m
  join patches p
    on (p.list, p.month, p.message_id, p.variant) = (m.list, m.month, m.message_id, m.variant)

-- name: mails_of_patches
-- Whole corpus: for doctor --deep.
select distinct message_id from patches order by message_id

-- name: keys_of
select key, at, ref, of_posting from patch_keys where ref = any(%(refs)s)

-- name: delete_keys
delete from patch_keys where ref = any(%(refs)s)

-- name: copy_keys
copy patch_keys (key, at, ref, of_posting) from stdin

-- name: after
-- Patches that follow some others in the order of a key.
select w.ref, n.ref
  from unnest(%(key_numbers)s::bigint[], %(ats)s::float8[], %(refs)s::bigint[]) as w (key, at, ref)
 cross join lateral (
       select k.ref
         from patch_keys k
        where k.key = w.key and (k.at, k.ref) > (w.at, w.ref)
        order by k.at, k.ref
        limit %(window)s) n

-- name: before
select w.ref, n.ref
  from unnest(%(key_numbers)s::bigint[], %(ats)s::float8[], %(refs)s::bigint[]) as w (key, at, ref)
 cross join lateral (
       select k.ref
         from patch_keys k
        where k.key = w.key and (k.at, k.ref) < (w.at, w.ref)
        order by k.at desc, k.ref desc
        limit %(window)s) n

-- name: near
-- Patches with a key, within a span of time around others.
select distinct k.ref
  from unnest(%(key_numbers)s::bigint[], %(ats)s::float8[]) as w (key, at)
  join patch_keys k on k.key = w.key and k.at between w.at - %(span)s and w.at + %(span)s

-- name: series_of_refs
select distinct series_id from patch_series where ref = any(%(refs)s)

-- name: holders
select distinct ref from patch_keys where key = any(%(key_numbers)s)

-- name: rows
-- Rows of some series.
select message_id, place, ref, list, month, variant, series_id, posting, change, previous_id,
       evidence, is_remark, is_taken_over, by_stranger, is_newest, state, reason_id,
       reason_start, reason_end, shas
  from patch_series
 where series_id = any(%(series)s)

-- name: refs_of_mails
select message_id, place, ref, series_id from patch_series where message_id = any(%(ids)s)

-- name: all_rows
-- Whole corpus: as change_all; the digest starts from these rows.
select message_id, place, ref, list, month, variant, series_id, posting, change, previous_id,
       evidence, is_remark, is_taken_over, by_stranger, is_newest, state, reason_id,
       reason_start, reason_end, shas
  from patch_series

-- name: figures
-- Patches in series per month: all, those that continue another version, and by state.
select w.list, w.month, f.*
  from (select distinct list, month
          from unnest(%(lists)s::text[], %(months)s::text[]) as w (list, month)) w
 cross join lateral (
       select count(*), count(*) filter (where s.previous_id is not null),
              count(*) filter (where s.state = 'open'),
              count(*) filter (where s.state = 'applied'),
              count(*) filter (where s.state = 'superseded'),
              count(*) filter (where s.state = 'rejected'),
              count(*) filter (where s.state = 'withdrawn')
         from patches p
         join patch_series s
           on (s.message_id, s.place, s.list, s.month, s.variant)
              = (p.message_id, p.place, p.list, p.month, p.variant)
        where p.list = w.list and p.month = w.month) f

-- name: delete
delete from patch_series s
 using unnest(%(ids)s::text[], %(places)s::smallint[]) as d (message_id, place)
 where (s.message_id, s.place) = (d.message_id, d.place)

-- name: copy
copy patch_series (message_id, place, ref, list, month, variant, series_id, posting, change,
                   previous_id, evidence, is_remark, is_taken_over, by_stranger, is_newest, state,
                   reason_id, reason_start, reason_end, shas)
from stdin

-- name: lock
-- Lock of the step that groups series, until the transaction ends.
select pg_advisory_xact_lock(hashtextextended('patch_series', 0))

-- name: series_naming
-- Series with some mails, series whose state these mails decided, and series named after them.
select series_id from patch_series where message_id = any(%(ids)s) or reason_id = any(%(ids)s)
union
select series_id from patch_series where series_id = any(%(ids)s)

-- name: note_mails
-- Queues the patches of some series, and some others, to be grouped again, except some mails.
insert into patch_changes
select message_id
  from patch_series
 where (series_id = any(%(series)s) or ref = any(%(refs)s)) and message_id <> all(%(ids)s)

-- name: discard_rows
delete from patch_series where message_id = any(%(ids)s)

-- name: hide_in_rows
-- Removes forgotten ids. The next run gives the series a new id and computes the states.
update patch_series s
   set series_id = case when s.series_id = any(%(ids)s) then s.message_id else s.series_id end,
       previous_id = case when s.previous_id = any(%(ids)s) then null else s.previous_id end,
       state = case when s.reason_id = any(%(ids)s) then 'open' else s.state end,
       shas = case when s.reason_id = any(%(ids)s) then '{}' else s.shas end,
       reason_start = case when s.reason_id = any(%(ids)s) then null else s.reason_start end,
       reason_end = case when s.reason_id = any(%(ids)s) then null else s.reason_end end,
       reason_id = case when s.reason_id = any(%(ids)s) then null else s.reason_id end
 where s.series_id = any(%(series)s)

-- name: discard_outcomes
delete from patch_outcomes where message_id = any(%(ids)s)

-- name: hide_in_outcomes
update patch_outcomes
   set ancestors = array(select x
                           from unnest(ancestors) with ordinality as a (x, place)
                          where x <> all(%(ids)s)
                          order by place)
 where ancestors && %(ids)s::text[]

-- name: discard_keys
delete from patch_keys where ref = any(%(refs)s) or key = any(%(key_numbers)s)

-- name: discard_changes
delete from patch_changes c
 where c.message_id = any(%(ids)s)
   and not exists (select from messages m where m.message_id = c.message_id)
