"""The owner inbox in a real JupyterLab: answers while a cell waits, races, a reload, a restart."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, expect

from browser.lab import Lab, Notebook

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]

SETUP = '''
import postroom as pr

def deploy(target: str, nodes: int = 1) -> str:
    """Put a version somewhere."""
    return f"{nodes} nodes run on {target}"

def restart(service: str) -> str:
    """Restart a service."""
    return f"{service} is back"

@pr.script
def coder(turn):
    if turn.mail[0].sender.kind != "user":
        return f"read: {turn.text}"
    if "break" in turn.text:
        raise RuntimeError("529 overloaded")
    if "deploy" in turn.text:
        yield pr.call("deploy", target="staging", nodes=5)
        return "asked"
    if "both" in turn.text:
        yield [pr.call("deploy", target="staging", nodes=5), pr.call("restart", service="gateway")]
        return "asked"
    return f"echo: {turn.text}"

pr.room().define(pr.Agent("coder", model=coder, tools=[deploy, restart], policy=pr.Policy(
    rules=(
        pr.Rule(tool="deploy", disposition=pr.Defer(reason="touches what people use")),
        pr.Rule(tool="restart", disposition=pr.Defer(reason="drops open connections")),
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
    """Open a notebook with a coder called lead and the inbox; return both. Cells go on at 4."""
    given = ["%load_ext postroom", SETUP, "%spawn coder --as lead", "%inbox"]
    nb = lab.notebook(name, [*given, *cells])
    for cell in range(4):
        nb.run(cell)
    return nb, nb.output(3).locator("section.pr")


def cards(view: Locator) -> Locator:
    return view.locator(".card")


def press(place: Locator, name: str) -> None:
    place.get_by_role("button", name=name).click()


def resolved(view: Locator) -> Locator:
    return view.locator(".old .o")


def shots(lab: Lab, view: Locator, name: str) -> None:
    """Keep pictures in both themes and three widths where POSTROOM_SHOTS names a folder."""
    if not (folder := os.environ.get("POSTROOM_SHOTS")):
        return
    lab.page.set_viewport_size({"width": 2000, "height": 1000})
    for theme in ("Dark", "Light"):
        lab.theme(theme)
        for width in (1400, 900, 480):
            view.evaluate(f"root => root.style.width = '{width}px'")
            view.screenshot(path=str(Path(folder) / f"{name}-{theme.lower()}-{width}.png"))
    view.evaluate("root => root.style.width = ''")
    lab.page.set_viewport_size({"width": 1400, "height": 1000})


def test_a_card_is_approved_with_edited_arguments_while_a_cell_waits(lab: Lab) -> None:
    """M-97, I-37: the call runs with what was typed, and the next card has the focus."""
    nb, view = opened(
        lab, "cards.ipynb", "%send lead both\n%wait lead --for=call_0001\n%wait lead", "%calls"
    )
    expect(view.locator(".empty")).to_contain_text("Nothing waits for you.")
    nb.start(4)
    expect(cards(view)).to_have_count(2)
    expect(view.locator(".badge")).to_have_text("2")
    card = cards(view).filter(has_text="deploy")
    expect(card.locator(".path")).to_contain_text("lead")
    expect(card.locator(".exp")).to_have_text("Expires in 23 h")
    card.get_by_role("textbox", name="nodes").fill("3")
    shots(lab, view, "inbox-edit")
    press(card, "Approve as edited")

    expect(resolved(view)).to_have_text(["approved in a view, arguments edited"])
    expect(cards(view)).to_be_focused()
    nb.wait(4)
    assert "3 nodes run on staging" in nb.run(5)
    nb.close()


def test_a_card_is_denied_by_keys_and_the_agent_reads_why(lab: Lab) -> None:
    nb, view = opened(lab, "inbox_keys.ipynb", "%send lead deploy\n%wait", "%transcript lead")
    nb.run(4)
    card = cards(view)
    card.focus()
    lab.page.keyboard.press("d")
    expect(card.get_by_label("reason")).to_be_focused()
    lab.page.keyboard.type("dd is no reason, a Friday is.")
    lab.page.keyboard.press("Enter")
    expect(resolved(view)).to_have_text(["denied in a view: dd is no reason, a Friday is."])
    nb.execute("await pr.room().wait()")
    assert "a Friday is" in nb.run(5)
    assert nb.cells() == 6  # no key of it reached the notebook
    nb.close()


def test_of_two_views_that_race_the_slower_is_told(lab: Lab) -> None:
    """I-30: both pressed while the kernel was busy; the first that arrives stands."""
    nb, view = opened(
        lab, "race.ipynb", "%send lead deploy\n%wait", "%inbox coder", "import time\ntime.sleep(4)"
    )
    nb.run(4)
    nb.run(5)
    other = nb.output(5).locator("section.pr")
    expect(other.locator("h2")).to_have_text("Inbox of coder")
    expect(cards(other)).to_have_count(1)
    nb.start(6)
    press(cards(view), "Approve")
    press(cards(other), "Deny")
    press(cards(other), "Deny")
    expect(view.locator(".banner")).to_contain_text("A cell is running.")
    nb.wait(6)
    for each in (view, other):
        expect(resolved(each)).to_have_text(["approved in a view"])
    expect(other.locator(".told")).to_contain_text("ap-0001 was already approved by view")
    expect(view.locator(".told")).to_be_hidden()
    shots(lab, other, "inbox-late")
    nb.close()


def test_of_two_tabs_that_race_one_wins_and_the_other_is_told(lab: Lab) -> None:
    """I-29, I-30: one notebook in two pages over one kernel, whose answers come in any order."""
    nb, view = opened(lab, "tabs.ipynb", "%send lead deploy\n%wait", "import time\ntime.sleep(4)")
    nb.run(4)
    nb.save()
    browser = lab.page.context.browser
    assert browser is not None
    tab = Lab(lab.server, browser.new_page(viewport={"width": 1400, "height": 1000}))
    there = tab.open("tabs.ipynb").output(3).locator("section.pr")
    expect(cards(there)).to_have_count(1)
    nb.start(5)
    press(cards(view), "Approve")
    press(cards(there), "Deny")
    press(cards(there), "Deny")
    nb.wait(5)
    expect(resolved(view)).to_have_count(1)
    outcome = resolved(view).inner_text()
    assert outcome in ("approved in a view", "denied in a view")
    expect(resolved(there)).to_have_text([outcome])
    loser, winner = (there, view) if outcome.startswith("approved") else (view, there)
    expect(loser.locator(".told")).to_contain_text(f"already {outcome.split()[0]} by view")
    expect(winner.locator(".told")).to_be_hidden()
    tab.page.close()
    nb.close()


def test_an_open_card_outlives_a_reload_of_the_page(lab: Lab) -> None:
    nb, view = opened(lab, "inbox_reload.ipynb", "%send lead deploy\n%wait", "%inbox")
    nb.run(4)
    nb.save()
    lab.reload()
    nb = lab.open("inbox_reload.ipynb")
    view = nb.output(3).locator("section.pr")
    expect(cards(view)).to_have_count(1)
    press(cards(view), "Approve")
    expect(resolved(view)).to_have_text(["approved in a view"])
    nb.close()


def test_after_a_restart_the_view_says_so_and_a_new_one_answers_the_card(lab: Lab) -> None:
    """M-97, I-1: the question is in the room's file."""
    nb, view = opened(lab, "restart.ipynb", "%send lead deploy\n%wait", "%inbox", "%wait\n%calls")
    nb.run(4)
    expect(cards(view)).to_have_count(1)
    nb.restart()
    expect(view.locator(".banner")).to_contain_text(
        "The kernel restarted. Open cards are kept: run %inbox again to answer them.",
        timeout=15_000,
    )
    expect(view.get_by_role("button", name="Approve")).to_be_disabled()
    shots(lab, view, "inbox-gone")
    for cell in (0, 1, 5):
        nb.run(cell)
    again = nb.output(5).locator("section.pr")
    press(cards(again), "Approve")
    expect(resolved(again)).to_have_text(["approved in a view"])
    assert "5 nodes run on staging" in nb.run(6)
    nb.close()


def test_permissions_failures_and_notices_are_answered_where_they_stand(lab: Lab) -> None:
    """I-37, I-40."""
    nb, view = opened(
        lab,
        "notices.ipynb",
        "%send lead deploy\n%spawn coder --as bad break\n%wait\n"
        'pr.room().notify("coder", "Notes are ready. They are in docs.");',
        "%wait\n%sessions",
    )
    nb.run(4)
    expect(cards(view)).to_have_count(3)
    shots(lab, view, "inbox-all")
    press(cards(view).filter(has_text="deploy"), "Always allow")
    press(view, "This tool, this session")
    expect(resolved(view)).to_have_text(["approved in a view, always: this tool, this session"])
    press(view, "1 standing permission")
    press(view, "Revoke pm-0001")
    expect(view.locator(".permissions")).to_be_hidden()

    press(cards(view).filter(has_text="Notes"), "Discuss")
    about = nb.output(3).locator(".pr-opened .pr.session h2")
    expect(about).to_have_text(re.compile(r"coder-about-\d"))
    failed = cards(view).filter(has_text="bad failed")
    expect(failed).to_contain_text("529 overloaded")
    press(failed, "Close session")
    press(failed, "Close bad")
    press(view, "Mark all read")
    expect(cards(view)).to_have_count(0)
    expect(view.locator(".badge")).to_be_hidden()
    assert "coder-about-" in nb.run(5)
    nb.close()
