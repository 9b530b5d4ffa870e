-- Discussion of a patch. Used by reading/patch_talk.py.

-- name: outline
-- Threads in which some patches were mailed, in tree order: id, parent, whether the message is a patch
-- or cover letter (a diff within an answer is neither), and whether it has a patch.
select t.message_id, t.parent_id,
       exists (select from patch_series s where s.message_id = t.message_id and not s.is_remark),
       exists (select from patches p where p.message_id = t.message_id and p.kind = 'patch')
  from (select distinct n.thread_id
          from unnest(%(patches)s::text[]) as w (id)
         cross join lateral shown_node(w.id) n) r
 cross join lateral shown_thread(r.thread_id) t
 where not t.is_ghost and not t.by_subject
 order by r.thread_id, t.position

-- name: texts
-- Messages, each as the copy that arrived first, without contested ones. Applied patches come first,
-- because they explain what the patch is for; then by date.
select m.message_id, m.from_name, m.from_email, m.sent_at, m.subject,
       left(m.body_text, %(characters)s), m.segments
  from unnest(%(ids)s::text[]) as w (id)
 cross join lateral first_shown(w.id) m
 where not exists (select from shown_texts c where c.message_id = w.id)
 order by m.message_id <> all(%(applied)s::text[]), m.sent_at, m.message_id
 limit %(most)s
