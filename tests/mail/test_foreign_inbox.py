"""Inboxes that are not ours: which will do, and what is made of what they give (A-2…A-7, A-31…A-41)."""

import functools
import logging
import re
import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from mail.foreign import BroadcastInbox, Giving, NoArgument, QueueInbox, RoutedInbox
from mail.people import Office, Person
from postroom_runtime.contracts.config import Agent
from postroom_runtime.contracts.envelope import (
    AgentMessage,
    Control,
    Envelope,
    FromSession,
    FromUser,
    Outgoing,
    Pause,
    UserMessage,
)
from postroom_runtime.contracts.errors import ConfigError
from postroom_runtime.contracts.helper import INHERITED, Helper, helpers_of
from postroom_runtime.contracts.inbox import Inbox, is_inbox
from postroom_runtime.mail.foreign_inbox import ForeignReader, check_reader, texts_of
from postroom_runtime.mail.mailbox import Mailbox
from postroom_runtime.signals.bell import Bell


def warnings_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What was logged, and that it was warnings."""
    assert {record.levelno for record in caplog.records} <= {logging.WARNING}
    return [record.getMessage() for record in caplog.records]


# ── the protocol ──


@pytest.mark.parametrize("inbox", [QueueInbox(), RoutedInbox(), BroadcastInbox(), NoArgument()])
def test_a2_a3_any_object_with_a_reader_is_an_inbox(inbox: Any) -> None:
    """A-2, A-3: no class to inherit from; the check is for the method alone."""
    assert isinstance(inbox, Inbox)
    assert is_inbox(inbox)


@pytest.mark.parametrize("value", ["x", 3, [], object(), print, QueueInbox])
def test_a47_what_has_no_reader_is_refused_where_it_is_given(value: Any) -> None:
    """A-47, A-48: as a ValueError, to the programmer, before anything runs; a class is none either."""
    for give in (lambda: Agent("a", inbox=value), lambda: Helper(inbox=value)):
        with pytest.raises(
            ValueError, match=re.escape("an object with a reader(agent) method")
        ) as e:
            give()
        assert isinstance(e.value, ConfigError)
        assert repr(value) in str(e.value)


def test_a47_a_reader_that_is_no_method_is_refused() -> None:
    class Odd:
        reader = ("one", "two")

    with pytest.raises(ConfigError, match=r"reader\(agent\)"):
        Agent("a", inbox=Odd())  # type: ignore[arg-type]


# ── the reader ──


def test_a35_a_reader_without_a_parameter_is_refused_in_these_words() -> None:
    """A-35: it names the class, the signature found and the fix; nothing was opened to find out."""
    inbox = NoArgument()

    with pytest.raises(TypeError) as refused:
        check_reader(inbox)

    assert str(refused.value) == (
        "mail.foreign.NoArgument.reader() cannot be called the way an agent's loop calls it: "
        "reader(agent), passing the name of the run opening the reader as one positional argument. "
        "Widen the signature in the class body, `def reader(self, agent=None)`, and ignore the name "
        "if it is of no use."
    )
    assert inbox.opened == 0


def _inbox(reader: Callable[..., Any]) -> Any:
    return type("Made", (), {"reader": reader})()


@pytest.mark.parametrize(
    "reader",
    [
        lambda self, who=None: list,
        lambda self, label: list,
        lambda self, *names: list,
        lambda self, who, /, *, more=None: list,
    ],
)
def test_a32_the_name_may_be_called_anything_and_needs_no_default(reader: Any) -> None:
    """A-32: it is given as one positional argument."""
    check_reader(_inbox(reader))


@pytest.mark.parametrize(
    ("reader", "shown"),
    [
        (lambda self: list, "()"),
        (lambda self, **names: list, "(**names)"),
        (lambda self, *, agent=None: list, "(*, agent=None)"),
        (lambda self, agent, more: list, "(agent, more)"),
    ],
)
def test_a35_a_reader_that_cannot_take_it_so_is_refused(reader: Any, shown: str) -> None:
    with pytest.raises(TypeError, match=re.escape(f"Made.reader{shown} cannot be called the way")):
        check_reader(_inbox(reader))


def test_a36_a_reader_whose_signature_cannot_be_read_passes() -> None:
    """A-36: that is no sign of a wrong one, and it works."""

    class Hidden:
        def __init__(self) -> None:
            # A function of C that has no signature to read: returns the drain, whatever it is called.
            self.reader = functools.partial(getattr, self, "no such attribute")

    hidden: Any = Hidden()
    check_reader(hidden)
    hidden.reader = functools.partial(next, iter([lambda: ["hello"]]))
    check_reader(hidden)

    assert ForeignReader(hidden, "rev").drain() == ["hello"]


def test_a4_a31_each_reader_is_opened_once_and_reads_by_itself() -> None:
    """A-4, A-31: two of one object, in one task, both get the message."""
    inbox = BroadcastInbox()
    parent, child = ForeignReader(inbox, "rev"), ForeignReader(inbox, "subagent-writer")

    inbox.send("to all")

    assert inbox.labels == ["rev", "subagent-writer"]
    assert parent.drain() == ["to all"]
    assert child.drain() == ["to all"]
    assert (parent.drain(), child.drain()) == ([], [])


def test_a34_a_host_routes_by_the_name_a_run_goes_by() -> None:
    inbox = RoutedInbox()
    rev, writer = ForeignReader(inbox, "rev"), ForeignReader(inbox, "writer")

    inbox.send("writer", "for the writer")

    assert (rev.drain(), writer.drain()) == ([], ["for the writer"])


def test_a7_eight_threads_feed_one_run_and_nothing_is_lost_or_out_of_order() -> None:
    inbox = QueueInbox()
    reader = ForeignReader(inbox, "rev")
    ready = threading.Barrier(9)

    def feed(who: int) -> None:
        ready.wait()
        for n in range(100):
            inbox.send(f"{who} {n}")

    threads = [threading.Thread(target=feed, args=(who,)) for who in range(8)]
    for thread in threads:
        thread.start()
    ready.wait()
    got: list[str] = []
    while any(thread.is_alive() for thread in threads):
        got += reader.drain()
    got += reader.drain()

    for who in range(8):
        assert [t for t in got if t.startswith(f"{who} ")] == [f"{who} {n}" for n in range(100)]
    assert len(got) == 800


# ── what a drain gives ──


@pytest.mark.parametrize(
    ("given", "texts"),
    [
        ([], []),
        (["one", "two"], ["one", "two"]),
        (("one",), ["one"]),
        (["  \n"], []),
        (["", "one", " \t"], ["one"]),
        (["stop\n"], ["stop"]),
        (["cut \ud83d", "whole \ud83d\ude00"], ["cut \ufffd", "whole \U0001f600"]),
    ],
)
def test_a5_a16_texts_come_in_their_order_and_blank_ones_not_at_all(
    given: Any, texts: list[str]
) -> None:
    """A-5, A-16: nothing is an empty list, and a mixed one keeps the rest."""
    assert texts_of(given) == texts


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ("stop", "a drain has to return a list of texts, not str 'stop'"),
        (None, "a drain has to return a list of texts, not NoneType None"),
        (b"stop", "a drain has to return a list of texts, not bytes b'stop'"),
        ({"text": "stop"}, "a drain has to return a list of texts, not dict {'text': 'stop'}"),
        (["stop", 3], "a drain has to return texts, and one of them is int 3"),
        ([["stop"]], "a drain has to return texts, and one of them is list ['stop']"),
    ],
)
def test_a39_the_wrong_shape_is_refused_once_and_the_reader_asked_no_more(
    given: Any, why: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A-39: a text is refused, not read letter by letter; no part of a wrong list is taken."""
    inbox = Giving(given)
    reader = ForeignReader(inbox, "rev")

    assert [reader.drain() for _ in range(3)] == [[], [], []]
    assert warnings_of(caplog) == [
        f"The inbox of rev failed: TypeError: {why}. The run goes on without it."
    ]
    assert (inbox.drains, reader.works) == (1, False)


def test_a39_a_drain_that_has_to_be_awaited_is_refused_like_any_other_shape(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A-9: it is a plain function also where everything else is async."""

    async def drain() -> list[str]:
        return ["stop"]

    assert ForeignReader(Giving(drain), "rev").drain() == []
    [told] = warnings_of(caplog)
    assert "not coroutine" in told


def test_a38_a_drain_that_raises_is_told_of_once_and_asked_no_more(
    caplog: pytest.LogCaptureFixture,
) -> None:
    inbox = Giving(RuntimeError("the queue is gone"))
    reader = ForeignReader(inbox, "rev")

    assert (reader.drain(), reader.drain()) == ([], [])
    assert warnings_of(caplog) == [
        "The inbox of rev failed: RuntimeError: the queue is gone. The run goes on without it."
    ]
    assert caplog.records[0].exc_info is not None  # where, for whoever wrote it
    assert inbox.drains == 1


def test_a38_what_is_not_an_error_of_the_inbox_goes_through() -> None:
    """Whoever interrupts the kernel during a drain means the kernel."""
    reader = ForeignReader(Giving(KeyboardInterrupt()), "rev")

    with pytest.raises(KeyboardInterrupt):
        reader.drain()


@pytest.mark.parametrize(
    ("reader", "why"),
    [
        (lambda self, agent: 1 / 0, "ZeroDivisionError: division by zero"),
        (
            lambda self, agent: ["stop"],
            "TypeError: reader(agent) has to return a function, not list ['stop']",
        ),
    ],
)
def test_a37_a_reader_that_cannot_be_opened_is_told_of_once(
    reader: Any, why: str, caplog: pytest.LogCaptureFixture
) -> None:
    opened = ForeignReader(_inbox(reader), "rev")

    assert (opened.works, opened.drain()) == (False, [])
    assert warnings_of(caplog) == [
        f"The inbox of rev could not open a reader: {why}. The run goes on without one."
    ]


@pytest.mark.parametrize(("took", "told"), [(0.04, 0), (0.2, 1)])
def test_a6_a_drain_that_blocks_the_loop_is_told_of_once(
    took: float, told: int, caplog: pytest.LogCaptureFixture
) -> None:
    now = 0.0

    def slow() -> list[str]:
        nonlocal now
        now += took
        return ["late"]

    reader = ForeignReader(Giving(slow), "rev", clock=lambda: now)

    assert [reader.drain() for _ in range(3)] == [["late"]] * 3
    words = (
        "Draining the inbox of rev took 200 ms, on the loop that runs everything here. "
        "A drain must not block: keep the messages ready, and let another thread fetch them."
    )
    assert warnings_of(caplog) == [words][:told]


# ── helpers ──


def test_a43_a44_a_helper_s_inbox_is_read_by_membership() -> None:
    """A-43, A-44: a key that is not there inherits; one that is None turns it off."""
    inbox = QueueInbox()
    found = helpers_of(
        {
            "a": Helper(),
            "b": Helper(inbox=None),
            "c": Helper(inbox=inbox),
            "d": {},
            "e": {"inbox": None},
            "f": {"inbox": inbox, "bind": {"token": 1}},
        }
    )

    assert [helper.inbox for helper in found.values()] == [
        INHERITED,
        None,
        inbox,
        INHERITED,
        None,
        inbox,
    ]
    assert found["f"].bind == {"token": 1}
    assert helpers_of(["a"]) == {"a": Helper()}
    assert repr(Helper()) == "Helper(inbox=INHERITED, bind={}, tools=None)"


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"inbx": None}, "names 'inbx'; a helper has inbox, bind, tools"),
        ("x", "give pr.Helper(…), or a dict of its fields"),
        (None, "give pr.Helper(…), or a dict of its fields"),
        ({"inbox": "x"}, "Helper(inbox='x') will not do"),
        ({"tools": "x"}, "Helper(tools='x') will not do"),
        ({"bind": 3}, "Helper(bind=3) will not do"),
    ],
)
def test_a43_a48_a_helper_that_will_not_do_is_refused_where_it_is_given(
    spec: Any, why: str
) -> None:
    """A-43, A-47, A-48: not when a model first calls it."""
    with pytest.raises(ConfigError, match=re.escape(why)):
        Agent("a", helpers={"writer": spec})


# ── a mailbox of ours as somebody's inbox ──


class Box:
    """The mailbox of one session, in a room where others write to it."""

    def __init__(self) -> None:
        self.office = Office()
        self.rev = self.office.person("rev")
        self.mailbox = Mailbox(self.rev.id, self.office.storage, Bell(), self.shown)

    @staticmethod
    def shown(unread: Sequence[Envelope]) -> list[Envelope]:
        return [envelope for envelope in unread if envelope.text != "hidden"]

    def put(self, *texts: str) -> None:
        for text in texts:
            self.mailbox.send(
                Outgoing(session=self.rev.id, sender=FromUser(), body=UserMessage(text))
            ).result()

    def letter(self, by: Person, text: str) -> None:
        self.mailbox.send(
            Outgoing(
                session=self.rev.id,
                sender=FromSession(by.id, by.agent),
                body=AgentMessage(text),
                hops=1,
            )
        ).result()


def test_a2_a21_a_mailbox_is_an_inbox_that_gives_texts_and_nothing_else() -> None:
    """A-2, A-21: no sender, no address; whoever wrote it."""
    box = Box()
    box.put("check staging")
    box.letter(box.office.person("writer"), "done with it")
    check_reader(box.mailbox)

    drain = box.mailbox.reader("stager")

    assert isinstance(box.mailbox, Inbox)
    assert drain() == ["check staging", "done with it"]
    assert drain() == []


def test_a5_a31_each_reader_of_a_mailbox_has_its_own_cursor_and_moves_no_other() -> None:
    """A-5, A-31: a fresh one begins with what the session has not read, and leaves it unread."""
    box = Box()
    box.put("one")
    first = box.mailbox.reader("stager")
    assert first() == ["one"]
    box.put("two")
    second = box.mailbox.reader()

    assert (first(), second()) == (["two"], ["one", "two"])
    assert box.office.storage.records()[box.rev.id].cursor == 0
    assert [e.text for e in box.office.mail(box.rev)] == ["one", "two"]


@pytest.mark.parametrize("label", ["subagent", "subagent-writer"])
def test_a5_a_delegate_s_reader_begins_where_the_mailbox_ends(label: str) -> None:
    """A-5: or every one of them would read again what was said before it was there."""
    box = Box()
    box.put("for the parent")
    delegate, named = box.mailbox.reader(label), box.mailbox.reader("subagents-boss")
    box.put("for all")

    assert delegate() == ["for all"]
    assert named() == ["for the parent", "for all"]


def test_a16_orders_blank_mail_and_what_no_model_reads_are_passed_over() -> None:
    box = Box()
    drain = box.mailbox.reader()
    box.put(" \n", "hidden")
    box.mailbox.send(
        Outgoing(session=box.rev.id, sender=FromUser(), body=Control(Pause()))
    ).result()
    assert drain() == []
    box.put("go on")
    assert drain() == ["go on"]


def test_a7_a_mailbox_is_drained_in_one_thread_while_eight_others_write() -> None:
    box = Box()
    drain, ready = box.mailbox.reader("stager"), threading.Barrier(9)

    def write(who: int) -> None:
        ready.wait()
        for n in range(25):
            box.put(f"{who} {n}")

    threads = [threading.Thread(target=write, args=(who,)) for who in range(8)]
    for thread in threads:
        thread.start()
    ready.wait()
    got: list[str] = []
    while any(thread.is_alive() for thread in threads):
        got += drain()
    got += drain()

    assert got == [e.text for e in box.office.mail(box.rev)]
    assert len(got) == 200
