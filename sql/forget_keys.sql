-- Which key the digests of forgotten mail are made with. Used by tables/forget_keys.py.

-- name: read
select check_value from forget_keys

-- name: write
insert into forget_keys (check_value) values (%(check_value)s)
