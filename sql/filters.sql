-- One condition for each field of a query, on messages m. search/filters.py puts those that a request
-- has, or their opposites, in place of {passes} in search.sql, and no others: a condition that is
-- always true would keep the planner from its indexes. None is ever null.

-- name: lists
m.list = any(%(lists)s)

-- name: one_list
-- For messages by date: the index of lists and dates has those of one list in their order.
m.list = (%(lists)s::text[])[1]

-- name: months
m.month = any(%(months)s)

-- name: after
m.sent_at >= %(after)s::timestamptz

-- name: before
m.sent_at < %(before)s::timestamptz

-- name: past_newest
-- Those that follow a message in a list of the newest.
m.sent_at <= %(moment)s and (m.sent_at < %(moment)s or m.message_id > %(message_id)s)

-- name: past_oldest
m.sent_at >= %(moment)s and (m.sent_at > %(moment)s or m.message_id > %(message_id)s)

-- name: senders
lower(m.from_email) = any(%(senders)s)

-- name: receiver
-- One text of all receivers, a line for each, is indexed (messages_receivers); a value has no lines.
join_receivers(m.recipients, m.cc) like like_pattern(%(receiver)s)

-- name: receiver_part
-- As receiver, without addresses that are written as such, which the index has.
join_receivers(m.recipients, m.cc) like like_pattern(%(receiver_part)s)
and regexp_replace(join_receivers(m.recipients, m.cc), '\S*@\S*', '', 'g')
    like like_pattern(%(receiver_part)s)

-- name: receiver_name
-- As receiver_part, without disguised addresses, which names may have, also by capitals: 60 us
-- each where they may be.
join_receivers(m.recipients, m.cc) like like_pattern(%(receiver_name)s)
and regexp_replace(join_receivers(m.recipients, m.cc), '\S*@\S*', '', 'g')
    like like_pattern(%(receiver_name)s)
and (regexp_replace(array_to_string(m.recipients || m.cc, e'\n'), '\S+@\S+', '', 'g') !~ %(hints)s
     or regexp_replace(array_to_string(m.recipients || m.cc, e'\n'), '\S+@\S+', '', 'g') !~ %(signs)s
     or lower(regexp_replace(array_to_string(m.recipients || m.cc, e'\n'),
                             %(addresses)s, e'\n', 'g'))
        like like_pattern(%(receiver_name)s))

-- name: subject
lower(m.subject) like like_pattern(%(subject)s)

-- name: shown_subject
-- As subject, without the addresses in it.
lower(m.subject) like like_pattern(%(shown_subject)s)
and (m.subject !~ %(hints)s or m.subject !~ %(signs)s
     or lower(regexp_replace(m.subject, %(addresses)s, e'\n', 'g'))
        like like_pattern(%(shown_subject)s))

-- name: threads
-- As an array, for which an index is used in an alternative too.
m.message_id = any(array(select t.message_id from threads t where t.thread_id = any(%(threads)s)))

-- name: ids
m.message_id = any(%(ids)s)

-- name: patch
(m.segments @> '[["patch"]]' or m.attachments @> '[{"is_patch": true}]')

-- name: reply
(m.in_reply_to <> '{}' or m.refs <> '{}')

-- name: first
(m.in_reply_to = '{}' and m.refs = '{}')

-- name: attachment
m.attachments <> '[]'

-- name: patches
-- Of the copies under the id of a patch those that have it: not another text.
m.message_id = any(%(patches)s)
and exists (
    select from patches p
     where (p.list, p.month, p.message_id, p.variant) = (m.list, m.month, m.message_id, m.variant))

-- name: state
-- Patches of a state, as `patches`, where they are too many to name.
(exists (
    select from patch_states s
     where (s.state, s.message_id) = (%(state)s, m.message_id)
       and (not (select hides_lists()) or s.lists <@ (select shown_lists())))
 or (select hides_lists())
    and m.message_id in (select x.message_id from mixed_patch_states x where x.state = %(state)s))
and exists (
    select from patches p
     where (p.list, p.month, p.message_id, p.variant) = (m.list, m.month, m.message_id, m.variant))

-- name: file
-- One text of all names, a line for each, is indexed (messages_file_names); a value has no lines.
m.attachments <> '[]' and join_file_names(m.attachments) like like_pattern(%(file)s)

-- name: shown_file
-- As file, without the addresses in it.
m.attachments <> '[]' and join_file_names(m.attachments) like like_pattern(%(shown_file)s)
and exists (
    select from jsonb_array_elements(m.attachments) as f (file)
     where lower(f.file ->> 'name') like like_pattern(%(shown_file)s)
       and (f.file ->> 'name' !~ %(hints)s or f.file ->> 'name' !~ %(signs)s
            or lower(regexp_replace(f.file ->> 'name', %(addresses)s, e'\n', 'g'))
               like like_pattern(%(shown_file)s)))

-- name: changed
-- Mails of commits that change a file, as in search_patches.sql, where they are too many to name.
m.message_id in (
    select k.message_id
      from commits c
      join commit_links k using (repository, sha)
     where c.changed_names like like_pattern(%(part)s)
       and c.list = any((select shown_lists())::text[]) and k.kind <> 'missing'
       and changes_file(c.changed_names, %(part)s, %(hidden)s))
and not exists (select from shown_texts t where t.message_id = m.message_id)

-- name: words
m.search @@ %(words)s::tsquery
