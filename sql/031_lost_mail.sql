-- Mail that had vanished from its source before it was forgotten is kept in mind too.

comment on table cut_messages is
    'Messages that the stored archive of the month has not, but had: cut out because of an entry in '
    'removals, or lost by the source, before or after they were forgotten.';
