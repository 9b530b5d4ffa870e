"""The dialects of mbox, and how to tell which one an archive is written in.

They differ in what becomes of body lines that begin with `From `, in the blank line between two
messages, and in how addresses are written:

    plain       nothing is quoted; a blank line ends each message
    mboxo       `From ` becomes `>From `
    mboxrd      `From ` becomes `>From `, and `>From ` becomes `>>From `
    pg          as postgresql.org serves it: nothing is quoted, and no blank line is added
    pipermail   Mailman 2's text files: `jo at example.org`, and a blank line only mostly
"""

import re
from mmap import mmap

DIALECTS = ("pg", "plain", "mboxrd", "mboxo", "pipermail")

SAMPLE = 1 << 20  # bytes at the beginning of an archive in which its writer is recognised

_PIPERMAIL = re.compile(rb"^From [^\n@]{1,200}\n>?From: [^\n@<]{1,200} \([^\n]{0,200}\)\r?$", re.M)
_PG = re.compile(rb"^From [\w.+-]{1,100}-owner\+archive@[\w.-]{1,100} ", re.M)
_PUBLIC_INBOX = re.compile(rb"^From mboxrd@z Thu Jan  1 00:00:00 1970", re.M)


def find_dialect(data: bytes | mmap) -> str:
    """Return the dialect that the first SAMPLE bytes of an archive speak for."""
    sample = data[:SAMPLE]
    writers = (("pipermail", _PIPERMAIL), ("mboxrd", _PUBLIC_INBOX), ("pg", _PG))
    return next((name for name, pattern in writers if pattern.search(sample)), "plain")
