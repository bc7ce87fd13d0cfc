"""Calls that outlive their turn, in a real JupyterLab: bars, buttons, interrupts, approvals, a pause."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, expect

from browser.lab import Lab, Notebook

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]

SETUP = '''
import asyncio
import postroom as pr

async def bisect(good: str, steps: int = 8) -> str:
    """Look for the commit that broke it."""
    for step in range(1, 6):
        pr.progress(step, steps, f"{24 - step} commits left")
        await asyncio.sleep(0.2)
    await asyncio.sleep(600)
    return "found"

async def search(query: str) -> str:
    """Search the docs."""
    await asyncio.sleep(3)
    return f"3 pages about {query}"

def deploy(target: str, version: str = "v2.8.0") -> str:
    """Put a version somewhere."""
    return f"{version} is on {target}"

@pr.script
def worker(turn):
    letter = turn.mail[0]
    if letter.sender.kind != "user":
        return f"read: {turn.text.splitlines()[-1]}"
    if "bisect" in turn.text:
        yield pr.call("bisect", good="v2.8.0")
        return "bisect goes on"
    if "search" in turn.text:
        yield pr.call("search", query="idle timeout")
        return f"I read: {turn.text}"
    if "deploy" in turn.text:
        yield [pr.call("deploy", target="staging"), pr.call("deploy", target="production")]
        return "both asked for"
    return f"echo: {turn.text}"

pr.room().define(pr.Agent("worker", model=worker, tools=[bisect, search, deploy], policy=pr.Policy(
    rules=(
        pr.Rule(tool="bisect", disposition=pr.RunAsync(attach_seconds=1)),
        pr.Rule(tool="deploy", disposition=pr.Defer(reason="touches what people use")),
    ),
)));
'''


@pytest.fixture(autouse=True)
def clean(lab: Lab) -> Iterator[None]:
    lab.errors.clear()
    yield
    # JupyterLab asks for a kernel that was shut down, and for a favicon.
    foreign = ("404", "favicon", "Kernel", "Canceled", "disposed", "WebSocket")
    assert [e for e in lab.errors if not any(word in e for word in foreign)] == []


def opened(lab: Lab, name: str, *cells: str) -> tuple[Notebook, Locator]:
    """Open a notebook with a worker called rev; return it and the view of rev. Cells go on at 3."""
    nb = lab.notebook(name, ["%load_ext postroom", SETUP, "%spawn worker --as rev", *cells])
    for cell in range(3):
        nb.run(cell)
    return nb, nb.output(2).locator("section.pr")


def say(view: Locator, text: str, button: str = "Send") -> None:
    view.locator("textarea").fill(text)
    view.get_by_role("button", name=button, exact=True).click()


def press(view: Locator, name: str, nth: int = 0) -> None:
    view.get_by_role("button", name=name).nth(nth).click()


def feed(view: Locator, text: str) -> Locator:
    return view.get_by_role("log").get_by_text(text).first


def status(view: Locator) -> Locator:
    return view.locator("header [role=status]")


def shots(lab: Lab, view: Locator, name: str) -> None:
    """Keep pictures in both themes and two widths where POSTROOM_SHOTS names a folder."""
    if not (folder := os.environ.get("POSTROOM_SHOTS")):
        return
    lab.page.set_viewport_size({"width": 2000, "height": 1000})
    for theme in ("Dark", "Light"):
        lab.theme(theme)
        for width in (1100, 480):
            view.evaluate(f"root => root.style.width = '{width}px'")
            view.screenshot(path=str(Path(folder) / f"{name}-{theme.lower()}-{width}.png"))
    view.evaluate("root => root.style.width = ''")
    lab.page.set_viewport_size({"width": 1400, "height": 1000})


def test_a_slow_call_shows_how_far_it_is_and_is_cancelled_where_it_stands(lab: Lab) -> None:
    """M-2, M-59, M-84."""
    nb, view = opened(lab, "bisect.ipynb", "%wait rev")
    nb.start(3)
    say(view, "bisect it")
    bar = view.locator(".call [role=progressbar]")
    expect(bar).to_have_attribute("aria-valuenow", "63")
    expect(view.locator(".call .prog")).to_contain_text("5 of 8 · 19 commits left")
    expect(feed(view, "placeholder: still running after 1s")).to_be_visible()
    expect(status(view)).to_have_text("waiting · 1 call")
    expect(view.locator(".strip")).to_contain_text("bisect63 %")
    press(view, "Show")
    expect(view.locator(".call").first).to_be_focused()
    shots(lab, view, "bar")

    press(view, "Cancel bisect")
    expect(view.locator(".call .stt")).to_have_text("cancelled")
    expect(feed(view, "cancelled call of")).to_be_visible()
    expect(view.locator(".strip")).to_be_hidden()
    nb.wait(3)
    expect(status(view)).to_have_text("idle")
    nb.close()


def test_an_interrupt_from_the_send_box_detaches_and_the_result_comes_as_mail(lab: Lab) -> None:
    """M-62, M-75."""
    nb, view = opened(lab, "interrupt.ipynb", "%wait rev")
    nb.start(3)
    say(view, "search for it")
    expect(view.locator(".call .stt")).to_have_text("running")
    say(view, "Never mind the docs.", "Send as interrupt")
    mark = view.locator(".mark", has_text="Interrupted by you")
    expect(mark).to_contain_text("1 attached call detached, keeps running")
    expect(feed(view, "placeholder: interrupted")).to_be_visible()
    expect(feed(view, "I read: ")).to_be_visible()
    expect(view.locator(".mark + .mailbox").first).to_contain_text("Never mind the docs.")

    expect(view.locator(".call .stt")).to_have_text("completed by mail", timeout=15_000)
    expect(feed(view, "result of the call in")).to_be_visible()
    nb.wait(3)
    shots(lab, view, "interrupt")
    nb.close()


def test_gated_calls_are_approved_and_denied_in_the_view_while_a_cell_waits(lab: Lab) -> None:
    """M-97: the first answer wins; who was too late reads it in the row."""
    nb, view = opened(
        lab,
        "calls_gate.ipynb",
        "%wait rev --for=call_0001\n%wait rev --for=call_0002\n%wait rev",
        "entries = %inbox\nentries",
    )
    nb.start(3)
    say(view, "deploy it")
    expect(view.locator(".call .ask")).to_have_count(2)
    expect(status(view)).to_have_text("idle · 2 calls wait for you")
    expect(view.locator(".strip")).to_contain_text("waiting for you")
    view.get_by_role("button", name="Deny deploy").nth(1).click()
    expect(view.get_by_label("reason")).to_be_focused()
    shots(lab, view, "ask")

    press(view, "Approve deploy")
    expect(feed(view, "approved in a view")).to_be_visible()
    expect(view.get_by_role("article").get_by_text("v2.8.0 is on staging")).to_be_visible()
    view.get_by_label("reason").fill("Not on a Friday.")
    view.get_by_label("reason").press("Enter")
    expect(view.locator(".call .stt").nth(1)).to_have_text("denied")
    expect(feed(view, "denied in a view: Not on a Friday.")).to_be_visible()
    nb.wait(3)
    shots(lab, view, "decided")

    told = nb.run(4)
    assert "ap-0001 approved by view" in told
    assert "ap-0002 denied by view: Not on a Friday." in told
    nb.close()


def test_a_paused_session_keeps_its_mail_and_goes_on_by_a_button(lab: Lab) -> None:
    """M-82, M-83."""
    nb, view = opened(lab, "pause.ipynb", "await asyncio.sleep(60)")
    nb.start(3)
    say(view, "bisect it")
    expect(view.locator(".call [role=progressbar]")).to_be_visible()
    press(view, "Pause rev")
    expect(status(view)).to_have_text("paused · mail is kept")
    expect(view.locator(".call .stt")).to_have_text("running")
    say(view, "are you there?")
    expect(feed(view, "queued, not delivered yet")).to_be_visible()
    expect(view.locator(".mark", has_text="1 unread")).to_contain_text("read after Resume")
    shots(lab, view, "paused")

    press(view, "Resume rev")
    expect(feed(view, "echo: ")).to_be_visible()
    press(view, "Cancel bisect")
    expect(view.locator(".call .stt")).to_have_text("cancelled")
    nb.interrupt()
    nb.wait(3)
    nb.close()
