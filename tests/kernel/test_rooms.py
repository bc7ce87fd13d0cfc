"""Rooms in files: which file, who holds it, what comes back, how it is put aside and let go."""

from pathlib import Path

import pytest

from kernel.harness import Kernel, kernel

pytestmark = pytest.mark.kernel


def notebook(folder: Path) -> str:
    return str(folder / "lesson.ipynb")


# ── Which file ──


def test_the_room_stands_beside_the_notebook(tmp_path: Path) -> None:
    with kernel(tmp_path, notebook=notebook(tmp_path)) as lab:
        loaded = lab.good("%load_ext postroom")
        lab.good("%spawn echo --as ann hi\n%wait")
        status = lab.good("%postroom").text

    assert loaded.streams == "postroom: lesson.mail.duckdb, no sessions yet. Help: %postroom help\n"
    assert "room      lesson.mail.duckdb (" in status
    assert (tmp_path / "lesson.mail.duckdb").exists()


def test_the_variable_wins_over_the_notebook(tmp_path: Path) -> None:
    with kernel(tmp_path, notebook=notebook(tmp_path), room=":memory:") as lab:
        loaded = lab.good("%load_ext postroom")

    assert loaded.streams == "postroom: :memory:, no sessions yet. Help: %postroom help\n"
    assert list(tmp_path.glob("*.duckdb")) == []


# ── A restart ──


def test_after_a_restart_all_is_there_and_nothing_runs_by_itself(tmp_path: Path) -> None:
    with kernel(tmp_path, notebook=notebook(tmp_path)) as lab:
        lab.good("%load_ext postroom")
        lab.good("%spawn echo --as ann one\n%wait")
        lab.good("%%agent rev --model echo\nBe brief.")
        lab.good("%spawn rev --as rev two\n%wait")
        lab.good("%close ann")
        lab.good("%spawn echo --as bob three\n%wait")
        # Accepted, and not read any more: the loop does not run between the two.
        lab.good("%send bob four\nimport os; os.environ['X'] = '1'")
        before = lab.good("%mail bob").text

        lab.restart()
        loaded = lab.good("%load_ext postroom")
        listed = lab.good("import asyncio; await asyncio.sleep(0.3)\n%sessions").text
        waited = lab.good("%wait rev")

        assert "2 sessions stored" in loaded.streams
        assert "ready (needs agent rev)" in listed
        assert "closed" not in listed
        assert lab.good("%mail bob").text.replace(", unread", "") == before.replace(", unread", "")
        assert "needs agent rev" in waited.text

        answer = lab.good("%send bob --wait five").shown[-1]["text/plain"]
        assert answer.endswith("five")
        lab.good("%%agent rev --model echo\nBe brief.")
        assert lab.good("%send rev --wait six").shown[-1]["text/plain"] == "echo: six"
        assert "s-0003" in lab.good("%sessions").text


def test_mail_that_waited_for_a_stored_session_is_read_when_its_owner_writes(
    tmp_path: Path,
) -> None:
    with kernel(tmp_path, notebook=notebook(tmp_path)) as lab:
        lab.good("%load_ext postroom")
        lab.good("%%agent rev --model echo\nx\n")
        lab.good("%spawn rev one\n%wait")
        lab.restart()
        lab.good("%load_ext postroom")
        needs = lab.good("%send rev two")
        turns = lab.good("t = %transcript rev\nlen(t)").text
        lab.good("%%agent rev --model echo\nx\n")
        lab.good("%wait rev")

        assert "needs agent rev" in needs.text
        assert turns == "2"
        assert "echo: two" in lab.good("%transcript rev").text


def test_resume_runs_a_stored_session_and_says_so(tmp_path: Path) -> None:
    with kernel(tmp_path, notebook=notebook(tmp_path)) as lab:
        lab.good("%load_ext postroom\n%spawn echo --as bob three")
        lab.good("%wait")
        lab.good("%send bob four\nimport os")
        lab.restart()
        lab.good("%load_ext postroom")

        assert "bob: stored before, it runs here" in lab.good("%resume bob").streams
        lab.good("%wait")
        assert "echo: four" in lab.good("%transcript bob").text


# ── Who holds it ──


def test_a_room_another_kernel_holds_is_refused_in_one_line_and_never_replaced(
    tmp_path: Path,
) -> None:
    with kernel(tmp_path, notebook=notebook(tmp_path)) as first:
        first.good("%load_ext postroom\n%spawn echo --as ann hi")
        pid = first.good("import os; os.getpid()").text
        with kernel(tmp_path, notebook=notebook(tmp_path)) as second:
            refused = second.run("%load_ext postroom")
            lost = second.run("%sessions")
            caught = second.good(
                "import postroom as pr\n"
                "try:\n    %load_ext postroom\nexcept pr.RoomLocked as error:\n    print(error.pid)"
            )
            other = second.good("%postroom open :memory:")
            works = second.good("%spawn echo --as bob hi\n%wait")

        assert refused.ename == "RoomLocked"
        assert refused.traceback.count("\n") == 0
        assert f"process {pid}" in refused.traceback
        assert "%postroom open :memory:" in refused.traceback
        assert lost.ename == "NoRoom"
        assert "%postroom open lesson.mail.duckdb" in lost.evalue
        assert caught.streams == f"{pid}\n"
        assert "postroom: :memory:, no sessions yet" in other.streams
        assert "bob is idle" in works.text
        assert "ann" in first.good("%sessions").text


def test_a_kernel_that_was_killed_leaves_the_room_to_the_next(tmp_path: Path) -> None:
    first = Kernel(tmp_path, notebook=notebook(tmp_path))
    first.good("%load_ext postroom")
    first.good("%spawn echo --as ann hi\n%wait")
    first.kill()

    with kernel(tmp_path, notebook=notebook(tmp_path)) as second:
        assert "1 session stored" in second.good("%load_ext postroom").streams
        assert "echo: hi" in second.good("%transcript ann").text


def test_a_room_is_open_once_in_a_kernel(tmp_path: Path) -> None:
    with kernel(tmp_path, notebook=notebook(tmp_path)) as lab:
        lab.good("%load_ext postroom\nimport postroom as pr")

        assert lab.good("pr.open('lesson.mail.duckdb') is pr.room()").text == "True"
        lab.good("other = pr.open('other.duckdb')")
        opened = lab.good("%postroom open other.duckdb")
        assert "postroom: other.duckdb" in opened.streams
        assert lab.good("pr.room() is other").text == "True"
        lab.good("%postroom open lesson.mail.duckdb")
        assert lab.good("other.closed, pr.room().closed").text == "(True, False)"


# ── Fresh, close, unload ──


def test_fresh_puts_the_file_aside_and_begins_an_empty_one(tmp_path: Path) -> None:
    with kernel(tmp_path, notebook=notebook(tmp_path)) as lab:
        lab.good("%load_ext postroom")
        lab.good("%spawn echo --as ann hi\n%wait")

        said = lab.good("%postroom fresh").streams
        listed = lab.good("%sessions").text
        again = lab.good("%spawn echo --as ann hi\n%wait")
        aside = next(tmp_path.glob("lesson.2*.mail.duckdb"))
        lab.good(f"%postroom open {aside.name}")
        old = lab.good("%transcript ann").text

    assert f"What was in the room is now in {aside.name}." in said
    assert "No sessions yet" in listed
    assert "ann is idle" in again.text
    assert "echo: hi" in old


def test_a_file_that_cannot_be_put_aside_leaves_a_room_open(tmp_path: Path) -> None:
    with kernel(tmp_path, notebook=notebook(tmp_path)) as lab:
        lab.good("%load_ext postroom\nimport os; os.remove('lesson.mail.duckdb')")

        failed = lab.run("%postroom fresh")

        assert failed.ename == "StoreFailed"
        assert "lesson.mail.duckdb could not be put aside" in failed.evalue
        assert failed.traceback.count("\n") == 0
        assert "lesson.mail.duckdb" in lab.good("%postroom").text


def test_a_closed_room_says_how_to_go_on(tmp_path: Path) -> None:
    with kernel(tmp_path, notebook=notebook(tmp_path)) as lab:
        lab.good("%load_ext postroom")
        lab.good("%spawn echo --as ann hi\n%wait")

        closed = lab.good("%postroom close").streams
        lost = lab.run("%send ann hi")
        again = lab.good("%postroom open lesson.mail.duckdb").streams

    assert "Again: %postroom open lesson.mail.duckdb" in closed
    assert lost.ename == "NoRoom"
    assert "1 session stored" in again


def test_unload_takes_everything_out_and_reload_puts_it_back_once(tmp_path: Path) -> None:
    with kernel(tmp_path, notebook=notebook(tmp_path)) as lab:
        lab.good("%load_ext postroom\nip = get_ipython()")
        lab.good("%spawn echo --as ann hi\n%wait")
        count = (
            "(len(ip.input_transformers_post), len(ip.input_transformers_cleanup), "
            "len(ip.Completer.custom_matchers), len(ip.events.callbacks['post_run_cell']), "
            "'wait' in ip.magics_manager.magics['line'])"
        )
        loaded = lab.good(count).text

        lab.good("%load_ext postroom")
        twice = lab.good(count).text
        lab.good("%reload_ext postroom")
        reloaded = lab.good(count).text
        answer = lab.good("%send ann --wait again").shown[-1]["text/plain"]
        lab.good("%unload_ext postroom")
        unloaded = lab.good(count).text
        gone = lab.run("%sessions")
        room = lab.run("import postroom; postroom.room()")
        back = lab.good("%load_ext postroom").streams

    before, cleanup, matchers, hooks, there = eval(loaded)
    assert twice == reloaded == loaded
    assert there
    assert eval(unloaded) == (before - 1, cleanup - 1, matchers - 1, hooks - 1, False)
    assert answer == "echo: again"
    assert gone.ename == "UsageError"
    assert room.ename == "NoRoom"
    assert "%load_ext postroom first" in room.evalue
    assert "1 session stored" in back


def test_to_load_and_to_wait_in_one_cell_is_an_error_in_one_line(tmp_path: Path) -> None:
    with kernel(tmp_path) as lab:
        for line in ("%wait", "x = %wait", "%send ann --wait hi"):
            for awaits in ("", "import asyncio; await asyncio.sleep(0)\n"):
                failed = lab.run(
                    f"%load_ext postroom\n{awaits}%spawn echo --as ann\n{line}\nprint('never')"
                )
                again = lab.run(f"{line}\nprint('now')")
                lab.good("%unload_ext postroom")

                assert failed.ename == "CannotWait"
                assert "Give %load_ext postroom a cell of its own" in failed.traceback
                assert failed.traceback.count("\n") == 0
                assert "never" not in failed.streams
                assert again.streams == "now\n"


# ── SQL ──


def test_a_query_is_shown_and_kept(tmp_path: Path) -> None:
    with kernel(tmp_path, notebook=notebook(tmp_path)) as lab:
        lab.good("%load_ext postroom")
        lab.good("%spawn echo --as ann hi\n%wait\nn = 1")

        shown = lab.good("%mailsql select seq, id, text from mail where seq = {n}")
        lab.good("%%mailsql -o found\nselect name, status\nfrom sessions\n")
        wrong = lab.run("%mailsql delete from mail")

        assert shown.value is not None
        assert shown.value["text/plain"].splitlines()[1].split() == ["1", "m-0001", "hi"]
        assert "<td" in shown.value["text/html"]
        assert lab.good("found[0], len(found.df())").text == "(('ann', 'idle'), 1)"
        assert wrong.ename == "ConfigError"
        assert wrong.traceback.count("\n") == 0
