"""Check the addresses, Message-IDs and URLs of an answer: only those of the evidence are shown.

A model could cite mail that it was not given by its id or URL, as it could by a number.
"""

import re
from collections.abc import Iterable, Iterator

from mail_assets.answers.evidence import Evidence
from mail_assets.openai.errors import EndpointError
from mail_assets.text.untrusted import strip_invisible

#: Stands for what was removed.
REMOVED = "[...]"
#: What is written with "@", an address or a Message-ID, and with "://".
_REFERENCE = re.compile(
    r"(?<![\w.+$=/-])[\w.+$=/-]++@[\w-]++(?:\.[\w-]++)++|\b[a-z][a-z0-9+.-]{1,20}+://[^\s<>\"'`\])}\u3001\u3002\uff0c]*+",
    re.IGNORECASE,
)
#: What words end with; Chinese and Japanese write no blanks.
_BLANKS = " \n\t\u3000\u3001\u3002\uff0c"
_AFTER = ".,;:!?"
#: Characters of a word that is not waited for any longer: each piece of it costs all before it.
MAX_WORD = 2_000


class ReferenceFilter:
    """Passes on an answer without references that do not stand in `known`; counts them."""

    def __init__(self, known: str) -> None:
        self.dropped = 0
        self._known = known.lower()

    def filter(self, texts: Iterable[str]) -> Iterator[str]:
        """Yield the texts in whole words up to MAX_WORD, each as soon as the next one begins.

        Raises:
            EndpointError: the server failed; what came before it was yielded.
        """
        held = ""
        try:
            for text in texts:
                text = held + strip_invisible(text)
                end = 1 + max(map(text.rfind, _BLANKS))
                end = len(text) if len(text) - end > MAX_WORD else end
                held = text[end:]
                if end:
                    yield self._check(text[:end])
        except EndpointError:
            yield self._check(held)
            raise
        yield self._check(held)

    def _check(self, text: str) -> str:
        return _REFERENCE.sub(self._replace, text)

    def _replace(self, found: re.Match[str]) -> str:
        reference = found[0].rstrip(_AFTER)
        if reference.lower() in self._known:
            return found[0]
        self.dropped += 1
        return REMOVED + found[0][len(reference) :]


def known_text(evidence: Evidence) -> str:
    """Return all that an answer may repeat: the questions and the excerpts with their heads."""
    texts = [evidence.question, *(turn.question for turn in evidence.history)]
    for excerpt in evidence.excerpts:
        hit = excerpt.hit
        texts += [hit.message_id, hit.from_email, hit.from_name, hit.subject, excerpt.text]
    return "\n".join(map(strip_invisible, texts))
