"""The file of a room: who may open it, what is in the way, and what to do about it."""

import errno
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import duckdb
import pytest

from postroom_runtime.contracts.errors import ConfigError, RoomLocked, StoreFailed
from postroom_runtime.contracts.session_record import SessionRecord
from postroom_runtime.contracts.turn import Usage
from postroom_runtime.storage import schema
from postroom_runtime.storage.duckdb_storage import DuckDBStorage
from postroom_runtime.storage.repair import repair
from storage.stores import SECONDS, clock, commit, open_sessions, send

TESTS = str(Path(__file__).parents[1])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "room.duckdb"


def python(code: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run a program in a process of its own, with the helpers of these tests."""
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", dedent(code), *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": TESTS},
        check=False,
    )


OPEN = """
import sys
from postroom_runtime.storage.duckdb_storage import DuckDBStorage
try:
    DuckDBStorage(sys.argv[1]).close()
except Exception as refused:
    print(type(refused).__name__, refused)
else:
    print("opened")
"""


def test_a_second_process_is_told_who_holds_the_room_M29(path: Path) -> None:
    """M-29, M-30: a DuckDB room serves one kernel, and says so."""
    store = DuckDBStorage(path)

    second = python(OPEN, path)

    assert second.stdout.startswith(f"RoomLocked {path} is open in process {os.getpid()} on ")
    assert "%postroom open OTHER.duckdb" in second.stdout
    store.close()
    assert python(OPEN, path).stdout == "opened\n"


def test_reading_the_file_while_it_is_open_lets_nobody_in_M29(path: Path) -> None:
    store = DuckDBStorage(path)
    path.read_bytes()
    shutil.copy(path, path.with_suffix(".copy"))

    assert python(OPEN, path).stdout.startswith("RoomLocked")
    store.close()


def test_a_room_is_not_opened_twice_in_one_process(path: Path, tmp_path: Path) -> None:
    store = DuckDBStorage(path)
    link = tmp_path / "link.duckdb"
    link.symlink_to(path)

    for name in (path, str(path), link):
        with pytest.raises(RoomLocked) as caught:
            DuckDBStorage(name)
        assert caught.value.pid == os.getpid()
    open_sessions(store, "s-0001")
    store.close()
    DuckDBStorage(link).close()


def test_a_killed_process_leaves_no_lock_behind(path: Path) -> None:
    killed = python(
        """
        import os, signal, sys
        from postroom_runtime.storage.duckdb_storage import DuckDBStorage
        store = DuckDBStorage(sys.argv[1])
        os.kill(os.getpid(), signal.SIGKILL)
        """,
        path,
    )

    assert killed.returncode == -signal.SIGKILL
    assert Path(f"{path}.lock").exists()
    DuckDBStorage(path).close()


def test_a_closed_room_leaves_nothing_but_its_file(path: Path, tmp_path: Path) -> None:
    store = DuckDBStorage(path)
    open_sessions(store, "s-0001")

    store.close()

    assert [each.name for each in tmp_path.iterdir()] == ["room.duckdb"]


def test_another_program_that_has_the_database_open_is_named(path: Path) -> None:
    DuckDBStorage(path).close()
    holder = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import duckdb, sys; c = duckdb.connect(sys.argv[1]); print('open', flush=True); input()",
            str(path),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "open\n"

    with pytest.raises(RoomLocked) as caught:
        DuckDBStorage(path)

    assert caught.value.pid == holder.pid
    holder.communicate("\n")
    DuckDBStorage(path).close()


def test_the_interpreters_end_closes_a_forgotten_room(path: Path) -> None:
    ended = python(
        """
        import sys
        from storage.stores import mail, open_sessions
        from postroom_runtime.storage.duckdb_storage import DuckDBStorage
        store = DuckDBStorage(sys.argv[1])
        open_sessions(store, "s-0001", max_unread=None)
        store.accept([mail() for _ in range(3000)])  # and nobody waits
        """,
        path,
    )

    assert (ended.returncode, ended.stderr) == (0, "")
    assert not Path(f"{path}.lock").exists()
    store = DuckDBStorage(path)
    assert len(store.fetch({"s-0001": 0})["s-0001"]) == 3000
    store.close()


def test_a_forked_child_can_neither_use_nor_hold_nor_harm_the_room(path: Path) -> None:
    ended = python(
        """
        import os, sys
        from storage.stores import mail, open_sessions, send
        from postroom_runtime.storage.duckdb_storage import DuckDBStorage
        import warnings; warnings.simplefilter("ignore", DeprecationWarning)  # of fork, in threads
        store = DuckDBStorage(sys.argv[1])
        open_sessions(store, "s-0001")
        ready, go = os.pipe(), os.pipe()
        if os.fork() == 0:
            try:
                send(store)
            except Exception as refused:
                os.write(ready[1], str(refused).encode())
            store.close()
            os.read(go[0], 1)
            sys.exit()  # runs what Python runs at its end, in the child too
        print(os.read(ready[0], 1000).decode())
        print(send(store).seq)
        store.close()
        print(DuckDBStorage(sys.argv[1]).head())  # though the child still lives
        os.write(go[1], b"!")
        print(os.wait()[1])
        """,
        path,
    )

    assert ended.stderr == ""
    refusal, *rest = ended.stdout.splitlines()
    assert "belongs to the process that this one was forked from" in refusal
    assert rest == ["1", "2", "0"]


# ── what is in the way ──


def test_a_missing_folder_a_folder_and_no_name_are_wrong_paths(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"there is no folder .*nowhere.*Make it first"):
        DuckDBStorage(tmp_path / "nowhere" / "room.duckdb")
    with pytest.raises(ConfigError, match=r"is a folder, and a room is a file.*lab\.mail\.duckdb"):
        DuckDBStorage(tmp_path)
    for name in (":memory:", ""):
        with pytest.raises(ConfigError, match="is no file for a room"):
            DuckDBStorage(name)
    assert list(tmp_path.iterdir()) == []


def test_what_is_no_database_is_left_as_it_was(path: Path) -> None:
    path.write_text("x" * 10_000)

    with pytest.raises(StoreFailed, match=r"it is no DuckDB file\. Choose another path"):
        DuckDBStorage(path)

    assert path.read_text() == "x" * 10_000
    assert not Path(f"{path}.lock").exists()


@pytest.mark.parametrize("tables", ["CREATE TABLE sales(n INT)", "CREATE TABLE meta(k INT)"])
def test_a_database_of_something_else_is_left_as_it_was(path: Path, tables: str) -> None:
    with duckdb.connect(str(path)) as other:
        other.execute(tables)
    before = path.read_bytes()

    with pytest.raises(StoreFailed, match=r"a database, but no room: it holds (sales|meta)"):
        DuckDBStorage(path)

    assert path.read_bytes() == before


def test_a_newer_room_is_refused_by_both_versions_and_the_remedy(path: Path) -> None:
    DuckDBStorage(path).close()
    with duckdb.connect(str(path)) as newer:
        newer.execute("UPDATE meta SET v = '7' WHERE k = 'schema_version'")

    with pytest.raises(StoreFailed, match=r"format 7, .*up to 1\. Upgrade with: pip install"):
        DuckDBStorage(path)


def test_an_older_room_is_copied_and_brought_up_to_date(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = DuckDBStorage(path, clock())
    open_sessions(store, "s-0001")
    send(store, id="job")
    store.close()
    monkeypatch.setattr(schema, "SCHEMA_VERSION", 3)
    monkeypatch.setattr(
        schema,
        "MIGRATIONS",
        {
            1: ["CREATE TABLE IF NOT EXISTS steps(n INT)", "INSERT INTO steps VALUES (1)"],
            2: ["INSERT INTO steps VALUES (2)"],
        },
    )

    store = DuckDBStorage(path)

    assert store.sql("SELECT n FROM steps ORDER BY n").fetchall() == [(1,), (2,)]
    assert store.sql("SELECT v FROM meta WHERE k = 'schema_version'").fetchall() == [("3",)]
    assert send(store, id="job").duplicate
    store.close()
    DuckDBStorage(path).close()
    with duckdb.connect(str(tmp_path / "room.duckdb.v1")) as copy:
        assert copy.execute("SELECT v FROM meta WHERE k = 'schema_version'").fetchall() == [("1",)]


def test_views_of_an_earlier_release_are_renewed(path: Path) -> None:
    DuckDBStorage(path).close()
    with duckdb.connect(str(path)) as earlier:
        earlier.execute("CREATE OR REPLACE VIEW mail AS SELECT 1 AS old")
        earlier.execute("UPDATE meta SET v = 'old' WHERE k = 'views'")

    store = DuckDBStorage(path)

    assert store.sql("FROM mail").columns[0] == "session"
    store.close()


def test_a_room_from_before_costs_were_stored_opens_and_has_the_column(path: Path) -> None:
    DuckDBStorage(path).close()
    row = (
        '{"v":1,"id":"s-0001","name":"ann","agent":"echo","version":1,'
        '"usage":{"requests":3,"input_tokens":40,"output_tokens":7}}'
    )
    with duckdb.connect(str(path)) as earlier:
        earlier.execute(
            "INSERT INTO journal VALUES (1, 'session', 's-0001', 1, 'ann', 0, '2030-01-01', ?)",
            [row],
        )
        earlier.execute(
            "CREATE OR REPLACE VIEW usage AS SELECT session, name AS session_name, 3 AS requests "
            "FROM (SELECT session, id AS name FROM journal)"
        )
        earlier.execute("UPDATE meta SET v = 'before' WHERE k = 'views'")

    store = DuckDBStorage(path)

    [found] = [row.record for row in store.rows()]
    assert isinstance(found, SessionRecord)
    assert found.usage == Usage(requests=3, input_tokens=40, output_tokens=7)
    assert store.sql("FROM usage").fetchall() == [("s-0001", "ann", "echo", 3, 40, 7, None)]
    store.close()


def test_rows_of_a_kind_from_the_future_are_passed_over_and_kept(path: Path) -> None:
    store = DuckDBStorage(path, clock())
    open_sessions(store, "s-0001")
    store.close()
    with duckdb.connect(str(path)) as newer:
        newer.execute(
            """INSERT INTO journal VALUES (2, 'dream', 's-0001', 0, '', 0, '2030-01-01', '{"v": 9}')"""
        )

    store = DuckDBStorage(path)

    assert [row.n for row in store.rows()] == [1]
    assert store.head() == 2
    assert send(store).seq == 1
    assert [row.n for row in store.rows()] == [1, 3]
    assert store.sql("SELECT count(*) FROM journal WHERE kind = 'dream'").fetchall() == [(1,)]
    store.close()


# ── permissions: as a user whom they bind, for root they do not ──

AS_NOBODY = """
import os, sys, tempfile
from postroom_runtime.storage.duckdb_storage import DuckDBStorage
with tempfile.TemporaryDirectory() as own:  # loads what nobody might not be allowed to load
    DuckDBStorage(os.path.join(own, "room.duckdb")).close()
os.setgroups([]); os.setgid(65534); os.setuid(65534)
"""


@pytest.fixture
def lent() -> Iterator[Path]:
    """A folder that the user nobody can reach; skips where that user cannot be had."""
    if os.geteuid() != 0:
        pytest.skip("needs root, to become a user whom file permissions bind")
    with tempfile.TemporaryDirectory() as folder:  # pytest's own folders are root's alone
        Path(folder).chmod(0o755)
        yield Path(folder)


def test_a_folder_that_lets_nothing_be_written_is_said_at_once(lent: Path) -> None:
    refused = python(AS_NOBODY + OPEN, lent / "room.duckdb")

    assert refused.stdout.startswith("StoreFailed ")
    assert "lock" in refused.stdout
    assert "Permission denied" in refused.stdout
    assert "Choose a folder you may write to, or :memory:." in refused.stdout


def test_a_file_that_may_only_be_read_is_said_at_once(lent: Path) -> None:
    path = lent / "room.duckdb"
    DuckDBStorage(path).close()
    path.chmod(0o444)
    lent.chmod(0o777)

    refused = python(AS_NOBODY + OPEN, path)

    assert refused.stdout.startswith("StoreFailed ")
    assert "Permission denied" in refused.stdout


def test_a_folder_that_lets_no_log_be_made_is_found_at_opening_not_at_the_first_mail(
    lent: Path,
) -> None:
    path = lent / "room.duckdb"
    DuckDBStorage(path).close()
    path.chmod(0o666)
    Path(f"{path}.lock").touch()
    Path(f"{path}.lock").chmod(0o666)
    lent.chmod(0o755)

    refused = python(AS_NOBODY + OPEN, path)

    assert refused.stdout.startswith("StoreFailed ")
    assert "room.duckdb.wal" in refused.stdout


# ── damage ──


def _leave_a_log(path: Path) -> Path:
    """Make a room whose process died with 40 mails in the write-ahead log."""
    died = python(
        """
        import os, sys
        from storage.stores import open_sessions, send
        from postroom_runtime.storage.duckdb_storage import DuckDBStorage
        store = DuckDBStorage(sys.argv[1])
        open_sessions(store, "s-0001")
        for number in range(40):
            send(store, body="x" * 200, id=f"job-{number}")
        os._exit(0)
        """,
        path,
    )
    assert died.returncode == 0, died.stderr
    return Path(f"{path}.wal")


def test_a_damaged_log_is_reported_with_the_way_out_and_repair_keeps_what_was_before(
    path: Path, tmp_path: Path
) -> None:
    log = _leave_a_log(path)
    damaged = bytearray(log.read_bytes())
    for place in range(int(len(damaged) * 0.7), int(len(damaged) * 0.7) + 64):
        damaged[place] ^= 0xFF
    log.write_bytes(damaged)

    with pytest.raises(StoreFailed, match=r"write-ahead log is damaged .*repair\(path\)"):
        DuckDBStorage(path)
    done = repair(path)

    assert 1 < done.rows < 41
    assert 0 < done.cut < len(damaged)
    assert "are cut off" in str(done)
    assert [Path(each).name for each in done.copies] == [
        "room.duckdb.damaged-1",
        "room.duckdb.wal.damaged-1",
    ]
    assert (tmp_path / "room.duckdb.wal.damaged-1").read_bytes() == damaged
    store = DuckDBStorage(path)
    assert store.head() == done.rows
    assert send(store, id="job-0").duplicate
    assert send(store, id="job-39").seq == done.rows
    store.close()


def test_a_torn_log_opens_with_a_whole_number_of_commits(path: Path) -> None:
    log = _leave_a_log(path)
    whole = log.read_bytes()
    log.write_bytes(whole[: int(len(whole) * 0.6)])

    store = DuckDBStorage(path)

    assert 1 < store.head() < 41
    assert [row.n for row in store.rows()] == [*range(1, store.head() + 1)]
    store.close()


def test_repairing_a_whole_room_changes_nothing(path: Path) -> None:
    store = DuckDBStorage(path, clock())
    open_sessions(store, "s-0001")
    with pytest.raises(RoomLocked):
        repair(path)
    store.close()

    done = repair(path)

    assert (done.rows, done.cut, done.copies) == (1, 0, ())
    assert "nothing was changed" in str(done)


def test_what_is_damaged_beyond_its_log_cannot_be_repaired(path: Path, tmp_path: Path) -> None:
    path.write_text("x" * 10_000)

    with pytest.raises(StoreFailed, match="the damage is not in its log"):
        repair(path)
    with pytest.raises(StoreFailed, match="no such file"):
        repair(tmp_path / "nothing")
    assert path.read_text() == "x" * 10_000


# ── a full disk ──


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of six megabytes; skips where none can be mounted."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", str(disk)],
        capture_output=True,
        check=False,
    )
    if mounted.returncode:
        pytest.skip("needs the right to mount a tmpfs")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def test_a_full_disk_refuses_mail_and_goes_on_when_there_is_room_again(small_disk: Path) -> None:
    path = small_disk / "room.duckdb"
    store = DuckDBStorage(path, clock())
    open_sessions(store, "s-0001", max_unread=None)
    accepted = 0
    refused: list[str] = []
    while len(refused) < 3:
        try:
            receipt = send(store, body="x" * 200_000)
            assert receipt.seq == accepted + 1
            accepted += 1
        except StoreFailed as failed:
            refused.append(str(failed))

    assert accepted > 3
    assert all("Free some space" in each or "cannot be opened" in each for each in refused)
    assert len(store.fetch({"s-0001": 0})["s-0001"]) == accepted
    subprocess.run(["mount", "-o", "remount,size=64m", str(small_disk)], check=True)
    assert send(store, body="small").seq == accepted + 1
    assert commit(store, 1, cursor=1).result(SECONDS).version == 2
    store.close()
    again = DuckDBStorage(path)
    assert [row.n for row in again.rows()] == [*range(1, accepted + 4)]
    again.close()


def test_a_write_that_the_system_refuses_loses_nothing(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where no disk can be filled: the same fault, from DuckDB's mouth."""
    store = DuckDBStorage(path, clock())
    open_sessions(store, "s-0001")
    full = duckdb.TransactionException(f"Could not write file: {os.strerror(errno.ENOSPC)}")
    with monkeypatch.context() as patch:
        patch.setattr(schema, "append", _raising(full))
        with pytest.raises(StoreFailed, match=r"No space left.*Free some space"):
            send(store)

    assert send(store).seq == 1
    store.close()


def _raising(error: Exception):  # type: ignore[no-untyped-def]
    def fail(*_: object) -> None:
        raise error

    return fail


def test_closing_from_several_threads_is_closing_once(path: Path) -> None:
    store = DuckDBStorage(path)
    threads = [threading.Thread(target=store.close) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()

    DuckDBStorage(path).close()
