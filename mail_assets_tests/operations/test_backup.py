"""A home that is lost, restored and filled again is the same; a backup deletes only its files."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from mail_assets.forgetting.forget import ForgetRequest, forget_again, forget_messages
from mail_assets.operations import backup as backup_module
from mail_assets.operations.backup import (
    Backup,
    BackupError,
    BackupFolder,
    BackupPlan,
    back_up,
    check_backup,
    read_backup,
    restore_backup,
    restore_forgotten,
)
from mail_assets.postgres.embedded import Cluster
from mail_assets.postgres.programs import PostgresError
from mail_assets.store.embeddings import write_embeddings
from mail_assets.store.open import FolderStore
from mail_assets.tables.kept_rows import KeptRowsError
from mail_assets.tables.removals import ForgetKeyError, KeySource
from mail_assets.workspace import Workspace
from mail_assets_tests.broken_files import flip
from mail_assets_tests.databases import drop_database, new_database
from mail_assets_tests.kept_worlds import kept_world
from mail_assets_tests.world import APRIL, HARBOR, MARCH, PIER, STEPS, World, mail

MONTHS = ((MARCH, HARBOR), (APRIL, HARBOR), (MARCH, PIER))

#: Tables that cannot be made again, without columns with paths of this home.
RECORDS: Mapping[str, str] = {
    "removals": "*",
    "removed_messages": "*",
    "cut_messages": "*",
    "removed_upstream": "*",
    "former_archives": "*",
    "forget_keys": "*",
    "mbox_archives": "*",
    "threads": "*",
    "thread_aliases": "*",
}

NewHome = Callable[[str], World]


@contextmanager
def homes(folder: Path, cluster: Cluster) -> Iterator[NewHome]:
    """Make homes whose databases are empty: there is not even a table."""
    made: list[str] = []

    def make(name: str) -> World:
        made.append(new_database(cluster))
        return World(folder / name, made[-1])

    yield make
    for dsn in made:
        drop_database(cluster, dsn)


@pytest.fixture
def new_home(tmp_path: Path, cluster: Cluster) -> Iterator[NewHome]:
    with homes(tmp_path, cluster) as make:
        yield make


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory, cluster: Cluster) -> Iterator[World]:
    """A home with three months, mail that was forgotten, and mail that vanished from its source.

    It is only read.
    """
    with homes(tmp_path_factory.mktemp("filled"), cluster) as make:
        world = make("home")
        world.keep_days = 30
        write_archives(world)
        world.archive(MARCH, mail("a"), mail("b", references="<a@example.org>"), mail("c"))
        fill(world, last="messages")
        write_archives(world)
        forget(world, "b@example.org")
        fill(world)
        yield world


def fill_messages(world: World) -> None:
    """Fill a home with archives and messages of three months; one message is forgotten."""
    write_archives(world)
    fill(world, last="messages")
    forget(world, "b@example.org")
    fill(world, last="messages")


world = kept_world(fill_messages)


def write_archives(world: World) -> None:
    world.archive(MARCH, mail("a"), mail("b", references="<a@example.org>"), at=60)
    world.archive(APRIL, mail("d", references="<c@example.org> <ghost@example.org>"))
    world.archive(MARCH, mail("a"), mail("e", sender="eve@example.org"), list_name=PIER)


def fill(world: World, first: str = "archives", last: str = "vectors") -> None:
    for month, list_name in MONTHS:
        for step in STEPS[STEPS.index(first) : STEPS.index(last) + 1]:
            getattr(world, step)(month, list_name)
    world.threads()
    world.series()


def ids(world: World) -> set[str]:
    return {row[0].partition("@")[0] for row in world.rows("messages", "message_id")}


def forget(world: World, *ids: str) -> None:
    world.forget(ForgetRequest({*ids}, (), "asked", "test", False))


def forget_all(world: World) -> None:
    """Forget what is in the list of removals, as the command does behind a restore."""
    with world.workspace() as workspace:
        forget_again(workspace, lambda name: world.index)


def save(world: World, folder: Path, whole: bool = False) -> Backup:
    databases = {"mail": world.dsn} if whole else {}
    with world.workspace() as workspace:
        return back_up(workspace, folder, BackupPlan(databases, embeddings=whole))


def save_around_forgetting(world: World, folder: Path, whole: bool) -> tuple[Path, Path]:
    """Return a backup, `whole` or not, and one of after d@example.org was forgotten."""
    older, newer = folder / "older", folder / "newer"
    save(world, older, whole)
    forget(world, "d@example.org")
    save(world, newer)
    return older, newer


@contextmanager
def killed_at(name: str) -> Iterator[None]:
    """Kill what the block does when it calls a function of the module of backups."""

    def die(*arguments: object) -> None:
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(backup_module, name, die)
        with pytest.raises(KeyboardInterrupt):
            yield


def restore(world: World, folder: Path, key: KeySource | None = None) -> Backup:
    return restore_backup({"mail": world.dsn}, world.store, key or world.forget_key, folder)


def everything(world: World) -> dict[str, Any]:
    rows = {table: world.rows(table, columns) for table, columns in RECORDS.items()}
    # digests of messages tell that something was forgotten of a month behind its load
    states = world.rows("partitions", "asset, list, month")
    fetched = world.rows("partitions", "list, month, inputs, digest", "asset = 'mbox_archives'")
    return {**world.holds(), **rows, "partitions": (states, fetched)}


@pytest.mark.slow
@pytest.mark.parametrize("whole", [False, True], ids=["records", "whole"])
def test_restore_and_backfill_bring_everything_back(
    filled: World, new_home: NewHome, tmp_path: Path, whole: bool
) -> None:
    made = save(filled, tmp_path / "backup", whole)
    assert (made.rows["removals"], made.rows["removed_upstream"], made.lost) == (1, 1, [])
    other = new_home("other")  # without the sources
    restore(other, tmp_path / "backup")
    fill(other, "messages")
    before = everything(filled)
    assert everything(other) == before
    texts = {row[0] for row in filled.rows("chunks", "text_hash")}
    assert len(other.encoder.texts) == (0 if whole else len(texts))


def test_backup_continues_the_former_one(world: World, tmp_path: Path) -> None:
    folder, gone = tmp_path / "backup", "embeddings/harbor/2024-04/gone.parquet"
    one = "embeddings/harbor/2024-03/one.parquet"
    put_vectors(world, one, b"1")
    put_vectors(world, gone, b"2")
    save(world, folder, whole=True)
    files = inodes(folder)
    put_vectors(world, one, b"3")
    world.store.delete(gone)
    second = save(world, folder, whole=True)
    kept = inodes(folder)
    changed = {key for key, inode in files.items() if kept.get(key) != inode}
    assert changed == {one, gone}
    assert files.keys() - kept.keys() == {gone}
    assert [path.name for path in folder.glob("rows-*")] == [second.folder]


def test_files_that_no_backup_wrote_stay_as_they_are(world: World, tmp_path: Path) -> None:
    folder = tmp_path / "backup"
    first = save(world, folder)
    mine = [
        folder / name
        for name in (
            "store/photos/sea.jpg",
            "store/archives/notes.txt",
            "rows-of-mine/a.csv",
            "rows-20240101T000000000000/a.csv",
            f"{first.folder}/notes.txt",
            "README.md",
        )
    ]
    for path in mine:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("mine")
    save(world, folder)
    assert {path.read_text() for path in mine} == {"mine"}
    assert [path.name for path in (folder / first.folder).iterdir()] == ["notes.txt"]


def test_files_of_a_killed_backup_are_deleted_by_the_next(world: World, tmp_path: Path) -> None:
    folder = tmp_path / "backup"
    killed = folder / "store/embeddings/harbor/2024-03/one.parquet"
    put_vectors(world, "embeddings/harbor/2024-03/one.parquet", b"1")
    with killed_at("_copy_settings"):
        save(world, folder, whole=True)
    assert killed.is_file()
    made = save(world, folder)
    assert not killed.exists()
    assert [path.name for path in folder.glob("rows-*")] == [made.folder]


def test_settings_inside_the_backup_are_not_copied(world: World, tmp_path: Path) -> None:
    folder, lists = tmp_path / "backup", tmp_path / "lists.toml"
    lists.write_text("first")
    with world.workspace() as workspace:
        back_up(workspace, folder, BackupPlan({}, [lists]))
        lists.write_text("second")
        back_up(workspace, folder, BackupPlan({}, [lists]))
        assert (folder / "lists.toml").read_text() == "second"
        back_up(workspace, folder, BackupPlan({}, [folder / "lists.toml"]))
    assert (folder / "lists.toml").read_text() == "second"


def put_vectors(world: World, key: str, text_hash: bytes) -> None:
    write_embeddings(world.store, key, {text_hash * 32: [1.0, 0.0]}, PurePosixPath(key).stem)


def inodes(folder: Path) -> dict[str, int]:
    """Return the file of each key; one that was written again is another."""
    store = FolderStore(folder / "store")
    return {key: (store.root / key).stat().st_ino for key in store.keys()}  # noqa: SIM118


@pytest.mark.parametrize(
    "at", ["_copy_missing", "_copy_settings", "dump_database", "write_private"]
)
def test_former_backup_counts_until_the_new_one_is_whole(
    world: World, new_home: NewHome, tmp_path: Path, at: str
) -> None:
    folder = tmp_path / "backup"
    first = save(world, folder, whole=True)
    forget(world, "d@example.org")
    with killed_at(at):
        save(world, folder, whole=True)
    assert read_backup(folder) == first
    other = new_home("other")
    restore(other, folder)
    assert ids(other) == {"a", "d", "e"}


def test_archive_replaced_during_a_backup_is_taken_as_it_is(
    world: World, new_home: NewHome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy, folder = backup_module.copy_object, tmp_path / "backup"
    calls: list[str] = []

    def replace_first(source: Any, target: Any, key: str) -> None:
        if not calls:
            world.archive(APRIL, mail("d"), mail("f"), at=120)
            for _ in range(2):  # the second deletes the file that nothing needs any more
                world.chain(APRIL, last="messages")
        calls.append(key)
        copy(source, target, key)

    monkeypatch.setattr(backup_module, "copy_object", replace_first)
    assert save(world, folder).lost == []
    other = new_home("other")
    restore(other, folder)
    fill(other, "messages", "messages")
    assert ids(other) == ids(world) == {"a", "d", "e", "f"}


def test_file_that_the_store_lost_is_named_and_the_rest_kept(world: World, tmp_path: Path) -> None:
    [lost] = world.rows("mbox_archives", "object_key", f"month = '{APRIL}'")
    world.store.delete(lost[0])
    made = save(world, tmp_path / "backup")
    assert (made.lost, made.files) == ([lost[0]], 2)


@pytest.mark.parametrize(("when", "found"), [("before", "ae"), ("after", "ae"), ("never", "ade")])
@pytest.mark.parametrize("whole", [False, True], ids=["records", "whole"])
def test_later_removals_are_taken_from_a_newer_backup(
    world: World, new_home: NewHome, tmp_path: Path, when: str, found: str, whole: bool
) -> None:
    older, newer = save_around_forgetting(world, tmp_path, whole)
    other = new_home("other")
    if when == "before":
        assert restore_forgotten(other.dsn, other.forget_key, newer) == 2
    restore(other, older)
    forget_all(other)
    if when == "after":
        fill(other, "messages", "messages")
        assert restore_forgotten(other.dsn, other.forget_key, newer) == 1
        forget_all(other)
        assert ids(other) == {*found}, "at once"
    fill(other, "messages", "messages")
    assert ids(other) == {*found}


def test_restore_into_a_home_with_archives_is_refused(world: World, tmp_path: Path) -> None:
    save(world, tmp_path / "backup")
    before = world.rows("messages", "ctid::text, xmin::text")
    with pytest.raises(BackupError, match="down --delete-data"):
        restore(world, tmp_path / "backup")
    assert world.rows("messages", "ctid::text, xmin::text") == before


@pytest.mark.parametrize(("whole", "at"), [
    *((False, at) for at in ("_merge", "merge_forgotten", "end_restore")),
    *((True, at) for at in ("restore_database", "index_again", "merge_forgotten", "migrate")),
])  # fmt: skip
def test_stopped_restore_is_run_again_and_forgets_nothing(
    world: World, new_home: NewHome, tmp_path: Path, whole: bool, at: str
) -> None:
    older, newer = save_around_forgetting(world, tmp_path, whole)
    other = new_home("other")
    restore_forgotten(other.dsn, other.forget_key, newer)
    for _ in range(2):
        with killed_at(at):
            restore(other, older)
    restore(other, older)
    forget_all(other)
    fill(other, "messages", "messages")
    assert ids(other) == {"a", "e"}
    with pytest.raises(BackupError, match="this database has archives already"):
        restore(other, older)


def test_failed_dump_of_another_database_leaves_the_mail(
    world: World, new_home: NewHome, tmp_path: Path
) -> None:
    history, other = new_home("history"), new_home("other")
    with world.workspace() as workspace:
        plan = BackupPlan({"mail": world.dsn, "dagster": history.dsn})
        assert back_up(workspace, tmp_path / "backup", plan).dumps == ["mail", "dagster"]
    databases = {"mail": other.dsn, "dagster": other.dsn.replace("test_", "none_")}
    with pytest.raises(PostgresError, match="does not exist"):
        restore_backup(databases, other.store, other.forget_key, tmp_path / "backup")
    assert other.rows("messages") == []
    databases["dagster"] = new_home("third").dsn
    restore_backup(databases, other.store, other.forget_key, tmp_path / "backup")
    assert ids(other) == {"a", "d", "e"}


def test_same_database_is_dumped_once(world: World, tmp_path: Path) -> None:
    with world.workspace() as workspace:
        plan = BackupPlan({"mail": world.dsn, "dagster": world.dsn})
        assert back_up(workspace, tmp_path / "backup", plan).dumps == ["mail"]


def test_folder_without_a_whole_backup_is_refused(world: World, tmp_path: Path) -> None:
    folder = tmp_path / "backup"
    with pytest.raises(BackupError, match=r"no backup\.json"):
        read_backup(folder)
    made = save(world, folder)
    facts = json.loads((folder / "backup.json").read_text())
    for version, reason in ((99, "later version"), (1, r"before 0\.2\.0, .*mail-assets backfill")):
        (folder / "backup.json").write_text(json.dumps({**facts, "version": version}))
        with pytest.raises(BackupError, match=reason):
            read_backup(folder)
    (folder / "backup.json").write_text(json.dumps(facts))
    with (folder / made.folder / "removals.csv").open("a") as file:
        file.write("\n")
    with pytest.raises(BackupError, match=r"removals\.csv is missing or damaged"):
        read_backup(folder)


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


@pytest.mark.parametrize(("pattern", "damage"), [
    ("store/archives/**/*.mbox*", truncate),
    ("store/embeddings/**/*.parquet", flip),
    ("rows-*/*.csv", truncate),
    *(("rows-*/*.dump", damage) for damage in (truncate, flip, Path.unlink)),
])  # fmt: skip
def test_restore_refuses_a_damaged_backup_before_it_writes(
    world: World, new_home: NewHome, tmp_path: Path, pattern: str, damage: Callable[[Path], None]
) -> None:
    folder = tmp_path / "backup"
    put_vectors(world, "embeddings/harbor/2024-03/one.parquet", b"1")
    made = save(world, folder, whole=True)
    assert check_backup(folder) == read_backup(folder)
    assert made.files == len(made.stored) == 4
    damage(max(path for path in folder.glob(pattern) if path.stat().st_size))
    other = new_home("other")
    with pytest.raises(BackupError, match=r"missing or damaged.*take another backup"):
        restore(other, folder)
    assert [*other.store.keys()] == []
    assert other.rows("messages") == []


@pytest.mark.parametrize("damage", [truncate, flip])
def test_backup_leaves_out_a_damaged_file_and_keeps_a_copy(
    world: World, tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    one = "embeddings/harbor/2024-03/one.parquet"
    put_vectors(world, one, b"1")
    [archive, *_] = world.store.keys("archives/")
    save(world, tmp_path / "former", whole=True)
    for key in (archive, one):
        damage(world.home / "store" / key)
    made = save(world, tmp_path / "new", whole=True)
    assert made.damaged == [archive, one]
    assert check_backup(tmp_path / "new").files == 2
    again = save(world, tmp_path / "former", whole=True)
    assert again.damaged == [one], "a file of embeddings is copied when it has changed"
    assert check_backup(tmp_path / "former").files == 3


def test_backup_of_a_database_without_a_table_is_refused(world: World, tmp_path: Path) -> None:
    with world.connect() as connection:
        connection.execute("drop table chunks")
    with pytest.raises(BackupError, match="lacks the tables chunks: `mail-assets doctor`"):
        save(world, tmp_path / "backup")


def test_another_key_than_that_of_the_backup_is_refused(
    world: World, new_home: NewHome, tmp_path: Path
) -> None:
    save(world, tmp_path / "backup")
    with pytest.raises(ForgetKeyError, match="another key"):
        restore(new_home("other"), tmp_path / "backup", KeySource(given="3b" * 32))


def test_removals_of_homes_with_different_keys_are_not_mixed(
    world: World, new_home: NewHome, tmp_path: Path
) -> None:
    save(world, tmp_path / "backup")
    other = new_home("other")
    key = KeySource(given="3b" * 32)
    with other.workspace() as workspace:
        request = ForgetRequest({"x@example.org"}, (), "asked", "test", False)
        forget_messages(
            Workspace(workspace.connection, workspace.store, print, key),
            request,
            lambda name: other.index,
        )
    with pytest.raises(KeptRowsError, match="different keys"):
        restore(other, tmp_path / "backup", key)


def test_key_in_a_file_is_in_the_backup(world: World, new_home: NewHome, tmp_path: Path) -> None:
    folder, file = tmp_path / "backup", tmp_path / "forget.key"
    file.write_text("2a" * 32)
    file.chmod(0o600)
    with world.workspace() as workspace:
        kept = Workspace(workspace.connection, workspace.store, print, KeySource(file=file))
        back_up(kept, folder, BackupPlan({}))
    other = new_home("other")
    target = KeySource(file=tmp_path / "new" / "forget.key")
    restore(other, folder, target)
    assert target.read() == bytes.fromhex("2a" * 32)
    assert (folder / "forget.key").stat().st_mode & 0o77 == 0


def test_failed_dump_is_an_error_with_its_reason(world: World, tmp_path: Path) -> None:
    gone = world.dsn.replace("test_", "none_")
    with world.workspace() as workspace, pytest.raises(PostgresError, match="does not exist"):
        back_up(workspace, tmp_path / "backup", BackupPlan({"mail": gone}))


def test_backup_is_not_replaced_by_that_of_another_home(
    filled: World, new_home: NewHome, tmp_path: Path
) -> None:
    folder = tmp_path / "backup"
    save(filled, folder)
    before = inodes(folder)
    other = new_home("other")
    other.archive(MARCH, mail("elsewhere"))
    for month in (None, MARCH):
        if month:
            other.chain(month)
        with pytest.raises(BackupError, match="the backup of another home"):
            save(other, folder)
        assert inodes(folder) == before


def write(folder: BackupFolder, *names: str) -> None:
    folder.intend(names)
    for name in names:
        path = folder.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)


def files(folder: Path) -> set[str]:
    paths = (path.relative_to(folder) for path in folder.rglob("*"))
    return {str(path) for path in paths if not path.name.startswith(".")} - {"written.json"}


def link(target: Path, path: Path) -> Path:
    path.symlink_to(target)
    return path


@pytest.mark.parametrize(
    "choose",
    [
        lambda home: home,
        lambda home: home / "backup",
        lambda home: home / "store" / "backup",
        lambda home: home.parent,
        lambda home: home / ".." / home.name,
        lambda home: link(home, home.parent / "link"),
        lambda home: link(home, home.parent / "link") / "backup",
    ],
    ids=["is", "lies in", "lies deep in", "holds", "is by dots", "is by a link", "in by a link"],
)
def test_folder_in_use_is_left_untouched(tmp_path: Path, choose: Callable[[Path], Path]) -> None:
    home = tmp_path / "above" / "home"
    home.mkdir(parents=True)
    folder = choose(home)
    before = files(tmp_path)
    with pytest.raises(BackupError, match="overlaps with"):
        BackupFolder(folder, [tmp_path / "other", home])
    assert files(tmp_path) == before


def test_folder_with_files_of_others_is_refused(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("mine")
    with pytest.raises(BackupError, match="new or empty"):
        BackupFolder(tmp_path)
    assert files(tmp_path) == {"letter.txt"}


@pytest.mark.parametrize("made", [False, True], ids=["new", "empty"])
def test_new_or_empty_folder_is_taken(tmp_path: Path, made: bool) -> None:
    folder = tmp_path / "a" / "b"
    if made:
        folder.mkdir(parents=True)
        (folder / ".snapshot").mkdir()
    write(BackupFolder(folder), "store/a")
    write(BackupFolder(folder), "store/b")
    assert files(folder) == {"store", "store/a", "store/b"}


@pytest.mark.parametrize("name", ["lists.toml", "store/a", "store"])
def test_file_that_no_backup_wrote_is_not_replaced(tmp_path: Path, name: str) -> None:
    write(BackupFolder(tmp_path), "backup.json")
    mine = tmp_path / name
    mine.parent.mkdir(exist_ok=True)
    mine.write_text("mine")
    with pytest.raises(BackupError, match="not written by a backup"):
        BackupFolder(tmp_path).intend(["a", name])
    BackupFolder(tmp_path).remove_others([])
    assert mine.read_text() == "mine"


def test_unwanted_files_are_deleted_with_their_empty_folders(tmp_path: Path) -> None:
    write(BackupFolder(tmp_path), "rows-1/a.csv", "store/a/b/old", "store/a/kept", "lists.toml")
    (tmp_path / "rows-1" / "mine").write_text("mine")
    folder = BackupFolder(tmp_path)
    write(folder, "rows-2/a.csv", "store/new")
    folder.intend(["store/never/written"])
    folder.remove_others(["rows-2/a.csv", "store/a/kept"])
    assert files(tmp_path) == {
        "lists.toml",
        *("rows-1", "rows-1/mine", "rows-2", "rows-2/a.csv"),
        *("store", "store/a", "store/a/kept"),
    }
    # what was deleted is not a backup's any more
    (tmp_path / "store" / "new").write_text("mine")
    BackupFolder(tmp_path).remove_others([])
    assert {"store/new", "rows-1/mine"} <= files(tmp_path)


def test_concurrent_backups_keep_each_other_s_new_files(tmp_path: Path) -> None:
    one, other = BackupFolder(tmp_path), BackupFolder(tmp_path)
    write(one, "rows-1/a.csv")
    write(other, "rows-2/a.csv")
    one.remove_others(["rows-1/a.csv"])
    other.remove_others(["rows-2/a.csv"])
    assert {"rows-1/a.csv", "rows-2/a.csv"} <= files(tmp_path)
    BackupFolder(tmp_path).remove_others([])
    assert files(tmp_path) == set()
