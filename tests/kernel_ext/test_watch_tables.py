"""What is told of watches."""

from dataclasses import replace

from contracts.envelopes import AT
from postroom.grid_text import plain
from postroom.watch_tables import watch_grid
from postroom_runtime.mail.watched import WATCHABLE
from postroom_runtime.mail.watches import Watch

WATCH = Watch(
    id="w-0001",
    session="s-0002",
    into="s-0001",
    events=("run.stopped", "tool.completed"),
    tool=None,
    ttl=600.0,
    expires_at=AT,
    session_name="ann",
    into_name="bea",
    forwarded=3,
)


def test_watches_are_listed_with_what_became_of_their_events() -> None:
    every = replace(WATCH, id="w-0002", events=WATCHABLE, ttl=0.5, forwarded=0)

    assert plain(watch_grid([WATCH, every])) == (
        "id      of   into  events                         for  forwarded  dropped\n"
        "w-0001  ann  bea   run.stopped, tool.completed  600 s          3        0\n"
        "w-0002  ann  bea   all events                   0.5 s          0        0"
    )


def test_a_glob_and_a_refusal_are_shown_where_there_are_some() -> None:
    dropped = replace(WATCH, tool="deploy_*", dropped=2, why_dropped="mailbox of bea is full")
    shown = plain(watch_grid([dropped]), 200)

    assert "deploy_*" in shown
    assert "mailbox of bea is full" in shown


def test_no_watches_say_how_to_begin_one() -> None:
    assert plain(watch_grid([])) == ("No watch is under way. Begin one: %watch NAME --into=OTHER")


def test_a_watch_shows_itself_in_one_line() -> None:
    assert repr(WATCH) == (
        "w-0001: ann → bea (run.stopped, tool.completed; for 600 s; 3 forwarded)"
    )
    noted = replace(WATCH, tool="deploy_*", forwarded=0, note="waits: bea is paused")
    assert str(noted) == (
        "w-0001: ann → bea (run.stopped, tool.completed; tools deploy_*; for 600 s; "
        "waits: bea is paused)"
    )
