"""The main job, in real JupyterLab: sessions, mail, the live view, interrupts and a restart."""

import os
import shutil
from pathlib import Path

import nbformat
import pytest
from playwright.sync_api import Locator, expect

from browser.lab import Lab, Notebook

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]

AGENT = '''
import asyncio
import postroom as pr

async def nap(seconds: float) -> str:
    """Sleep a while."""
    await asyncio.sleep(seconds)
    return "slept"

@pr.script
def friend(turn):
    first = turn.mail[0]
    print("a session prints this")
    if first.sender.kind == "session":
        yield pr.call("send-message", to=first.sender.id, text=f"hello {first.sender.agent}")
        return "greeted"
    if first.text.startswith("nap"):
        yield pr.call("nap", seconds=float(first.text.split()[1]))
        return f"awake again: {turn.text or first.text}"
    if first.text.startswith("write"):
        yield pr.call("send-message", to=first.text.split()[1], text="good day")
        return "written"
    return f"you said: {turn.text}"

agent = pr.Agent("friend", model=friend, tools=[nap], mail_scope="all", wake_on=["user", "peer", "tool"])
pr.room().define(agent);
'''


FRAGILE = """
import asyncio
import postroom as pr

@pr.script
async def fragile(turn):
    if 'wait' in turn.text:
        await asyncio.sleep(600)
    raise ValueError('cannot digest')
"""


def view(notebook: Notebook, cell: int, nth: int = 0) -> Locator:
    return notebook.output(cell).locator("section.pr").nth(nth)


def feed(view: Locator, text: str) -> Locator:
    return view.get_by_role("log").get_by_text(text)


def write(view: Locator, text: str) -> None:
    view.locator("textarea").fill(text)
    view.get_by_role("button", name="Send", exact=True).click()


def shots(lab: Lab, name: str) -> None:
    """Keep pictures in both themes where POSTROOM_SHOTS names a folder, to be looked at."""
    if folder := os.environ.get("POSTROOM_SHOTS"):
        for theme in ("Dark", "Light"):
            lab.theme(theme)
            lab.page.screenshot(path=str(Path(folder) / f"{name}-{theme.lower()}.png"))


def test_a_researcher_s_first_hour(lab: Lab) -> None:
    """M-3, M-4, M-15, M-48, M-51, M-91, M-133: one notebook, from the first cell to a restart."""
    lab.errors.clear()
    nb = lab.notebook(
        "first.ipynb",
        [
            "%load_ext postroom",
            AGENT,
            "%spawn friend --as ann\n%spawn friend --as bob",
            "%send ann hello there?",
            "%wait",
            "%send ann nap 10\n%wait ann",
            "import time\ntime.sleep(8)\nprint('cell done')",
            "await asyncio.sleep(60)",
            "%send ann write bob\n%wait\nprint('alive')",
            "%mailsql select session_name, count(*) as mails from mail group by all order by all",
            "%send ann are you still you?\n%wait ann",
            "%transcript ann",
            "%watch ann",
        ],
    )
    assert "first.mail.duckdb" in nb.run(0)
    nb.run(1)
    nb.run(2)
    ann, bob = view(nb, 2, 0), view(nb, 2, 1)
    expect(ann.get_by_text("No mail yet.")).to_be_visible()

    # From a cell. The question mark is text, and prints of sessions reach no cell.
    assert "m-0001 → ann #1" in nb.run(3)
    assert "ann is idle" in nb.run(4)
    expect(feed(ann, "you said: hello there?")).to_be_visible()
    assert not any("a session prints this" in nb.text(i) for i in range(5))

    # From the send box, while a cell awaits.
    nb.start(5)
    expect(ann.get_by_role("status").first).to_contain_text("running")
    write(ann, "typed while a cell awaits")
    expect(feed(ann, "typed while a cell awaits").first).to_be_visible()
    assert nb.busy(5)
    nb.wait(5)
    expect(feed(ann, "awake again: typed while a cell awaits")).to_be_visible()

    # From the send box, while a cell blocks: kept, said to be not delivered, then delivered.
    nb.start(6)
    lab.page.wait_for_timeout(300)
    write(bob, "typed while a cell blocks")
    expect(bob.get_by_text("not delivered yet").first).to_be_visible()
    expect(bob.get_by_text("A cell is running.")).to_be_visible()
    assert nb.busy(6)
    shots(lab, "busy")
    nb.wait(6)
    expect(feed(bob, "you said: typed while a cell blocks")).to_be_visible()
    expect(bob.get_by_text("not delivered yet")).to_have_count(0)

    # A kernel interrupt ends the cell, never the sessions; they write to each other afterwards.
    nb.start(7)
    lab.page.wait_for_timeout(500)
    nb.interrupt()
    nb.wait(7, seconds=10)
    assert "alive" in nb.run(8)
    expect(feed(ann, "hello friend").first).to_be_visible()
    expect(feed(bob, "good day").first).to_be_visible()
    assert "ann" in nb.run(9)
    shots(lab, "letters")

    # A restart: the old view says so, everything is back, nothing ran by itself.
    turns = nb.run(11)
    nb.restart()
    expect(ann.get_by_text("no longer live").first).to_be_visible(timeout=15_000)
    shots(lab, "gone")
    assert "2 sessions" in nb.run(0)
    assert "needs agent friend" in nb.run(10)
    nb.run(1)
    assert turns.partition("\n")[2] in nb.run(11)
    assert "m-" in nb.run(10)
    assert "you said: " in nb.run(11)
    nb.run(12)
    again = view(nb, 12)
    expect(feed(again, "are you still you?").first).to_be_visible()
    write(again, "by the send box again")
    expect(feed(again, "you said: by the send box again")).to_be_visible()

    assert _ours(lab.errors) == []
    nb.close()


def test_a_reload_brings_the_view_back_with_its_draft(lab: Lab) -> None:
    lab.errors.clear()
    nb = lab.notebook("office_reload.ipynb", ["%load_ext postroom", "%spawn echo hello", "%wait"])
    for cell in range(3):
        nb.run(cell)
    expect(feed(view(nb, 1), "echo: hello")).to_be_visible()
    view(nb, 1).locator("textarea").fill("half a thou")
    nb.save()

    lab.reload()
    nb = lab.open("office_reload.ipynb")
    expect(feed(view(nb, 1), "echo: hello")).to_be_visible()
    expect(view(nb, 1).locator("textarea")).to_have_value("half a thou")
    write(view(nb, 1), "and a whole one")
    expect(feed(view(nb, 1), "echo: and a whole one")).to_be_visible()
    assert _ours(lab.errors) == []
    nb.close()


def test_a_crashed_session_is_red_with_its_traceback_and_stop_ends_a_run(lab: Lab) -> None:
    lab.errors.clear()
    nb = lab.notebook(
        "crash.ipynb",
        [
            "%load_ext postroom",
            FRAGILE,
            "%spawn fragile --model fragile bread",
            "%wait",
            "%send fragile wait for me",
        ],
    )
    for cell in range(4):
        nb.run(cell)
    fragile = view(nb, 2)
    expect(fragile.get_by_text("cannot digest").first).to_be_visible()
    expect(fragile.locator(".st.failed")).to_be_visible()
    assert "cannot digest" in nb.text(3)
    shots(lab, "failed")

    nb.run(4)
    expect(fragile.get_by_role("status").first).to_contain_text("running")
    fragile.get_by_role("button", name="Stop fragile").click()
    expect(fragile.get_by_role("status").first).to_contain_text("stopped")
    write(fragile, "<b>bold</b> & <script>alert(1)</script>")
    expect(feed(fragile, "<script>alert(1)</script>").first).to_be_visible()
    assert _ours(lab.errors) == []
    nb.close()


def test_every_cell_of_the_tour_runs(lab: Lab) -> None:
    """The notebook that the README's first command opens."""
    lab.errors.clear()
    tour = Path(__file__).parents[2] / "notebooks" / "01_a_first_letter.ipynb"
    shutil.copy(tour, lab.server.notebooks / tour.name)
    nb = lab.open(tour.name)
    cells = nbformat.read(tour, 4).cells  # type: ignore[no-untyped-call]
    for place, cell in enumerate(cells):
        if cell.cell_type == "code":
            nb.run(place)
    expect(lab.page.locator("[data-mime-type='application/vnd.jupyter.stderr']")).to_have_count(0)
    expect(feed(view(nb, 3), "echo: And the question?")).to_be_visible()
    expect(feed(view(nb, 15, 0), "the answer: ").first).to_be_visible()
    shots(lab, "tour")
    assert _ours(lab.errors) == []
    nb.close()


def _ours(errors: list[str]) -> list[str]:
    # JupyterLab's own complaints: a favicon, a language pack, a kernel it asks for after shutdown.
    foreign = ("404", "favicon", "translations", "WebSocket", "Kernel", "Canceled", "disposed")
    return [error for error in errors if not any(word in error for word in foreign)]
