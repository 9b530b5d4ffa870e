-- Lists of lists.toml as the database knows them, and the lists that a session may show. Used by
-- tables/lists.py.

-- name: show
-- Sets the lists of shown_messages for the session.
select set_config('mail_assets.lists', %(lists)s, false)

-- name: record
-- Records published lists with their languages; all others become unpublished.
with closed as (
    update lists set published = false where published and list <> all(%(lists)s::text[]))
insert into lists (list, language, published, was_published)
select distinct on (l.list) l.list, l.language, true, true
  from unnest(%(lists)s::text[], %(languages)s::text[]) as l (list, language)
on conflict (list) do update
   set language = excluded.language, published = true, was_published = true
 where (lists.language, lists.published, lists.was_published)
       is distinct from (excluded.language, true, true)

-- name: record_one
-- Records the list of a load. Writes nothing if the row is right: months that load at once must not
-- wait for each other.
insert into lists (list, language, published, was_published)
select %(list)s, %(language)s, %(published)s, %(published)s
 where not exists (
       select from lists
        where (list, language, published) = (%(list)s, %(language)s, %(published)s))
on conflict (list) do update
   set language = excluded.language, published = excluded.published,
       was_published = lists.was_published or excluded.published
 where (lists.language, lists.published) is distinct from (excluded.language, excluded.published)

-- name: was_shown
-- True if a message is in a list that was published once.
select exists (
    select from messages m join lists l using (list)
     where m.message_id = %(message_id)s and l.was_published)

-- name: was_published
-- True if a list was published once and has mail.
select exists (
    select from lists l
      join partitions p using (list)
     where l.list = %(list)s and l.was_published and p.asset = 'messages'
       and (p.counts->>'stored')::int > 0)

-- name: closed_lists_of
-- Lists of a message that this session shows in none of them. For the operator.
select distinct list from messages
 where message_id = %(message_id)s
   and not exists (select from shown_messages where message_id = %(message_id)s)
 order by list
