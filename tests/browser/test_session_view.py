"""The session view in a real JupyterLab, over a session that does what the cells tell it."""

import json
import time
from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, expect

from browser.lab import AXE, Lab, Notebook

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]


SETUP = """
import asyncio, time
from postroom_widgets.session_view import SessionView
from widgets.fake_sessions import FakeRoom, FakeSession, echo
from widgets.story import Story, gated, now

room = FakeRoom("lab")
s = FakeSession(Story(start=now()), room)
s.answer = echo
view = SessionView(s)
view.show()
"""
GATED = SETUP.replace("Story(start=now())", "gated()").replace(
    "view.show()", "view.show(); s.status = 'running'"
)


class View:
    """The view in the output of a cell."""

    def __init__(self, nb: Notebook, cell: int = 0) -> None:
        self.root = nb.output(cell).locator(".pr")
        self.box = self.root.locator("textarea")
        self.banner = self.root.locator(".banner")
        self.lost = self.root.locator(".lost")

    def send(self, text: str) -> None:
        self.box.fill(text)
        self.box.press("Enter")

    def says(self, text: str) -> Locator:
        return self.root.locator(".say", has_text=text)


@pytest.fixture(autouse=True)
def clean(lab: Lab) -> Iterator[None]:
    lab.errors.clear()
    yield
    # JupyterLab itself complains of its debugger when a kernel restarts.
    assert [error for error in lab.errors if "debugger" not in error] == []


def test_what_is_typed_while_a_cell_awaits_arrives_at_once(lab: Lab) -> None:
    nb = lab.notebook("await.ipynb", [SETUP, "await asyncio.sleep(30)"])
    nb.run(0)
    view = View(nb)
    nb.start(1)
    view.send("are you there?")

    view.says("echo: are you there?").wait_for()
    assert nb.busy(1)
    expect(view.banner).to_be_hidden()
    nb.interrupt()
    nb.wait(1)
    view.send("still there?")
    view.says("echo: still there?").wait_for()
    nb.close()


def test_what_is_typed_while_a_cell_blocks_is_kept_and_arrives_when_it_ends(lab: Lab) -> None:
    nb = lab.notebook("block.ipynb", [SETUP, "time.sleep(5)"])
    nb.run(0)
    view = View(nb)
    nb.start(1)
    view.send("first")
    expect(view.banner).to_contain_text("A cell is running.")
    view.send("second")
    expect(view.lost).to_have_count(2)
    assert nb.busy(1)

    nb.wait(1)
    view.says("echo: first").wait_for()
    view.says("echo: second").wait_for()
    expect(view.lost).to_have_count(0)
    expect(view.banner).to_be_hidden()
    expect(view.root.locator(".mailbox")).to_have_count(2)
    nb.close()


def test_a_reload_in_the_middle_of_a_blocking_cell_loses_nothing_and_sends_nothing_twice(
    lab: Lab,
) -> None:
    nb = lab.notebook("reload.ipynb", [SETUP, "time.sleep(15)"])
    nb.run(0)
    view = View(nb)
    view.send("before")
    view.says("echo: before").wait_for()
    nb.save()
    nb.start(1)
    view.send("sent once")
    expect(view.lost).to_have_count(1)
    view.box.fill("a draft")
    lab.reload()

    nb = lab.open("reload.ipynb", wait=False)
    view = View(nb)
    view.says("echo: sent once").wait_for(timeout=60_000)
    expect(view.box).to_have_value("a draft")
    expect(view.root.locator(".mailbox", has_text="sent once")).to_have_count(1)
    nb.close()


def test_a_refreshed_output_keeps_the_draft_the_caret_and_the_focus(lab: Lab) -> None:
    """JupyterLab draws an updated output anew; whoever types there must not notice."""
    nb = lab.notebook("refresh.ipynb", [SETUP, "1"])
    nb.run(0)
    view = View(nb)
    view.box.fill("half a thought")
    view.box.press("ArrowLeft")
    cells = nb.cells()
    nb.execute("s.story.mail('news'); s.tell(); assert view.refresh()")

    expect(view.root.locator(".mt", has_text="news")).to_have_count(1)
    expect(view.box).to_be_focused()
    lab.page.keyboard.type("dd")
    expect(view.box).to_have_value("half a thoughddt")
    assert nb.cells() == cells
    nb.close()


def test_two_outputs_of_one_view_agree(lab: Lab) -> None:
    nb = lab.notebook("two.ipynb", [SETUP, "view"])
    nb.run(0)
    nb.run(1)
    one, two = View(nb, 0), View(nb, 1)
    one.send("hello")

    one.says("echo: hello").wait_for()
    two.says("echo: hello").wait_for()
    two.box.fill("shared")
    expect(one.box).to_have_value("shared")
    nb.close()


def test_a_restarted_kernel_is_noticed_and_the_text_goes_on_in_the_next_view(lab: Lab) -> None:
    nb = lab.notebook("restarted.ipynb", [SETUP])
    nb.run(0)
    view = View(nb)
    view.send("hello")
    view.says("echo: hello").wait_for()  # live, and not only on its way to be
    view.box.fill("and who approved the")
    nb.restart()

    expect(view.banner).to_have_text(
        "The kernel restarted, so this view is no longer live. "
        "Run %watch rev again. Your text is kept."
    )
    expect(view.box).to_have_value("and who approved the")
    expect(view.root.locator(".btn.solid")).to_be_disabled()
    nb.run(0)
    expect(View(nb).box).to_have_value("and who approved the")
    nb.close()


def test_a_saved_notebook_shows_what_was_there_and_no_error(lab: Lab) -> None:
    """JupyterLab saves no widget, and shows an error where one is missing."""
    nb = lab.notebook("kept.ipynb", [SETUP])
    nb.run(0)
    view, kept = View(nb), nb.output(0).locator(".postroom-kept")
    view.send("hello")
    view.says("echo: hello").wait_for()
    expect(kept).to_be_hidden()
    # No cell runs after this, and still it is kept.
    kept.get_by_text("echo: hello").wait_for(state="attached")
    nb.save()
    nb.close()

    nb = lab.open("kept.ipynb", wait=False)
    kept = nb.output(0).locator(".postroom-kept")
    kept.get_by_text("echo: hello").wait_for()
    expect(nb.output(0)).to_contain_text("Run %watch rev to see it live.")
    expect(nb.output(0).get_by_text("Error displaying widget")).to_be_hidden()
    expect(nb.output(0).get_by_text("Loading widget")).to_have_count(0)
    lab.errors[:] = [error for error in lab.errors if "widget model not found" not in error]
    nb.close()


MANY = """
first = s.story.mail("the first")["id"]
for n in range(9_998): s.story.mail(f"letter {n}")
s.story.mail("the last", in_reply_to=first)
s.tell(); await asyncio.sleep(0)
"""
TO_THE_END = """async () => {
  const frame = () => new Promise(then => requestAnimationFrame(() => setTimeout(then)));
  const began = performance.now();
  document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key: "End", bubbles: true }));
  await frame();
  const took = performance.now() - began;
  for (let i = 0; i < 20; i++) await frame();
  return { took, last: document.activeElement.textContent };
}"""


def longest_task(trace: bytes) -> float:
    """Return the milliseconds of work of the page's longest task: others share this machine."""
    events = json.loads(trace)["traceEvents"]
    names = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    tasks = [
        e["tdur"]
        for e in events
        if names.get((e["pid"], e["tid"])) == "CrRendererMain"
        and "RunTask" in e["name"]
        and "tdur" in e
    ]
    assert tasks, {e["name"] for e in events}
    return float(max(tasks)) / 1000


def test_ten_thousand_letters_are_light_and_the_first_and_the_last_are_one_step_apart(
    lab: Lab,
) -> None:
    """The page keeps 250 of them; from the first to the last takes 1.5 s, no task over 0.1 s."""
    nb = lab.notebook("many.ipynb", [SETUP, MANY])
    nb.run(0)
    view = View(nb)
    nb.run(1)
    last = view.root.locator(".mailbox", has_text="the last")
    last.wait_for(timeout=60_000)
    expect(view.root.locator(".stats")).to_contain_text("10000 unread")
    expect(view.root.locator(".mailbox")).to_have_count(250)
    expect(view.root.locator(".older").first).to_have_text("Show 9750 earlier entries")

    last.get_by_role("button", name="m-0001").click()
    view.root.locator(".mailbox:focus", has_text="the first").wait_for(timeout=150_000)
    browser = lab.page.context.browser
    assert browser is not None
    browser.start_tracing(page=lab.page, categories=["toplevel", "devtools.timeline"])
    end = view.root.evaluate(TO_THE_END)
    longest = longest_task(browser.stop_tracing())
    assert "the last" in end["last"]
    assert end["took"] < 1500
    assert longest < 100
    nb.close()


def test_a_view_is_worked_by_keys_alone(lab: Lab) -> None:
    """Write, walk the feed, unfold, reply, edit and deny, and no key reaches the notebook."""
    nb = lab.notebook("keys.ipynb", [GATED])
    nb.run(0)
    view, page, cells = View(nb), lab.page, nb.cells()
    press = page.keyboard.press
    view.root.get_by_role("button", name="Approve deploy").wait_for()
    view.box.focus()
    press("Shift+Tab")
    view.root.locator(".feed").focus()
    press("Home")
    expect(view.root.locator(".mailbox").first).to_be_focused()
    press("r")
    expect(view.box).to_be_focused()
    expect(view.root.locator(".rto")).to_contain_text("Reply to you m-0001")
    press("Escape")
    expect(view.root.locator(".rto")).to_be_hidden()
    press("ArrowUp")
    expect(view.box).to_have_value("Also tell me who approved the client change.")

    view.root.locator(".feed").focus()
    for key in ("End", "ArrowUp", "ArrowUp"):
        press(key)
    asks = view.root.locator(".call.asks")
    expect(asks).to_be_focused()
    press("Enter")
    expect(asks.locator("details")).to_have_attribute("open", "")
    for _ in range(4):
        press("Tab")
    expect(view.root.get_by_role("button", name="Edit arguments of deploy")).to_be_focused()
    press("Enter")
    expect(view.root.get_by_role("textbox", name="target")).to_be_focused()
    press("ControlOrMeta+a")
    page.keyboard.type('"canary"')
    press("Enter")
    nb.execute("assert room.answers[-1][:2] == ('approve', 'ap-0001'), room.answers")
    assert nb.cells() == cells
    nb.close()


@pytest.mark.parametrize("width", [1100, 480])
@pytest.mark.parametrize("theme", ["Light", "Dark"])
def test_it_is_readable_for_everybody_in_both_themes_and_at_any_width(
    lab: Lab, theme: str, width: int
) -> None:
    if not AXE.exists():
        pytest.skip("axe-core is not installed: npm install in tests/widgets/js")
    lab.theme("Dark" if theme == "Dark" else "Light")
    nb = lab.notebook(f"axe-{theme}-{width}.ipynb", [GATED])
    nb.run(0)
    view = View(nb)
    view.says("").first.wait_for()
    view.root.get_by_role("button", name="Edit arguments of deploy").click()
    view.root.get_by_role("textbox", name="target").fill("no JSON")
    view.root.evaluate(f"root => root.style.width = '{width}px'")
    time.sleep(0.3)  # the container query has to be laid out before it is measured
    lab.page.evaluate(AXE.read_text("utf-8"))
    found = view.root.evaluate(
        "async root => (await axe.run(root)).violations.map(v => v.id + ': ' + v.nodes.map(n => n.html).join(' '))"
    )
    wide = view.root.evaluate(
        "root => [...root.querySelectorAll('*')].filter(e => e.clientWidth && "
        "e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).overflowX !== 'hidden').map(e => e.className)"
    )

    assert found == []
    assert wide == []
    lab.theme("Light")
    nb.close()
