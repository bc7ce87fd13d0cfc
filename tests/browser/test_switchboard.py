"""The switchboard in a real JupyterLab, over a room of scripts that write to each other."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, expect

from browser.lab import AXE, Lab, Notebook

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]


SETUP = """
%load_ext postroom
%postroom open :memory:
import asyncio, postroom as pr
from postroom import Agent, call, script

@script
def lead(turn):
    if turn.text.startswith("Go"):
        yield call("send-message", to="rev", text="Please review this.", expects_reply=True)
        yield call("send-message", to="nobody", text="Are you there?")
        return "It is under way."
    return "Noted."

async def run_tests(suite: str) -> str:
    "Run tests."
    await asyncio.sleep(0.3)
    return "231 passed"

@script
def rev(turn):
    first = turn.mail[0]
    if first.text.startswith("Please"):
        yield call("run_tests", suite="fast")
        yield call("send-message", to="lead", text="All green.", in_reply_to=first.id)
        return "done"
    return "ok"

room = pr.room()
boss = room.spawn(Agent("lead", model=lead), name="lead")
room.spawn(Agent("rev", model=rev, tools=[run_tests]), name="rev", parent=boss)
"""
WATCH = "%watch --all"


class Board:
    """The switchboard in the output of a cell."""

    def __init__(self, nb: Notebook, cell: int = 1) -> None:
        self.root = nb.output(cell).locator(".pr")
        self.rows = self.root.locator(".msg")
        self.pane = self.root.locator(".detail")

    def mail(self, words: str) -> Locator:
        return self.root.locator(f".msg[aria-label*='{words}']")

    def chip(self, words: str) -> Locator:
        return self.root.locator(".fchip", has_text=words)

    def button(self, label: str) -> Locator:
        return self.root.locator(f"button[aria-label^='{label}']")


def opened(lab: Lab, name: str, *more: str) -> tuple[Notebook, Board]:
    nb = lab.notebook(name, [SETUP, WATCH, *more])
    nb.run(0)
    nb.run(1)
    return nb, Board(nb)


def went(nb: Notebook, board: Board) -> None:
    nb.execute("room.send('lead', 'Go')")
    board.mail("All green.").wait_for()
    board.mail("It is under way.").wait_for()


@pytest.fixture(autouse=True)
def clean(lab: Lab) -> Iterator[None]:
    lab.errors.clear()
    yield
    assert lab.errors == []


def test_arrows_appear_while_a_cell_awaits(lab: Lab) -> None:
    nb, board = opened(lab, "live.ipynb", "room.send('lead', 'Go')\nawait asyncio.sleep(60)")
    nb.start(2)

    board.mail("Please review this.").wait_for()
    board.mail("run_tests").wait_for()
    board.mail("no session nobody").wait_for()
    board.mail("All green.").wait_for()
    assert nb.busy(2)
    expect(board.root.locator(".tree .nm")).to_have_text(["lead", "rev"])
    nb.interrupt()
    nb.wait(2)
    nb.close()


def test_a_click_opens_the_envelope_and_keys_step_through_time(lab: Lab) -> None:
    nb, board = opened(lab, "step.ipynb")
    went(nb, board)
    board.mail("Please review this.").click()
    expect(board.pane).to_contain_text("Please review this.")
    expect(board.pane).to_contain_text("delivered in turn 1")
    expect(board.pane).to_contain_text("expects reply")
    board.pane.locator(".link").first.click()
    expect(board.pane).to_contain_text("All green.")

    page = lab.page
    page.keyboard.press("Home")
    expect(board.root.locator(".veil")).to_have_count(1)
    at = board.root.locator(".msg.sel")
    first = at.get_attribute("data-key")
    page.keyboard.press("ArrowRight")
    assert at.get_attribute("data-key") != first
    page.keyboard.press("End")
    expect(board.root.locator(".veil")).to_have_count(0)
    page.keyboard.press("d")
    page.keyboard.press("d")
    assert nb.cells() == 2
    nb.close()


def test_kinds_and_sessions_filter_what_is_shown(lab: Lab) -> None:
    nb, board = opened(lab, "filter.ipynb")
    went(nb, board)
    everything = board.rows.count()
    board.chip("calls").click()
    expect(board.mail("run_tests")).to_have_count(0)
    board.chip("calls").click()
    expect(board.rows).to_have_count(everything)
    board.root.locator(".tree .s", has_text="rev").click()
    expect(board.mail("It is under way.")).to_have_count(0)
    expect(board.mail("All green.")).to_have_count(1)
    nb.close()


def test_held_letters_are_let_through_from_the_view(lab: Lab) -> None:
    nb, board = opened(lab, "gate.ipynb")
    board.root.locator("button", has_text="Step mode").click()
    gate = board.root.locator(".gate")
    expect(gate).to_contain_text("nothing waits")
    nb.execute("room.send('lead', 'Go')")
    expect(gate).to_contain_text("1 held next you → lead: Go")
    gate.locator("button").click()
    board.mail("Please review this.").wait_for()
    expect(gate).to_contain_text("lead → rev: Please review this.")
    expect(board.mail("All green.")).to_have_count(0)
    gate.locator("button").click()
    board.mail("All green.").wait_for()
    nb.close()


def test_the_diagram_is_taken_along_as_svg_and_as_mermaid(lab: Lab, tmp_path: Path) -> None:
    nb, board = opened(lab, "export.ipynb")
    went(nb, board)
    with lab.page.expect_download() as download:
        board.button("Save as SVG").click()
    file = tmp_path / "board.svg"
    download.value.save_as(file)
    text = file.read_text("utf-8")
    assert text.startswith("<svg")
    assert "Please review this." in text
    assert "var(" not in text
    assert "color(srgb" not in text
    assert "class=" not in text

    lab.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    board.button("Copy as Mermaid").click()
    expect(board.root.locator(".told")).to_have_text("Copied as Mermaid")
    copied = lab.page.evaluate("() => navigator.clipboard.readText()")
    nb.execute(f"assert room.sequence(last=None).mermaid == {json.dumps(copied)}")
    nb.close()


@pytest.mark.parametrize(
    ("theme", "width"), [("Light", 480), ("Dark", 480), ("Dark", 900), ("Light", 1300)]
)
def test_nothing_stands_in_anybodys_way(lab: Lab, theme: str, width: int) -> None:
    """axe-core finds nothing, and nothing scrolls sideways, at any width, in both themes."""
    if not AXE.exists():
        pytest.skip("axe-core is not installed: npm install in tests/widgets/js")
    nb, board = opened(lab, f"board-axe-{theme}-{width}.ipynb")
    went(nb, board)
    lab.theme("Dark" if theme == "Dark" else "Light")
    board.root.evaluate("(root, width) => { root.style.width = `${width}px`; }", width)
    board.mail("Please review this.").click()
    lab.page.evaluate(AXE.read_text("utf-8"))
    rules = {"region": {"enabled": False}}
    script = "(root, rules) => axe.run(root, { rules }).then((found) => found.violations)"
    violations = board.root.evaluate(script, rules)
    wide = board.root.evaluate(
        "root => [root, root.querySelector('.scroll'), root.querySelector('.tree')]"
        ".filter((box) => box.scrollWidth > box.clientWidth).map((box) => box.className)"
    )
    lab.theme("Light")

    assert [(each["id"], each["nodes"][0]["html"][:160]) for each in violations] == []
    assert wide == []
    nb.close()


def test_a_saved_notebook_keeps_the_words(lab: Lab) -> None:
    nb, board = opened(lab, "saved.ipynb", "await boss.wait()")
    went(nb, board)
    nb.run(2)  # a cell that ends brings up to date what is saved
    nb.save()
    saved = json.loads((lab.server.notebooks / "saved.ipynb").read_text("utf-8"))
    told = [o["data"] for o in saved["cells"][1]["outputs"] if "data" in o]
    data = next(data for data in told if "text/html" in data)
    html, text = "".join(data["text/html"]), "".join(data["text/plain"])
    assert "lead → rev" in html
    assert "All green." in html
    assert "lead → rev  Please review this." in text
    nb.close()
