"""The word index: LanceDB in a folder or on S3-like storage, by its URL."""

import dagster as dg
from pydantic import Field

from mail_assets.steps.word_index import MailWords, open_mail_words


class WordsResource(dg.ConfigurableResource):
    """The index that MAIL_WORDS names."""

    url: str = Field(description="MAIL_WORDS: lance:PATH or lance:s3://BUCKET/PREFIX")

    def open(self) -> MailWords:
        """Open the index of this version; credentials come from the environment.

        It may not exist yet.
        """
        return open_mail_words(self.url)
