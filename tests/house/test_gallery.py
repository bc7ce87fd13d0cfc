"""The gallery: set-ups from the literature, each short enough to be read at a glance."""

import json
from pathlib import Path
from typing import Any

import pytest

GALLERY = sorted((Path(__file__).parents[2] / "notebooks" / "gallery").glob("*.ipynb"))


def cells(path: Path, kind: str) -> list[str]:
    content: Any = json.loads(path.read_text())
    return ["".join(cell["source"]) for cell in content["cells"] if cell["cell_type"] == kind]


def test_the_gallery_holds_the_six_set_ups() -> None:
    assert [path.stem for path in GALLERY] == [
        "01_two_agent_role_play",
        "02_debate_with_judges",
        "03_supervisor_with_workers",
        "04_blackboard",
        "05_contract_net",
        "06_sealed_bid_auction",
    ]


@pytest.mark.parametrize("path", GALLERY, ids=lambda path: path.stem)
def test_a_set_up_takes_fewer_than_forty_lines_and_stands_in_one_cell(path: Path) -> None:
    load, set_up, *acts = cells(path, "code")
    assert load == "%load_ext postroom"
    assert len(set_up.splitlines()) < 40
    assert acts


@pytest.mark.parametrize("path", GALLERY, ids=lambda path: path.stem)
def test_a_set_up_says_who_proposed_it_and_what_to_change(path: Path) -> None:
    first, *_, last = cells(path, "markdown")
    assert first.startswith("# ")
    assert any(f"{year}" in first for year in range(1950, 2031))
    assert last.startswith("**What to change.**")
