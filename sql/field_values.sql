-- What the values of fields stand for. Used by search/field_conditions.py.

-- name: senders
-- The addresses that a sender filter matches: the address itself if it exists, else those that
-- contain each word of the text in the address or in the name beside it: "Lane, Tom" is Tom G. Lane.
-- The index senders_person finds those with the longest word; it knows no "all".
with exact as materialized (
    select address from senders where address = lower(%(sender)s) limit 1)
select address from exact
union all
(select distinct address
   from senders
  where not exists (select from exact)
    and person like like_pattern(%(longest)s)
    and person like all(array(
            select like_pattern(w.word) from unnest(%(words)s::text[]) as w (word)))
  limit %(most)s)

-- name: senders_by_name
-- The addresses beside names that contain each word of a text; addresses in names, which may be
-- disguised, are no part of them.
with wanted as materialized (
    select array(select like_pattern(w.word) from unnest(%(words)s::text[]) as w (word)) as parts)
select distinct s.address
  from wanted w
 cross join senders s
 cross join lateral (select left(s.person, -length(s.address) - 1) as name) n
 where s.person like like_pattern(%(longest)s)
   and regexp_replace(n.name, '\S*@\S*', '', 'g') like all(w.parts)
   and (n.name !~ %(signs)s
        or regexp_replace(n.name, %(addresses)s, e'\n', 'g') like all(w.parts))
 limit %(most)s

-- name: thread
-- The thread of a message.
select thread_id from threads where message_id = %(message_id)s
