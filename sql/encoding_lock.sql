-- One process of a machine encodes at a time. Used by tables/encoding_lock.py.

-- name: try_lock
select pg_try_advisory_lock(hashtextextended('encoding on ' || %(machine)s, 0))

-- name: lock
-- Held by the session: it ends with the process that holds it, however that ends.
select pg_advisory_lock(hashtextextended('encoding on ' || %(machine)s, 0))

-- name: unlock
select pg_advisory_unlock(hashtextextended('encoding on ' || %(machine)s, 0))
