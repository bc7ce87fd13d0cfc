"""The front end's files: one plain module and one sheet, safe to drop into any notebook."""

import re
import subprocess
from pathlib import Path

import pytest

from postroom_widgets.assets import STATIC, script, sheet
from postroom_widgets.board_view import BoardView
from postroom_widgets.inbox_view import InboxView
from postroom_widgets.live_view import LiveView
from postroom_widgets.session_view import SessionView

VIEWS: tuple[type[LiveView], ...] = (SessionView, BoardView, InboxView)
each_view = pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.__name__)
SHEETS = tuple(dict.fromkeys(name for view in VIEWS for name in view.sheets))

SOURCES = sorted(STATIC.glob("*.js"))
STYLES = sorted(STATIC.glob("*.css"))


@each_view
def test_the_joined_module_is_one_that_a_browser_takes(
    view: type[LiveView], tmp_path: Path
) -> None:
    file = tmp_path / "view.mjs"
    file.write_text(script(view.scripts), "utf-8")
    check = subprocess.run(["node", "--check", file], capture_output=True, text=True, check=False)

    assert check.returncode == 0, check.stderr
    text = script(view.scripts)
    found = re.findall(r"^(?:import|export)\b.*", text, re.MULTILINE)
    assert len(found) == 1
    assert found[0].startswith("export default () => widgetOf(")


@each_view
def test_a_file_stands_after_all_it_imports(view: type[LiveView]) -> None:
    for at, name in enumerate(view.scripts):
        needs = re.findall(r'from "\./([\w-]+)\.js"', (STATIC / f"{name}.js").read_text("utf-8"))
        assert set(needs) <= set(view.scripts[:at])


def test_every_file_is_used() -> None:
    assert {file.stem for file in SOURCES} == {name for view in VIEWS for name in view.scripts}
    assert {file.stem for file in STYLES} == set(SHEETS)


@pytest.mark.parametrize("file", SOURCES, ids=lambda f: f.name)
def test_text_of_others_never_becomes_markup(file: Path) -> None:
    """M-133."""
    words = (
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|\beval\b|new Function"
    )
    assert re.findall(words, file.read_text("utf-8")) == []


@pytest.mark.parametrize("file", SOURCES, ids=lambda f: f.name)
def test_the_front_end_sets_no_trait(file: Path) -> None:
    """A trait set in the front end while a cell awaits is lost, and every later one too."""
    assert re.findall(r"save_changes|model\.set\b", file.read_text("utf-8")) == []


@pytest.mark.parametrize("file", SOURCES, ids=lambda f: f.name)
def test_no_text_in_a_script_spans_lines(file: Path) -> None:
    """Joining takes indentation away, which must never be part of a text."""
    for line in re.sub(r"//.*|/\*\*.*?\*/", "", file.read_text("utf-8"), flags=re.DOTALL).split(
        "\n"
    ):
        assert line.count("`") % 2 == 0


def test_the_sheet_styles_nothing_outside_a_view() -> None:
    text = re.sub(r"/\*.*?\*/", "", sheet(SHEETS), flags=re.DOTALL)
    rules = re.findall(r"(?:^|[{}])\s*([^{}@;]+?)\s*\{", text)
    selectors = [part.strip() for rule in rules for part in rule.split(",")]
    stray = [s for s in selectors if not re.match(r"\.pr\b|[\w.-]+:has\(> \.pr\)|from|to|\d+%", s)]
    assert len(selectors) > 100
    assert stray == []


def test_every_variable_of_the_front_end_has_a_fallback() -> None:
    """VS Code, Colab and an HTML export have none of JupyterLab's variables."""
    assert re.findall(r"var\(--(?:jp|vscode)-[\w-]+\s*\)", sheet(SHEETS)) == []


@each_view
def test_a_widget_carries_little(view: type[LiveView]) -> None:
    """Each saved widget has the whole module and sheet in it.

    A session's has forms and long feeds, a switchboard's its layout, drawing and export. All can
    show the views of sessions below them.
    """
    assert len(script(view.scripts)) + len(sheet(view.sheets)) < 104_000


@pytest.mark.parametrize("name", ["session", "board", "inbox"])
def test_the_sheet_of_one_view_reaches_no_other(name: str) -> None:
    """All sheets stand in one page, whichever views are in it."""
    file = {"board": "switchboard"}.get(name, name)
    text = (STATIC / f"{file}.css").read_text("utf-8")

    assert f".pr.{name} " in text
    assert re.findall(rf"\.pr\b(?!\.{name}\b)[^\n,{{]*", text) == []
