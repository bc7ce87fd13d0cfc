"""Sessions opened from other views in a real JupyterLab: below them, live, by mouse and by keys."""

import os
from collections.abc import Iterator
from typing import Literal

import pytest
from playwright.sync_api import Locator, expect

from browser.lab import AXE, Lab, Notebook

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]

THEMES: tuple[Literal["Dark", "Light"], ...] = ("Dark", "Light")

SETUP = """
%load_ext postroom
%postroom open :memory:
import asyncio, postroom as pr
from postroom import Agent, call, script

@script
def coder(turn):
    return f"coder heard: {turn.text.splitlines()[-1]}"

@script
def lead(turn):
    text = turn.mail[0].text
    if text == "ask":
        yield call("send-message", to="coder", text="Why is the back-off capped at 30 s?")
        return "asked"
    if text == "help":
        said = yield call("prompt-agent-coder", message="fix it")
        return f"helped: {said}"
    return "ok"

room = pr.room()
room.define(Agent("coder", model=coder))
boss = room.spawn(Agent("lead", model=lead, helpers=["coder"]), name="lead")
room.spawn("coder", name="coder", parent=boss)
"""


@pytest.fixture(autouse=True)
def clean(lab: Lab) -> Iterator[None]:
    lab.errors.clear()
    yield
    foreign = ("404", "favicon", "Kernel", "Canceled", "disposed", "WebSocket", "debugger")
    assert [e for e in lab.errors if not any(word in e for word in foreign)] == []


def opened(lab: Lab, name: str, show: str, *more: str) -> tuple[Notebook, Locator]:
    nb = lab.notebook(name, [SETUP, show, *more])
    nb.run(0)
    nb.run(1)
    return nb, nb.output(1)


def below(out: Locator, name: str) -> Locator:
    return out.locator(f"section[aria-label^='{name}, opened from']")


def shots(lab: Lab, view: Locator, name: str) -> None:
    """Keep pictures in both themes and three widths where POSTROOM_SHOTS names a folder."""
    folder = os.environ.get("POSTROOM_SHOTS")
    if not folder:
        return
    for theme in THEMES:
        lab.theme(theme)
        for width in (1400, 1000, 620):
            lab.page.set_viewport_size({"width": width, "height": 2000})
            lab.page.wait_for_timeout(500)
            view.screenshot(path=f"{folder}/{name}-{theme.lower()}-{width}.png")
    lab.page.set_viewport_size({"width": 1400, "height": 1000})


def test_a_session_that_got_a_letter_is_opened_below_and_written_to(lab: Lab) -> None:
    """M-48, M-133."""
    nb, out = opened(lab, "letter.ipynb", "%watch lead", "await asyncio.sleep(20)")
    cells = nb.cells()
    nb.execute("room.send('lead', 'ask')")
    note = out.locator(".call .hold")
    expect(note).to_contain_text("to coder · delivered in its turn 1")
    expect(out.locator(".end")).to_contain_text("Run ended · final answer · 2 of 10 rounds")
    chip = note.get_by_role("button", name="coder")
    chip.click()

    child = below(out, "coder")
    expect(child.locator("h2")).to_have_text("coder")
    expect(child.locator(".say").first).to_contain_text("coder heard: Why is the back-off")
    nb.start(2)
    child.locator("textarea").fill("and now?")
    child.locator("textarea").press("Enter")
    expect(child.locator(".say").last).to_have_text("coder heard: and now?")
    assert nb.busy(2)
    shots(lab, out, "opened-session")
    lab.page.add_script_tag(path=str(AXE))
    found = lab.page.evaluate(
        """async () => {
          const where = { include: [['.pr-opened'], ['.pr.session']] };
          const { violations } = await axe.run(where, { runOnly: ['wcag2a', 'wcag2aa', 'wcag22aa'] });
          return violations.map(v => v.id + ' ' + v.nodes.map(n => n.html.slice(0, 120)).join(' | '));
        }"""
    )
    assert found == []

    child.locator("textarea").press("d")
    child.locator("textarea").press("Escape")
    expect(child).to_have_count(0)
    expect(chip).to_be_focused()
    lab.page.keyboard.press("Enter")
    expect(child.locator("textarea")).to_have_value("d")
    expect(child.get_by_role("button", name="Close coder")).to_be_focused()
    lab.page.keyboard.press("Enter")
    expect(child).to_have_count(0)
    assert nb.cells() == cells
    nb.interrupt()
    nb.close()


def test_a_helper_that_has_ended_is_opened_to_be_read(lab: Lab) -> None:
    """M-104, M-134."""
    nb, out = opened(lab, "helper.ipynb", "%watch lead")
    nb.execute("room.send('lead', 'help')")
    expect(out.locator(".say").last).to_contain_text("helped: ")
    out.locator(".call .hold button.chip").click()
    child = below(out, "coder-2")
    expect(child.locator("h2")).to_have_text("coder-2")
    expect(child.locator("[role=status]", has_text="closed")).to_have_count(1)
    expect(child.locator(".say")).to_contain_text("coder heard: fix it")
    expect(child.locator("textarea")).to_be_hidden()
    shots(lab, out, "opened-helper")
    out.locator(".call .hold button.chip").click()
    expect(child).to_have_count(0)
    nb.close()


def test_a_switchboard_opens_a_session_and_that_opens_another(lab: Lab) -> None:
    nb, out = opened(lab, "board.ipynb", "%watch --all")
    nb.execute("room.send('lead', 'ask')")
    out.locator(".msg[aria-label*='back-off']").click()
    out.locator(".detail").get_by_role("button", name="Open coder").click()
    child = below(out, "coder")
    expect(child.locator("h2").first).to_have_text("coder")
    child.locator(".mailbox button.chip", has_text="lead").click()
    grandchild = child.locator("section[aria-label^='lead, opened from session coder']")
    expect(grandchild.locator("h2")).to_have_text("lead")
    shots(lab, out, "opened-board")
    grandchild.locator("textarea").press("Escape")
    expect(grandchild).to_have_count(0)
    expect(child).to_have_count(1)
    out.locator(".tree .s", has_text="coder").click()
    out.locator(".tree .chosen").get_by_role("button", name="Open coder").click()
    expect(child).to_have_count(0)
    nb.close()


def test_what_was_opened_says_so_when_the_kernel_is_gone(lab: Lab) -> None:
    nb, out = opened(lab, "gone.ipynb", "%watch lead")
    nb.execute("room.send('lead', 'ask')")
    out.locator(".call .hold").get_by_role("button", name="coder").click()
    child = below(out, "coder")
    child.locator("textarea").fill("hello")
    child.locator("textarea").press("Enter")
    expect(child.locator(".say").last).to_have_text("coder heard: hello")  # live for sure
    nb.restart()
    expect(child.locator(".banner")).to_contain_text("The kernel restarted")
    child.get_by_role("button", name="Close coder").click()
    expect(child).to_have_count(0)
    nb.close()
