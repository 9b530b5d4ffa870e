"""A corpus of any size out of real archives: their threads, transplanted over and over.

    python -m benchmarks.corpus ARCHIVES OUT --messages 1000000 [--gzip]

ARCHIVES holds a folder of monthly archives for each list. Written are monthly mboxrd files for each
list of the corpus, and a lists.toml for `mail-assets backfill`. The same arguments give the same
bytes.

Each *epoch* is one copy of all messages: with ids of its own in Message-ID, References and
In-Reply-To, ghosts included, so that trees keep their shapes and cross-posts stay cross-posts; with
dates whole years away; and with other rare words, by a function of epoch and word alone, so that a
quote still equals what it quotes. Only the plain text of a message is changed, decoded; HTML,
attachments and all other header fields are the source's. Nothing of it may be published: it is
other people's mail.
"""
