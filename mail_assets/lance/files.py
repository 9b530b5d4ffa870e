"""Files of a LanceDB table in a folder: find those that are damaged.

LanceDB has no checksums, and takes the lengths of what follows from the bytes of a file: of one
that was overwritten it may ask for any amount of memory. Files never change once they are written.
So the digests of an index's files are kept beside them, and every file ends with LanceDB's mark.
Only files of the newest version count: a killed writer leaves unfinished ones.

Storage like S3 keeps checksums itself: nothing is looked at there.
"""

import json
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from mail_assets.files import digest_file, write_private

#: The last bytes of each file of data, of an index and of a version.
MARK = b"LANC"
MARKED = (".lance", ".idx")

#: The digests of the files of an index, in the folder of the index.
SEAL = "digests.json"


def table_folder(uri: str, name: str) -> Path | None:
    """Return the folder of a table, None where it is on storage like S3."""
    return None if "://" in uri else Path(uri) / f"{name}.lance"


def find_unfinished(folder: Path) -> list[Path]:
    """Return the files that do not end as LanceDB ends them: cut, emptied or overwritten.

    A file that is gone is left to LanceDB, which names it.
    """
    manifest = _newest_manifest(folder)
    if manifest is None:
        return []
    content = manifest.read_bytes()
    if not content.endswith(MARK):
        return [manifest]
    files = [path for path in (folder / "data").glob("*") if path.name.encode() in content]
    files += [file for index in find_indexes(folder) for file in index.iterdir()]
    return [path for path in sorted(files) if path.suffix in MARKED and not _is_finished(path)]


def _newest_manifest(folder: Path) -> Path | None:
    """Return the file of the newest version; names count down, or in older tables up."""
    found = sorted((folder / "_versions").glob("*.manifest"))
    counting_down = [path for path in found if len(path.stem) == 20]
    if counting_down:
        return counting_down[0]
    return max(found, key=lambda path: (len(path.stem), path.stem), default=None)


def find_indexes(folder: Path) -> Iterator[Path]:
    """Yield the folders of the indexes of the newest version."""
    newest = _newest_manifest(folder)
    manifest = newest.read_bytes() if newest else b""
    for index in sorted((folder / "_indices").glob("*")):
        with suppress(ValueError):
            if uuid.UUID(index.name).bytes in manifest:
                yield index


def _is_finished(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            end = file.seek(0, 2)
            file.seek(max(0, end - len(MARK)))
            return file.read() == MARK
    except FileNotFoundError:  # upkeep has deleted it meanwhile
        return True


def seal_indexes(folder: Path) -> None:
    """Keep the digests of the files of each index of the newest version that has none yet."""
    for index in find_indexes(folder):
        if not (index / SEAL).exists():
            digests = {one.name: digest_file(one) for one in sorted(index.iterdir())}
            write_private(index / SEAL, json.dumps(digests, indent=0).encode())


def find_altered(folder: Path) -> list[Path]:
    """Return the files of indexes that are missing, or that are not those that were sealed."""
    altered: list[Path] = []
    for index in find_indexes(folder):
        try:
            digests: dict[str, str] = json.loads((index / SEAL).read_text())
        except OSError:  # none was kept, or by another account
            continue
        except ValueError:
            altered.append(index / SEAL)
            continue
        files = {index / name: digest for name, digest in digests.items()}
        altered += [
            path
            for path, digest in files.items()
            if not path.is_file() or digest_file(path) != digest
        ]
    return altered
