-- What each encoder makes of a fixed text, on the machine that used it first.

create table encoder_probes (
    fingerprint  text primary key,
    vector       bytea not null,
    machine      text not null,
    made_at      timestamptz not null default now()
);

comment on table encoder_probes is
    'The vector of a fixed text by each encoder: a machine that makes another one must not add to '
    'the same index.';
comment on column encoder_probes.fingerprint is 'Fingerprint of the encoder.';
comment on column encoder_probes.vector is 'The vector, float32 in little-endian order.';
comment on column encoder_probes.machine is 'Processor and ONNX Runtime that made it.';
comment on column encoder_probes.made_at is 'When it was made.';
