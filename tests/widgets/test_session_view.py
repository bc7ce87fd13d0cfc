"""The view as a widget: what it is made of, what it shows where, what it never does."""

import asyncio
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from postroom_runtime.contracts.session_record import SessionStatus
from postroom_runtime.testing import run_virtual
from postroom_widgets.live_view import KEEP_SECONDS
from postroom_widgets.session_view import SNAPSHOT_TEXT, SessionView, open_views
from widgets.fake_sessions import FakeRoom, FakeSession
from widgets.story import Story, review


class Comm:
    """A comm without a kernel: it keeps what is sent."""

    kernel = SimpleNamespace()
    made: ClassVar[list[Any]] = []

    def __init__(self, **opening: Any) -> None:
        self.opening, self.sent = opening, list[Any]()
        self.comm_id = opening.get("comm_id", f"comm-{len(self.made)}")
        self.made.append(self)

    def send(self, data: Any = None, **_: Any) -> None:
        self.sent.append(data)

    def on_msg(self, _: object) -> None: ...

    def close(self, *_: object, **__: object) -> None: ...

    def custom(self, op: str) -> list[Any]:
        sent = [data["content"] for data in self.sent if data["method"] == "custom"]
        return [content for content in sent if content["op"] == op]


@pytest.fixture(autouse=True)
def comms(monkeypatch: pytest.MonkeyPatch) -> "list[Comm]":
    import comm

    monkeypatch.setattr(Comm, "made", [])
    monkeypatch.setattr(comm, "create_comm", Comm)
    return Comm.made


def viewed(main: Callable[[FakeSession], Awaitable[None]], story: Story | None = None) -> None:
    async def run() -> None:
        session = FakeSession(story)
        await main(session)
        for view in open_views():
            view.close()
        for task in tuple(session.room.tasks):
            task.cancel()
        await asyncio.sleep(0)

    run_virtual(run())


def comm_of(view: SessionView) -> Comm:
    found: Comm = view.comm  # type: ignore[attr-defined]
    return found


def test_importing_the_views_imports_no_widget_library() -> None:
    code = (
        "import sys, postroom_widgets.session_view\n"
        "heavy = {'anywidget', 'ipywidgets', 'IPython', 'traitlets', 'duckdb', 'numpy'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert run.stdout.strip() == "[]"


def test_a_view_is_a_widget_and_a_session_view() -> None:
    import anywidget

    async def main(session: FakeSession) -> None:
        view = SessionView(session)

        assert isinstance(view, SessionView)
        assert isinstance(view, anywidget.AnyWidget)
        assert repr(view) == "<SessionView of rev>"

    viewed(main)


Shown = list[tuple[dict[str, str], dict[str, Any]]]


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> Shown:
    """What was displayed: data by media type, and how."""
    import IPython.display

    outputs = Shown()
    monkeypatch.setattr(IPython.display, "display", lambda data, **how: outputs.append((data, how)))
    return outputs


def test_a_view_shows_a_widget_and_beside_it_what_is_kept(shown: Shown) -> None:
    async def main(session: FakeSession) -> None:
        view = SessionView(session)
        view._ipython_display_()

        (widget, _), (kept, how) = shown
        assert set(widget) == {"application/vnd.jupyter.widget-view+json", "text/plain"}
        assert widget["text/plain"] == ""
        assert set(kept) == {"text/html", "text/plain"}
        assert kept["text/plain"].startswith("rev · ")
        assert "Please review the retry change" in kept["text/html"]
        assert f'data-view="{comm_of(view).opening["comm_id"]}"' in kept["text/html"]
        assert how["display_id"] == view.display_id

    viewed(main, review())


def test_the_snapshot_goes_out_with_the_widget_and_is_short() -> None:
    async def main(session: FakeSession) -> None:
        for n in range(60):
            session.story.mail(f"{n} " + "x" * 5000)
        session.tell()
        view = SessionView(session)

        state = comm_of(view).opening["data"]["state"]
        snapshot = state["snapshot"]
        assert len(snapshot["rows"]) == 50
        assert snapshot["earlier"] == 10
        assert max(len(row["text"]) for row in snapshot["rows"]) == SNAPSHOT_TEXT
        assert snapshot["rows"][0]["more"] > 0
        assert snapshot["view"] == comm_of(view).opening["comm_id"]
        assert {"room", "life", "head"} <= set(snapshot)

    viewed(main)


def test_the_snapshot_is_brought_up_to_date_when_the_session_rests() -> None:
    async def main(session: FakeSession) -> None:
        view = SessionView(session)
        await asyncio.sleep(0.1)
        session.status = SessionStatus.RUNNING
        session.story.mail("go")
        session.story.run().heard()
        session.tell()
        await asyncio.sleep(0.5)
        assert view.snapshot["rows"] == []

        session.story.said("done").stopped()
        session.status = SessionStatus.IDLE
        session.tell()
        await asyncio.sleep(2)
        assert [row["key"] for row in view.snapshot["rows"]] == ["m:1", "t:2", "e:7"]

    viewed(main)


def test_a_message_of_the_front_end_hops_to_the_room_from_whatever_thread_it_comes_in() -> None:
    seen = list[int]()

    class Room(FakeRoom):
        def hop(self, fn: Callable[..., object], *args: Any) -> None:
            def spy() -> None:
                seen.append(threading.get_ident())
                fn(*args)

            super().hop(spy)

    async def run() -> None:
        room = Room()
        session = FakeSession(room=room)
        view = SessionView(session)
        await asyncio.sleep(0.1)
        message = {"op": "send", "id": "view-a-0", "text": "hi"}
        other = threading.Thread(target=view._on_msg, args=(view, message, []))
        other.start()
        while other.is_alive():
            await asyncio.sleep(0)
        await asyncio.sleep(0.1)

        assert session.sent == [("hi", False, None)]
        assert set(seen) == {threading.get_ident()}
        assert comm_of(view).custom("ack")[0]["id"] == "view-a-0"
        view.close()
        for task in tuple(room.tasks):
            task.cancel()
        await asyncio.sleep(0)

    run_virtual(run())


def test_messages_that_are_none_are_passed_over() -> None:
    async def main(session: FakeSession) -> None:
        view = SessionView(session)
        for content in (None, "hello", 3, ["op"]):
            view._on_msg(view, content, [])
        await asyncio.sleep(0.1)

    viewed(main)


def test_what_is_saved_is_refreshed_only_when_there_is_news(shown: Shown) -> None:
    async def main(session: FakeSession) -> None:
        view = SessionView(session)
        assert view.refresh() is False
        view.show()
        assert view.refresh() is False
        session.story.mail("hello")
        session.tell()
        assert view.refresh() is True
        assert view.refresh() is False

        kept = shown[1:]
        assert [how["update"] for _, how in kept] == [False, True]
        assert {how["display_id"] for _, how in kept} == {view.display_id}
        assert "hello" in kept[1][0]["text/plain"]

    viewed(main)


def test_what_is_saved_follows_a_session_that_rests_though_no_cell_runs(shown: Shown) -> None:
    async def main(session: FakeSession) -> None:
        view = SessionView(session)
        view.show()
        await asyncio.sleep(0.1)
        for text in ("first", "second", "third"):
            session.story.mail(text)
            session.tell()
            await asyncio.sleep(0.1)
        assert len(shown) == 2
        await asyncio.sleep(KEEP_SECONDS)

        kept, how = shown[-1]
        assert len(shown) == 3
        assert how["update"] is True
        assert "third" in kept["text/plain"]
        session.story.mail("too late")
        session.tell()
        await asyncio.sleep(0.1)
        view.close()
        await asyncio.sleep(KEEP_SECONDS)
        assert len(shown) == 3

    viewed(main)


def test_a_closed_view_is_listed_no_more_and_hears_nothing() -> None:
    async def main(session: FakeSession) -> None:
        one, two = SessionView(session), SessionView(session)
        await asyncio.sleep(0.1)
        assert set(open_views()) == {one, two}
        one.close()
        one.close()
        await asyncio.sleep(0.1)

        assert open_views() == [two]
        assert session.room.tasks

    viewed(main)


class Coder(FakeSession):
    id, name, agent = "s-0003", "coder", "coder"


def test_a_session_is_opened_from_a_view_once_and_ends_with_it() -> None:
    async def main(session: FakeSession) -> None:
        Coder(Story("s-0003"), session.room)
        view = SessionView(session)
        for id, key in (("v-1", "s-0003"), ("v-2", "coder")):
            view._on_msg(view, {"op": "open", "session": key, "id": id}, [])
        await asyncio.sleep(0.1)
        first, second = comm_of(view).custom("ack")
        assert (first["id"], second["id"]) == ("v-1", "v-2")
        assert first["view"] == second["view"]
        (child,) = (each for each in open_views() if each is not view)
        assert repr(child) == "<SessionView of coder>"
        assert child.model_id == first["view"]  # type: ignore[attr-defined]

        view.close()
        assert open_views() == []

    viewed(main)


def test_a_session_that_is_none_cannot_be_opened_and_says_so() -> None:
    async def main(session: FakeSession) -> None:
        view = SessionView(session)
        view._on_msg(view, {"op": "open", "id": "v-1", "session": "s-0404"}, [])
        await asyncio.sleep(0.1)

        (refused,) = comm_of(view).custom("refused")
        assert refused["id"] == "v-1"
        assert "s-0404" in refused["words"]
        assert open_views() == [view]

    viewed(main)
