-- What the values of fields stand for. Used by search/field_conditions.py.

-- name: senders
-- The addresses that a sender filter matches: the address itself if it exists, else those that
-- contain the text in the address or in the name beside it (index senders_person).
with exact as materialized (
    select address from senders where address = lower(%(sender)s) limit 1)
select address from exact
union all
(select distinct address
   from senders
  where not exists (select from exact)
    and person like %(pattern)s
  limit %(most)s)

-- name: senders_by_name
-- The addresses beside names that contain a text; addresses in names, which may be disguised, are no
-- part of them.
select distinct address
  from senders
 where person like %(pattern)s
   and strpos(regexp_replace(left(person, -length(address) - 1), '\S*@\S*', '', 'g'),
              lower(%(sender)s)) > 0
   and (left(person, -length(address) - 1) !~ %(signs)s
        or strpos(regexp_replace(left(person, -length(address) - 1), %(addresses)s, e'\n', 'g'),
                  lower(%(sender)s)) > 0)
 limit %(most)s

-- name: thread
-- The thread of a message.
select thread_id from threads where message_id = %(message_id)s
