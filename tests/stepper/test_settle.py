"""What a session at rest takes in without a run (M-53, M-54, M-82, M-83, M-85, M-86)."""

from typing import Any

import pytest

from postroom_runtime.contracts.envelope import CancelCalls, ControlMessage, Pause, Resume, StopRun
from postroom_runtime.contracts.errors import StoreFailed
from postroom_runtime.contracts.session_record import SessionStatus
from postroom_runtime.contracts.turn import EndReason
from postroom_runtime.stepper.resting import settle, unsettled
from postroom_runtime.testing import run_virtual
from stepper.host import FakeHost


def at_rest(*arrivals: str | ControlMessage, **stored: Any) -> FakeHost:
    """A session with this mail unread: words of the owner, or orders."""
    host = FakeHost(stored=stored)
    for each in arrivals:
        if isinstance(each, str):
            host.user(each)
        else:
            host.order(each)
    return host


@pytest.mark.parametrize(
    ("arrivals", "stored", "cursor", "status"),
    [
        ((" ", "\n"), {}, 2, SessionStatus.IDLE),
        ((" ", "hi", " "), {}, 1, SessionStatus.IDLE),
        ((StopRun(), CancelCalls()), {}, 2, SessionStatus.IDLE),
        ((Resume(),), {}, 1, SessionStatus.IDLE),
        ((Pause(),), {}, 1, SessionStatus.PAUSED),
        ((" ", Pause(), "hi"), {}, 2, SessionStatus.PAUSED),
        ((Pause(), Pause()), {}, 1, SessionStatus.PAUSED),
        ((" ",), {"status": SessionStatus.PAUSED}, 1, SessionStatus.PAUSED),
        ((" ",), {"status": SessionStatus.FAILED}, 1, SessionStatus.FAILED),
        ((StopRun(), Resume()), {"status": SessionStatus.PAUSED}, 1, SessionStatus.PAUSED),
    ],
)
def test_silent_mail_moves_the_cursor_without_a_turn_and_a_pause_takes_effect(
    arrivals: tuple[str | ControlMessage, ...],
    stored: dict[str, Any],
    cursor: int,
    status: SessionStatus,
) -> None:
    """M-53, M-54, M-82, M-85."""

    async def main() -> tuple[int, SessionStatus, int]:
        host = at_rest(*arrivals, **stored)
        assert unsettled(host)
        await settle(host)
        return host.state.record.cursor, host.state.record.status, len(host.state.turns)

    assert run_virtual(main()) == (cursor, status, 0)


@pytest.mark.parametrize(
    ("arrivals", "stored"),
    [
        ((), {}),
        (("hi",), {}),
        (("hi", StopRun()), {}),
        ((Resume(),), {"status": SessionStatus.PAUSED}),
        ((Resume(),), {"end_reason": EndReason.STOPPED}),
        ((Resume(),), {"status": SessionStatus.READY}),
    ],
)
def test_what_starts_or_stops_a_run_is_left_to_it(
    arrivals: tuple[str | ControlMessage, ...], stored: dict[str, Any]
) -> None:
    """M-83, M-85, M-93."""

    async def main() -> tuple[bool, int]:
        host = at_rest(*arrivals, **stored)
        waits = unsettled(host)
        head = host.storage.head()
        await settle(host)
        return waits, host.storage.head() - head

    assert run_virtual(main()) == (False, 0)


def test_a_pause_keeps_the_words_before_it_in_a_stored_turn_that_nobody_answered() -> None:
    """M-86, trap 5: unread = [user, user, Pause]."""

    async def main() -> FakeHost:
        host = at_rest("three", "four", Pause(), "five")
        await settle(host)
        return host

    host = run_virtual(main())
    (turn,) = host.state.turns

    assert (turn.text, [mail.seq for mail in turn.mail]) == ("three\n\nfour", [1, 2])
    assert host.state.unanswered
    assert (host.state.record.status, host.state.record.cursor) == (SessionStatus.PAUSED, 3)
    assert host.state.record.end_reason is EndReason.PAUSED
    assert [mail.text for mail in host.state.unread()] == ["five"]
    assert not unsettled(host)


def test_a_pause_does_not_fire_twice() -> None:
    """M-86."""

    async def main() -> list[bool]:
        host = at_rest(Pause())
        seen = []
        for _ in range(2):
            seen.append(unsettled(host))
            await settle(host)
        return seen

    assert run_virtual(main()) == [True, False]


def test_what_could_not_be_stored_is_settled_the_next_time() -> None:
    """M-23."""

    async def main() -> tuple[bool, int]:
        host = at_rest(" ", Pause())
        host.storage.failures = 1
        with pytest.raises(StoreFailed):
            await settle(host)
        waits = unsettled(host)
        await settle(host)
        return waits, host.state.record.cursor

    assert run_virtual(main()) == (True, 2)
