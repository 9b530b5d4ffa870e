"""A world with a repository whose commits were mailed to a list."""

from collections.abc import Mapping
from pathlib import Path

from mail_assets.month import ListMonth
from mail_assets.sources.repository import CommitSource
from mail_assets.sources.source import HttpOptions
from mail_assets.steps.link_commits import link_commits
from mail_assets.steps.read_commits import read_month_commits
from mail_assets.tables.commits import CommitKey, Discussed, read_links
from mail_assets.workspace import Outcome
from mail_assets_tests.sources.inboxes import git
from mail_assets_tests.sources.repositories import Made, make_repository
from mail_assets_tests.world import HARBOR, MARCH, World, mail

OLD = b"int load;\nint weight;\nint height;\n"
NEW = b"int load;\nint weight_of_load;\nint limit_of_crane;\nint height;\n"
#: 2024-03-06: two days after the mail of the world.
COMMITTED = 1_709_719_200
TITLE = "crane: know the limit"


class Crane:
    """A world with a repository: a first commit, then one that was mailed."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.made: Made = make_repository(world.home / "crane.git")
        self.first = self.made.commit({"crane.c": OLD}, "first", committed=COMMITTED)

    def commit(self, message: str = TITLE, text: bytes = NEW) -> str:
        """Commit a change of the file."""
        return self.made.commit({"crane.c": text}, message, committed=COMMITTED)

    def diff(self, sha: str) -> str:
        """Return the diff of a commit in the format of a mail."""
        return git(self.made.folder, "show", "--format=", sha).decode()

    def source(self) -> CommitSource:
        """Open the repository."""
        cache = Path(self.world.home) / "cache"
        return CommitSource("crane", str(self.made.folder), "", cache, HttpOptions())

    def read(self, month: str = MARCH, *, rebuild: bool = False) -> Outcome:
        """Run the step of `commits`."""
        with self.world.workspace() as workspace:
            sources = {"crane": self.source()}
            return read_month_commits(workspace, ListMonth(HARBOR, month), sources, rebuild=rebuild)

    def link(
        self, *, rebuild: bool = False, about: Mapping[str, Discussed] | None = None
    ) -> Outcome:
        """Run the step of `commit_links`."""
        with self.world.workspace() as workspace:
            named = about or {"crane": Discussed((HARBOR,))}
            return link_commits(workspace, named, rebuild=rebuild)

    def follow(self) -> None:
        """Read the commits and link them."""
        self.read()
        self.link()

    def mailed(self, message: str = TITLE, *others: bytes, last: str = "patches") -> str:
        """Commit a change that was mailed as `v1`, with other mail; read and link it."""
        sha = self.commit(message)
        self.world.load(self.mail("v1", sha), *others, last=last)
        self.follow()
        return sha

    def links(self, sha: str) -> list[str]:
        """Return the links of a commit as "KIND NAME"."""
        with self.world.connect() as connection:
            found = read_links(connection, [CommitKey("crane", sha)])
        some = next(iter(found.values()), [])
        return [f"{one.kind} {one.message_id.partition('@')[0]}" for one in some]

    def mail(self, name: str, sha: str, subject: str = f"[PATCH] {TITLE}") -> bytes:
        """Return a mail with the diff of a commit."""
        return mail(name, f"The crane must know.\n---\n{self.diff(sha)}", subject=subject)
