"""The command `why`: shows the discussion that decided a line, a file or a commit."""

import re
import sys
from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING

import click

from mail_assets.cli.command import (
    FAILED,
    examples,
    exit_with,
    name_apart,
    open_reading,
    pass_settings,
    plural,
    print_error,
    print_json,
    print_note,
    printable_line,
    source_line,
    wrap,
    wrap_statement,
)
from mail_assets.settings.settings import Settings

if TYPE_CHECKING:
    import psycopg

    from mail_assets.reading.decisions import Decision, Mail, Release, Thanks
    from mail_assets.reading.patch_talk import PatchTalk
    from mail_assets.reading.series import Change
    from mail_assets.sources.blame import Blamed
    from mail_assets.sources.repository import GitFolder

#: Most commits of a file that are explained.
MOST_COMMITS = 20
#: Commits of --shas that are explained at once; with their mails they take about 10 MB.
_AT_ONCE = 500
_MOST_SAID = 200  # characters of a sentence that says that a patch was applied

_SHA = re.compile(r"[0-9a-fA-F]{4,64}")
_REVISION = re.compile(r"[\w./@~^{}-]{1,200}")
_LINES = re.compile(r"(?P<file>.+):(?P<first>[0-9]{1,9})(?:[-,](?P<last>[0-9]{1,9}))?")

#: Kind of a link -> its label.
_SAID = {
    "applied": "Applied from",
    "version": "Other version",
    "discussion": "Discussed in",
    "report": "Reported in",
}


@click.command(
    epilog=examples(
        "mail-assets why src/backend/commands/vacuum.c:812",
        "mail-assets why src/backend/commands/vacuum.c:812-830",
        "mail-assets why 4e646fa490ba",
        "mail-assets why --shas shas.txt --json",
    )
)
@click.argument("place", metavar="FILE[:LINE[-LINE]]|SHA", required=False)
@click.option(
    "--shas",
    type=click.File("r", encoding="utf-8", lazy=True),
    metavar="FILE",
    help="Explain the commits of a file with one id per line; - is standard input.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, or one per commit.")
@pass_settings
def why(settings: Settings, place: str | None, shas: IO[str] | None, as_json: bool) -> None:
    """Show the discussion that decided a line of code, or a commit.

    In a checkout, git blame finds the commit that wrote FILE:LINE; it follows moved lines and
    ignores white space. The commit leads to the mail from which it was applied. The command shows
    the evidence, all versions, what was said about the patch, who reviewed it, who said that it was
    applied, and the releases whose announcements list it. If the commit has no mail, a later commit
    that moved the line here is also shown. FILE alone, or with a range of lines, shows the commits
    that wrote most of its lines. If no mail is certain, the command says so, and gives the reason.

    A commit need not be in a checkout if its repository is in lists.toml.
    """
    if (place is None) == (shas is None):
        raise click.UsageError("give either FILE[:LINE], a commit, or --shas")
    with open_reading(settings, "why") as connection:
        finder = _Finder(settings, connection)
        if shas is not None:
            _explain_many(finder, shas, as_json)
        elif place is not None and (sha := _find_commit(place)):
            decision = finder.explain([sha], Path.cwd()).get(sha)
            if decision is None:
                exit_with(f"no repository of lists.toml, and no checkout here, has {place}")
            decision = finder.add_discussion(decision)
            if as_json:
                print_json(decision.as_json())
            else:
                _print(decision)
        elif place is not None:
            _explain_file(finder, place, as_json)


def _find_commit(place: str) -> str:
    """Return the commit id for an id or a revision (HEAD~2, v75), "" for a file."""
    from mail_assets.sources.repository import GitFolder

    if Path(place).exists() or not _REVISION.fullmatch(place):
        return ""
    if _SHA.fullmatch(place):
        return place.lower()
    checkout = GitFolder.around(Path.cwd())
    return checkout.find([place]).get(place, "") if checkout else ""


class _Finder:
    def __init__(self, settings: Settings, connection: "psycopg.Connection") -> None:
        from mail_assets.tables.commits import Discussed

        self._settings, self._connection = settings, connection
        self._about = {
            name: Discussed(one.lists, one.prefix) for name, one in settings.repositories.items()
        }
        self._anywhere = Discussed(tuple(settings.lists))
        self._folders: dict[str, GitFolder | None] = {}

    def explain(self, names: Sequence[str], checkout: Path) -> "dict[str, Decision]":
        """Return given name -> decision for the commits that are found."""
        from mail_assets.reading.decisions import follow_picks

        found = self._explain(names, checkout)
        return follow_picks(lambda some: self._explain(some, checkout), found)

    def explain_each(
        self, names: Sequence[str], checkout: Path
    ) -> "tuple[dict[str, Decision], dict[str, str]]":
        """Return given name -> decision, and given name -> error for ambiguous ids."""
        from mail_assets.tables.commits import AmbiguousCommitError

        try:
            return self.explain(names, checkout), {}
        except AmbiguousCommitError as error:
            if len(names) == 1:
                return {}, {names[0]: str(error)}
            middle = len(names) // 2
            made, wrong = self.explain_each(names[:middle], checkout)
            more, others = self.explain_each(names[middle:], checkout)
            return made | more, wrong | others

    def _explain(self, names: Sequence[str], checkout: Path) -> "dict[str, Decision]":
        from mail_assets.reading.decisions import explain_commits, explain_stored
        from mail_assets.tables.commits import find_commits

        keys = find_commits(self._connection, names, [*self._about])
        stored = explain_stored(self._connection, [*keys.values()], self._about)
        found = {name: stored[key] for name, key in keys.items() if key in stored}
        for repository in ("", *self._about):
            left = [name for name in names if name not in found]
            if left and (folder := self._folder(repository, checkout)):
                shas = folder.find(left)
                about = self._about.get(repository, self._anywhere)
                commits = folder.read([*shas.values()])
                made = explain_commits(self._connection, commits, repository, about)
                found |= {name: made[sha] for name, sha in shas.items() if sha in made}
        return found

    def _folder(self, repository: str, checkout: Path) -> "GitFolder | None":
        """Return the git folder of a repository of lists.toml, or of the checkout for ""."""
        if repository not in self._folders:
            from mail_assets.sources.repository import GitFolder

            if one := self._settings.repositories.get(repository):
                cache = self._settings.source_cache
                found = GitFolder.kept(repository, one.source, one.branch, cache)
            else:
                found = GitFolder.around(checkout)
            self._folders[repository] = found
        return self._folders[repository]

    def add_discussion(self, decision: "Decision") -> "Decision":
        from mail_assets.reading.decisions import add_discussion

        about = self._about.get(decision.commit.repository, self._anywhere)
        return add_discussion(self._connection, decision, about.lists)


def _explain_many(finder: _Finder, file: IO[str], as_json: bool) -> None:
    names = [name.lower() for line in file if (name := line.strip()) and name[0] != "#"]
    if wrong := next((name for name in names if not _SHA.fullmatch(name)), None):
        raise click.UsageError(
            f"--shas: {wrong[:80]!r} is no id of a commit; write one id per line"
        )
    left, unknown = iter(dict.fromkeys(names)), []
    while some := [*islice(left, _AT_ONCE)]:
        made, several = finder.explain_each(some, Path.cwd())
        unknown += [name for name in some if name not in made]
        for name in some:
            if name in made:
                decision = made[name]
                if as_json:
                    print_json(decision.as_line())
                else:
                    click.echo(_one_line(decision))
            elif as_json:
                reason = several.get(name, "no repository has this commit")
                line = {"sha": name, "message_ids": [], "abstained": True, "reason": reason}
                print_json({**line, "evidence": []})
    if unknown:
        what = plural(len(unknown), "commit")
        print_error(f"{what} not in any repository, or with an ambiguous id: {unknown[0]} ...")
        if len(unknown) == len({*names}):
            sys.exit(FAILED)


def _explain_file(finder: _Finder, place: str, as_json: bool) -> None:
    from mail_assets.sources.blame import blame_file

    path, wanted = _read_place(place)
    blamed = blame_file(path, wanted)
    if not blamed:
        exit_with(f"{path} has no line that is in a commit")
    if older := [one for one in blamed if one.is_cut]:
        blamed = [one for one in blamed if not one.is_cut]
        what = plural(sum(len(one.lines) for one in older), "line")
        ending = (
            f"{what} of {path} may be older than this shallow clone; run `git fetch --unshallow`"
        )
        if not blamed:
            exit_with(ending)
        print_note(ending)
    some = blamed[:MOST_COMMITS]
    made = finder.explain([one.sha for one in some], path.absolute().parent)
    is_whole = wanted is not None and len(some) == 1
    movers = _find_movers(finder, path, wanted, [x for x in some if made[x.sha].abstained])
    for number, one in enumerate(some):
        decision, mover = made[one.sha], movers.get(one.sha)
        if is_whole:
            decision = finder.add_discussion(decision)
            mover = finder.add_discussion(mover) if mover else None
        if as_json:
            document = {"file": str(path), "lines": [*one.lines], **decision.as_json()}
            print_json({**document, "moved_by": mover.as_json() if mover else None})
        elif is_whole:
            _print(decision)
            if mover:
                click.echo("\nMoved or copied to this place by a commit with mail:\n")
                _print(mover)
        else:
            share = plural(len(one.lines), "line")
            click.echo(
                ("\n" if number else "")
                + click.style(f"{printable_line(str(path))}: {share}", dim=True)
            )
            click.echo(_one_line(decision))
            if mover:
                click.echo(f"Moved or copied to this place by\n{_one_line(mover)}")
    if len(blamed) > len(some):
        print_note(f"{plural(len(blamed) - len(some), 'further commit')} wrote fewer lines each")


def _find_movers(
    finder: _Finder, path: Path, wanted: range | None, without: "Sequence[Blamed]"
) -> "dict[str, Decision]":
    """Return commit id -> decision of the commit with mail that moved most of its lines here."""
    from mail_assets.sources.blame import blame_file

    if not without:
        return {}
    placed = [one for one in blame_file(path, wanted, follows_moves=False) if not one.is_cut]
    made = finder.explain([one.sha for one in placed], path.absolute().parent)
    movers = [one for one in placed if one.sha in made and not made[one.sha].abstained]
    shares = {
        one.sha: [(len({*one.lines} & {*mover.lines}), mover.sha) for mover in movers]
        for one in without
    }
    best = {sha: max(some) for sha, some in shares.items() if some}
    return {sha: made[mover] for sha, (share, mover) in best.items() if share}


def _read_place(place: str) -> tuple[Path, range | None]:
    asked = None if Path(place).exists() else _LINES.fullmatch(place)
    if asked is None:
        return Path(place), None
    first = int(asked["first"])
    last = int(asked["last"] or first)
    if not 0 < first <= last:
        raise click.UsageError(f"{place}: lines count from 1, and a range ends after it begins")
    return Path(asked["file"]), range(first, last + 1)


def _one_line(decision: "Decision") -> str:
    commit = decision.commit
    title = f"{commit.sha[:12]} {commit.committed_at:%Y-%m-%d} {printable_line(commit.subject)}"
    if decision.abstained:
        return f"{title}\n  no mail: {decision.reason}"
    first = next(one for one in decision.links if one.message_id in decision.message_ids)
    return f"{title}\n  {_SAID[first.kind.value]} <{first.message_id}>"


def _print(decision: "Decision") -> None:
    for text in _lines(decision):
        click.echo(text)


def _lines(decision: "Decision") -> Iterator[str]:
    yield from _commit(decision)
    yield ""
    yield from _mails(decision)
    for change in decision.versions:
        yield from _versions(change, decision)
    yield from _discussion(decision)
    if decision.talk and (decision.talk.sentences or not decision.find_stated()):
        yield from _talk(decision.talk, decision.namesakes)
        yield ""
    yield from _later(decision)


def _commit(decision: "Decision") -> Iterator[str]:
    commit = decision.commit
    yield click.style(f"{commit.sha[:12]} {printable_line(commit.subject)}", bold=True)
    if decision.followed:
        yield f"It carries over commit {decision.followed[:12]}, whose mail this is."
    by = printable_line(commit.author_name or commit.author_email)
    line = f"By {by}, {commit.authored_at:%Y-%m-%d}"
    if (commit.committer_name, commit.committer_email) != (commit.author_name, commit.author_email):
        line += f"; committed by {printable_line(commit.committer_name)}"
        if commit.committer_name in decision.namesakes:
            line += f" <{printable_line(commit.committer_email)}>"
    yield f"{line}, {commit.committed_at:%Y-%m-%d}"
    for role in dict.fromkeys(one.role for one in commit.credits):
        people = (printable_line(x.person) for x in commit.credits if x.role == role)
        yield f"{role.capitalize()} by {', '.join(people)}"
    for sha in commit.reverts:
        yield f"It takes back {sha[:12]}."


def _mails(decision: "Decision") -> Iterator[str]:
    from mail_assets.reading.decisions import NOT_HERE

    if decision.abstained:
        yield f"No mail is certain: {decision.reason}."
        return
    alike = decision.namesakes
    shown = {one.message_id for change in decision.versions for one in change.versions}
    for link in decision.links:
        if link.kind == "version" and link.message_id in shown:
            continue
        if mail := decision.mails.get(link.message_id):
            yield f"{_SAID[link.kind.value]} {_mail_line(mail, alike)}"
            yield click.style(f"    {', '.join(link.evidence)}", dim=True)
        elif link.kind == "missing":
            yield f"It also names mail that is {NOT_HERE}: <{printable_line(link.message_id)}>"


def _later(decision: "Decision") -> Iterator[str]:
    alike = decision.namesakes
    for thanks in decision.thanks:
        yield f"Said to be applied in {_mail_line(thanks.mail, alike)}"
        yield click.style(f"    {printable_line(thanks.said)[:_MOST_SAID]}", dim=True)
        yield from _doubt(thanks)
        for patch in thanks.patches:
            yield click.style(f"    of <{printable_line(patch)}>", dim=True)
    if more := decision.left_out.get("thanks"):
        yield f"{plural(more, 'further message')} say so"
    named = "Has its title, or names it:" if decision.abstained else "Named in"
    for mail in decision.naming:
        yield f"{named} {_mail_line(mail, alike)}"
    if more := decision.left_out.get("named_in"):
        yield f"{named} {plural(more, 'further message')}"
    for release in decision.releases:
        yield f"Released in {printable_line(release.name)}, whose announcement lists its title"
        yield f"    {_about(release.mail, alike)}"
        yield from _doubt(release)


def _doubt(one: "Thanks | Release") -> Iterator[str]:
    from mail_assets.reading.series import NO_STANDING

    if not one.has_standing:
        yield f"    the person who says so {NO_STANDING}"


def _versions(change: "Change", decision: "Decision") -> Iterator[str]:
    yield ""
    yield f"Versions of {printable_line(change.newest.title)}:"
    for one in change.versions:
        landed = one.message_id in decision.applied_ids
        why = f" ({', '.join(one.evidence)})" if one.evidence else ""
        who = f", by {printable_line(one.from_name)}" if one.is_taken_over else ""
        who += ", contested id" if one.is_contested else ""
        end = "; this one was applied" if landed else ""
        yield f"{'→' if landed else ' '} {one.label}, {one.sent_at:%Y-%m-%d}{who}{why}{end}"
        yield click.style(f"        <{printable_line(one.message_id)}>", dim=True)
    if change.gaps:
        yield f"  {next(change.find_unknown())}"


def _discussion(decision: "Decision") -> Iterator[str]:
    if decision.thread is None:
        return
    size = decision.thread
    yield ""
    by = plural(size.people, "person", "people")
    yield f"Discussion: {plural(size.messages, 'message')} by {by}"
    yield click.style(f"    mail-assets thread '{decision.thread_id}'", dim=True)
    if decision.summary is None:
        return
    for label, stated in decision.find_stated():
        yield wrap_statement(label.capitalize(), stated.statement.text)
        day = f"{stated.said_at:%Y-%m-%d}"
        who = name_apart(stated, decision.namesakes)
        yield source_line(stated.statement.message_id, who, day)
    if not decision.talk:
        for one in decision.summary.sentences:
            yield wrap(f"{one['part'].capitalize()}: {printable_line(one['text'])}")
            yield source_line(one["message_id"])


def _talk(talk: "PatchTalk", alike: Collection[str] = ()) -> Iterator[str]:
    by = plural(talk.people, "person", "people")
    said = f"Said of this patch, in {plural(talk.messages, 'message')} by {by}:"
    yield said if talk.sentences else f"{said} no sentence was chosen"
    for one in talk.sentences:
        who = name_apart(one, alike)
        yield wrap(f"- {printable_line(one.text)}")
        yield source_line(one.message_id, who, f"{one.sent_at:%Y-%m-%d}")


def _mail_line(mail: "Mail", alike: Collection[str]) -> str:
    return f"{printable_line(mail.subject)}\n    {_about(mail, alike)}"


def _about(mail: "Mail", alike: Collection[str]) -> str:
    return (
        f"{name_apart(mail, alike)}, {mail.sent_at:%Y-%m-%d}, <{printable_line(mail.message_id)}>"
    )
