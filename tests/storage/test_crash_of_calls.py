"""Kill a kernel whose calls run, end and wait for their owner, again and again (M-62b, M-71, M-73, M-97).

Whatever moment it dies at: no call is final without its mail and no such mail without a final call, each
call ends once, questions and calls agree, what ran is told as orphaned once with its arguments and its
start, and in the end every session comes to rest with a transcript any provider takes.
"""

import os
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from postroom_runtime.contracts.approval import Approval, ApprovalState
from postroom_runtime.contracts.call import Call, CallState
from postroom_runtime.contracts.envelope import (
    ContinuationResult,
    Control,
    Envelope,
    Release,
    ToolCallFinished,
)
from postroom_runtime.contracts.ids import is_inbox_key
from postroom_runtime.contracts.journal import Row
from postroom_runtime.contracts.session_record import SessionRecord, SessionStatus
from postroom_runtime.contracts.turn import Role, Turn
from postroom_runtime.storage.duckdb_storage import DuckDBStorage
from storage.lives_of_calls import ATTACHED, DETACHED, GATED

ROOMS, LIVES = 6, 5
"""A new room now and then keeps the history, and so the checking, short."""

OPEN = (CallState.PENDING, CallState.RUNNING)


class Lives:
    """Processes that live in a room until they are killed."""

    def __init__(self) -> None:
        self._bytes, pipe = os.pipe()
        tests = str(Path(__file__).parents[1])
        script = str(Path(__file__).with_name("lives_of_calls.py"))
        self._starter = subprocess.Popen(
            [sys.executable, "-W", "error", script, str(pipe)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            pass_fds=[pipe],
            env={**os.environ, "PYTHONPATH": os.pathsep.join([tests, *sys.path])},
        )
        os.close(pipe)

    def live_and_die(self, room: Path, seed: str, after: int) -> None:
        """Let a process live in ``room`` and kill it when it has stored the ``after``-th group."""
        process = self._start(room, seed)
        heard = 0
        os.set_blocking(self._bytes, True)
        while heard < after:
            heard += len(os.read(self._bytes, after - heard))
        os.kill(process, signal.SIGKILL)
        assert self._line() == str(-signal.SIGKILL)
        os.set_blocking(self._bytes, False)
        try:
            while os.read(self._bytes, 100_000):
                pass
        except BlockingIOError:
            pass  # nothing is left of that life

    def come_to_rest(self, room: Path) -> None:
        """Let a process bring every session to rest."""
        self._start(room, "end")
        assert self._line() == "0"

    def _start(self, room: Path, seed: str) -> int:
        assert self._starter.stdin is not None
        self._starter.stdin.write(f"{room} {seed}\n")
        self._starter.stdin.flush()
        return int(self._line())

    def _line(self) -> str:
        assert self._starter.stdout is not None
        return self._starter.stdout.readline().strip()

    def end(self) -> None:
        """Let no more be started."""
        self._starter.communicate()
        os.close(self._bytes)


@pytest.fixture
def lives() -> Iterator[Lives]:
    made = Lives()
    yield made
    made.end()


class Journal:
    """What a room's file holds, sorted."""

    def __init__(self, path: Path) -> None:
        store = DuckDBStorage(path)
        try:
            self.rows: list[Row] = list(store.rows())
        finally:
            store.close()
        self.calls: dict[str, list[Call]] = {}
        self.approvals: dict[str, list[Approval]] = {}
        self.turns: dict[str, dict[int, Turn]] = {}
        self.sessions: dict[str, SessionRecord] = {}
        self.mail: list[Envelope] = []
        for row in self.rows:
            match row.record:
                case Call() as call:
                    self.calls.setdefault(call.id, []).append(call)
                case Approval() as approval:
                    self.approvals.setdefault(approval.id, []).append(approval)
                case Turn() as turn:
                    self.turns.setdefault(row.session, {})[turn.index] = turn
                case SessionRecord() as session if not is_inbox_key(session.id):
                    self.sessions[session.id] = session
                case Envelope() as envelope:
                    self.mail.append(envelope)

    def ends(self) -> list[tuple[str, str, str]]:
        """The session, call and state of every envelope that tells of an end."""
        return [
            (each.session, each.body.call, each.body.state)
            for each in self.mail
            if isinstance(each.body, (ToolCallFinished, ContinuationResult))
        ]

    def read(self, session: str) -> list[str]:
        """All that a session's model read: its tool messages and its mail."""
        turns = self.turns.get(session, {}).values()
        return [
            text
            for turn in turns
            for text in (*(message.content for message in turn.results), turn.text)
            if turn.role is Role.USER
        ]

    def open(self) -> dict[str, Call]:
        """The calls that run or wait to run."""
        return {id: all_[-1] for id, all_ in self.calls.items() if all_[-1].state in OPEN}


def check(journal: Journal, died_with: dict[str, Call]) -> None:
    """Check all that must hold whenever a room is opened; ``died_with`` ran when the last life ended."""
    _ends_and_mail(journal)
    _questions(journal)
    _transcripts(journal)
    for id, before in died_with.items():
        orphan = journal.calls[id][-1]
        assert orphan.state is CallState.ORPHANED
        told = str(orphan.result)
        assert str(dict(before.arguments)) in told
        if before.started_at is not None:
            assert f"{before.started_at:%Y-%m-%d %H:%M:%S} UTC" in told
        assert [mail.body.response for mail in journal.mail if mail.id == f"orphan-{id}"] == [told]  # type: ignore[union-attr]


def _ends_and_mail(journal: Journal) -> None:
    final = [
        (call.session, call.id, str(call.state))
        for all_ in journal.calls.values()
        for call in all_
        if call.state.final
    ]
    assert sorted(final) == sorted(journal.ends())
    assert max(Counter(id for _, id, _ in final).values(), default=1) == 1
    for all_ in journal.calls.values():
        assert not any(
            call.state.final for call in all_[:-1]
        )  # nothing is stored of it after its end


def _questions(journal: Journal) -> None:
    answered = {
        each.id: each.body.message
        for each in journal.mail
        if isinstance(each.body, Control) and isinstance(each.body.message, Release)
    }
    tokens = [all_[-1].token for all_ in journal.approvals.values()]
    assert len(set(tokens)) == len(tokens)
    for id, all_ in journal.approvals.items():
        approval, call = all_[-1], journal.calls[all_[-1].call][-1]
        assert [each.state for each in all_[:-1]] == [ApprovalState.PENDING] * (len(all_) - 1)
        assert len(all_) <= 2
        assert call.token == approval.token
        assert (
            call.state
            in {
                ApprovalState.PENDING: {CallState.DEFERRED},
                ApprovalState.APPROVED: {
                    CallState.DEFERRED,
                    CallState.RUNNING,
                    CallState.COMPLETED,
                    CallState.CANCELLED,
                    CallState.ORPHANED,
                },
                ApprovalState.DENIED: {CallState.DEFERRED, CallState.FAILED, CallState.CANCELLED},
                ApprovalState.COMPLETED: {CallState.COMPLETED},
                ApprovalState.CANCELLED: {CallState.CANCELLED},
            }[approval.state]
        )
        told = answered.get(f"answer-{id}")
        if approval.state in (ApprovalState.APPROVED, ApprovalState.DENIED):
            assert told is not None
            assert (told.token, told.decision) == (approval.token, str(approval.state))
        else:
            assert told is None
    asking = {id for id, all_ in journal.calls.items() if all_[-1].state is CallState.DEFERRED}
    assert asking <= {all_[-1].call for all_ in journal.approvals.values()}


def _transcripts(journal: Journal) -> None:
    """Every call is answered once, in the next turn, in order; and no turn is missing."""
    for turns in journal.turns.values():
        assert list(turns) == [*range(1, len(turns) + 1)]
        for index, turn in turns.items():
            after = turns.get(index + 1)
            asked = [each.id for each in turn.calls]
            if after is not None:
                assert [each.call for each in after.results] == asked
            if turn.role is Role.MODEL and after is not None:
                assert after.role is Role.USER


def _at_rest(journal: Journal) -> None:
    assert {session.name for session in journal.sessions.values()} == {ATTACHED, DETACHED, GATED}
    for id, session in journal.sessions.items():
        last = journal.turns[id][max(journal.turns[id])]
        assert (session.status, last.role, last.calls) == (SessionStatus.IDLE, Role.MODEL, ())
        read = "\n".join(journal.read(id))
        for all_ in journal.calls.values():
            if (call := all_[-1]).session != id:
                continue
            assert call.state.final
            if call.state is CallState.COMPLETED:
                assert read.count(f"<<{call.id}>>") == 1  # its result, in one place
            if call.state is CallState.ORPHANED:
                assert read.count(str(dict(call.arguments))) == 1
    assert all(all_[-1].state is not ApprovalState.PENDING for all_ in journal.approvals.values())


@pytest.mark.timeout(300)
def test_thirty_killed_kernels_leave_every_call_and_question_whole_M62b_M71_M73_M97(
    lives: Lives, tmp_path: Path
) -> None:
    chance, orphans, states = random.Random(20261130), 0, Counter[CallState]()
    for number in range(ROOMS):
        room, died_with = tmp_path / f"{number}.duckdb", dict[str, Call]()
        for life in range(LIVES):
            lives.live_and_die(room, f"{number}-{life}", after=chance.randint(1, 80))
            journal = Journal(room)
            check(journal, died_with)
            died_with = journal.open()
            orphans += len(died_with)
        lives.come_to_rest(room)
        journal = Journal(room)
        check(journal, died_with)
        _at_rest(journal)
        states.update(all_[-1].state for all_ in journal.calls.values())
    # It has been about something.
    assert orphans > ROOMS * LIVES / 2
    assert states.keys() >= {CallState.COMPLETED, CallState.CANCELLED, CallState.FAILED}
