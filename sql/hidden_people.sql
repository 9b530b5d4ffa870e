-- A placeholder for forgotten people in the address columns of the mail of others. Used by
-- tables/hidden_people.py.

-- name: entries
-- All entries that may name one of some addresses, in lower case; more than really do.
-- Whole corpus: somebody is forgotten, and no index knows all that a message was sent to.
select distinct e.entry
  from messages m
 cross join unnest(m.reply_to || m.recipients || m.cc) as e (entry)
 where exists (select from unnest(%(addresses)s::text[]) as a (address)
                where strpos(lower(e.entry), a.address) > 0)

-- name: replace
-- Whole corpus: as entries.
update messages m
   set reply_to = array(
           select case when e.entry = any(%(entries)s::text[]) then %(nobody)s else e.entry end
             from unnest(m.reply_to) with ordinality as e (entry, place) order by e.place),
       recipients = array(
           select case when e.entry = any(%(entries)s::text[]) then %(nobody)s else e.entry end
             from unnest(m.recipients) with ordinality as e (entry, place) order by e.place),
       cc = array(
           select case when e.entry = any(%(entries)s::text[]) then %(nobody)s else e.entry end
             from unnest(m.cc) with ordinality as e (entry, place) order by e.place)
 where m.reply_to && %(entries)s::text[] or m.recipients && %(entries)s::text[]
    or m.cc && %(entries)s::text[]

-- name: count_mentioned
-- The other messages that name an address where it stays, in their subject or text.
-- Whole corpus: said to a person before somebody is forgotten; it reads every body.
select count(*)
  from messages m
 where exists (select from unnest(%(addresses)s::text[]) as a (address)
                where strpos(lower(m.subject), a.address) > 0
                   or strpos(lower(m.body_text), a.address) > 0)
   and not exists (
       select from unnest(%(lists)s::text[], %(months)s::text[], %(message_ids)s::text[],
                          %(variants)s::smallint[]) as d (list, month, message_id, variant)
        where (m.list, m.month, m.message_id, m.variant)
              = (d.list, d.month, d.message_id, d.variant))

-- name: count_named
-- The other messages whose address columns hold some entries.
-- Whole corpus: as entries.
select count(*)
  from messages m
 where (m.reply_to && %(entries)s::text[] or m.recipients && %(entries)s::text[]
        or m.cc && %(entries)s::text[])
   and not exists (
       select from unnest(%(lists)s::text[], %(months)s::text[], %(message_ids)s::text[],
                          %(variants)s::smallint[]) as d (list, month, message_id, variant)
        where (m.list, m.month, m.message_id, m.variant)
              = (d.list, d.month, d.message_id, d.variant))
