"""Build a corpus of any size from real archives, whose messages are copied many times.

    python -m benchmarks.corpus ARCHIVES OUT --messages 1000000 [--gzip]

ARCHIVES has a folder of monthly archives for each list. OUT gets monthly mboxrd files for each list
of the corpus, and a lists.toml for `mail-assets backfill`. The same arguments give the same bytes.

Each *epoch* is one copy of all messages, with other ids, dates and rare words. Ids change in
Message-ID, References and In-Reply-To, also those of missing messages, so that threads keep their
shapes and cross-posts remain cross-posts. Dates move by whole years. A rare word is replaced by a
function of epoch and word alone, so that a quote still equals the quoted text. Only the plain text
and the fields with names, subjects, ids and dates change; HTML, attachments and all other header
fields are the source's. Do not publish a corpus: it is other people's mail.
"""
