-- The vector of a fixed text by each encoder. Used by tables/encoder_probes.py.

-- name: record
insert into encoder_probes (fingerprint, vector, machine)
values (%(fingerprint)s, %(vector)s, %(machine)s)
on conflict do nothing

-- name: read
select vector, machine from encoder_probes where fingerprint = %(fingerprint)s
