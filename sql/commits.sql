-- The commits of repositories. Used by tables/commits.py.

-- name: shas
select sha
  from commits
 where list = %(list)s and month = %(month)s and repository = %(repository)s

-- name: stage
create temporary table if not exists commits_stage on commit delete rows as
select list, month, repository, sha, parents, author_name, author_email, authored_at,
       committer_name, committer_email, committed_at, subject, title_key, body, trailers,
       named_mails, picked_from, reverts, files, added, removed, patch_id, line_digests, flags
  from commits
  with no data

-- name: copy
copy commits_stage (list, month, repository, sha, parents, author_name, author_email, authored_at,
                    committer_name, committer_email, committed_at, subject, title_key, body,
                    trailers, named_mails, picked_from, reverts, files, added, removed, patch_id,
                    line_digests, flags)
from stdin

-- name: upsert
insert into commits (list, month, repository, sha, parents, author_name, author_email, authored_at,
                     committer_name, committer_email, committed_at, subject, title_key, body,
                     trailers, named_mails, picked_from, reverts, files, added, removed, patch_id,
                     line_digests, flags)
select distinct on (repository, sha)
       list, month, repository, sha, parents, author_name, author_email, authored_at,
       committer_name, committer_email, committed_at, subject, title_key, body, trailers,
       named_mails, picked_from, reverts, files, added, removed, patch_id, line_digests, flags
  from commits_stage
 order by repository, sha
on conflict (repository, sha) do update
   set list = excluded.list, month = excluded.month, parents = excluded.parents,
       author_name = excluded.author_name, author_email = excluded.author_email,
       authored_at = excluded.authored_at, committer_name = excluded.committer_name,
       committer_email = excluded.committer_email, committed_at = excluded.committed_at,
       subject = excluded.subject, title_key = excluded.title_key, body = excluded.body,
       trailers = excluded.trailers, named_mails = excluded.named_mails,
       picked_from = excluded.picked_from, reverts = excluded.reverts, files = excluded.files,
       added = excluded.added, removed = excluded.removed, patch_id = excluded.patch_id,
       line_digests = excluded.line_digests, flags = excluded.flags
 where (commits.*) is distinct from (excluded.*)

-- name: delete
delete from commits where repository = %(repository)s and sha = any(%(shas)s)

-- name: delete_others
delete from commits
 where list = %(list)s and month = %(month)s and repository <> all(%(repositories)s)

-- name: digest
-- Digest over the rows of a month, as in patches.sql and damage.sql, and their number.
select encode(sha256(coalesce(string_agg(
           int8send(hash_record_extended(c, 0)), ''::bytea
           order by repository collate "C", sha), '')), 'hex'),
       count(*)
  from commits c
 where list = %(list)s and month = %(month)s

-- name: by_prefixes
-- Prefixes have hexadecimal digits only, and `g` sorts after all of them. Reads up to ten commits,
-- enough to report that a prefix is ambiguous.
select w.prefix, c.repository, c.sha
  from (select distinct prefix from unnest(%(prefixes)s::text[]) as p (prefix)) w
 cross join lateral (
       select repository, sha
         from (select repository, sha
                 from commits
                where sha ~>=~ lower(w.prefix) and sha ~<~ (lower(w.prefix) || 'g')
               offset 0) s
        where repository = any(%(repositories)s)
        order by sha, array_position(%(repositories)s::text[], repository)
        limit 10) c
 order by w.prefix, c.sha, array_position(%(repositories)s::text[], c.repository)

-- name: read
select repository, sha, parents, author_name, author_email, authored_at, committer_name,
       committer_email, committed_at, subject, body, trailers, files, added, removed, patch_id,
       picked_from, reverts, flags
  from commits
 where (repository, sha) in (select * from unnest(%(repositories)s::text[], %(shas)s::text[]))
