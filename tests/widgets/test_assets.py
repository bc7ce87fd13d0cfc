"""The front end's files: one plain module and one sheet, safe to drop into any notebook."""

import re
import subprocess
from pathlib import Path

import pytest

from postroom_widgets.assets import STATIC, script, sheet
from postroom_widgets.session_view import SCRIPTS, SHEETS

SOURCES = sorted(STATIC.glob("*.js"))
STYLES = sorted(STATIC.glob("*.css"))


def test_the_joined_module_is_one_that_a_browser_takes(tmp_path: Path) -> None:
    file = tmp_path / "view.mjs"
    file.write_text(script(SCRIPTS), "utf-8")
    check = subprocess.run(["node", "--check", file], capture_output=True, text=True, check=False)

    assert check.returncode == 0, check.stderr
    text = script(SCRIPTS)
    assert re.findall(r"^(?:import|export)\b.*", text, re.MULTILINE) == ["export default () => {"]


def test_a_file_stands_after_all_it_imports() -> None:
    for at, name in enumerate(SCRIPTS):
        needs = re.findall(r'from "\./([\w-]+)\.js"', (STATIC / f"{name}.js").read_text("utf-8"))
        assert set(needs) <= set(SCRIPTS[:at])


def test_every_file_is_used() -> None:
    assert {file.stem for file in SOURCES} == set(SCRIPTS)
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


def test_a_widget_carries_little() -> None:
    """Each saved widget has the whole module and sheet in it: forms, long feeds and all."""
    assert len(script(SCRIPTS)) + len(sheet(SHEETS)) < 88_000
