"""An S3 server by others: the object gateway of Ceph (RGW).

One monitor, one storage daemon that keeps all in memory, one gateway: 180 MB and 12 seconds.
"""

import subprocess
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from mail_assets_tests.ports import find_free_port
from mail_assets_tests.servers.programs import find_programs, is_listening, run_server
from mail_assets_tests.waits import wait_until

#: The keys of the only user, as `mail_assets_tests.s3` gives them to clients.
KEY = "test"

MEMORY = 2 << 30  # bytes that may be stored

#: One placement group each, one copy: nothing is to survive. No daemon opens an admin socket, whose
#: path is limited to 107 bytes; no version 2 of the protocol, so that one port is enough. We enter
#: the storage daemon into the map: one that has not heard the cluster's id yet is refused, and
#: ends.
SETTINGS = """[global]
fsid = {fsid}
mon host = v1:127.0.0.1:{port}
auth cluster required = none
auth service required = none
auth client required = none
ms bind msgr2 = false
run dir = {folder}
admin socket =
log file = {folder}/$name.log
mon cluster log file = {folder}/cluster.log
mon data = {folder}/mon
osd data = {folder}/osd
osd objectstore = memstore
memstore device bytes = {memory}
osd class load list = *
osd class default list = *
osd class update on start = false
osd crush update on start = false
osd crush chooseleaf type = 0
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 1
osd pool default pgp num = 1
osd pool default pg autoscale mode = off
mon max pg per osd = 1000
mon allow pool size one = true
rgw frontends = beast endpoint=127.0.0.1:{gateway}
"""

PROGRAMS = ("ceph", "ceph-mon", "ceph-osd", "monmaptool", "radosgw", "radosgw-admin")


@contextmanager
def serve_ceph(folder: Path) -> Iterator[str]:
    """Run a gateway over an empty cluster in `folder`; yield its URL."""
    programs = find_programs(*PROGRAMS)
    port, gateway, fsid = find_free_port(), find_free_port(), str(uuid.uuid4())
    settings = folder / "ceph.conf"
    settings.write_text(
        SETTINGS.format(folder=folder, fsid=fsid, port=port, gateway=gateway, memory=MEMORY)
    )
    log = folder / "output.log"

    def succeeds(program: str, *arguments: str, check: bool = False) -> bool:
        command = [programs[program], *arguments]
        with log.open("ab") as output:
            done = subprocess.run(command, stdout=output, stderr=output, check=check)
        return done.returncode == 0

    run = partial(succeeds, check=True)

    def serve(program: str, *arguments: str, at: int | None = None) -> None:
        command = [programs[program], "-c", str(settings), "-f", *arguments]
        stack.enter_context(run_server(command, log, lambda: at is None or is_listening(at)))

    for name in ("mon", "osd"):
        (folder / name).mkdir()
    monitors = str(folder / "monmap")
    run("monmaptool", "--create", "--addv", "a", f"[v1:127.0.0.1:{port}]", "--fsid", fsid, monitors)
    common = ("-c", str(settings))
    with ExitStack() as stack:
        run("ceph-mon", *common, "--id", "a", "--mkfs", "--monmap", monitors)
        serve("ceph-mon", "--id", "a", at=port)
        # it listens before it takes commands
        wait_until(lambda: succeeds("ceph", *common, "mon", "stat"))
        disk = str(uuid.uuid4())
        run("ceph", *common, "osd", "new", disk, "0")
        run("ceph", *common, "osd", "crush", "add", "osd.0", "1", "root=default", "host=here")
        run("ceph-osd", *common, "--id", "0", "--mkfs", "--osd-uuid", disk)
        serve("ceph-osd", "--id", "0")
        serve("radosgw", "-n", "client.gateway", at=gateway)
        keys = ("--access-key", KEY, "--secret-key", KEY)
        run("radosgw-admin", *common, "user", "create", "--uid", KEY, "--display-name", KEY, *keys)
        yield f"http://127.0.0.1:{gateway}"
