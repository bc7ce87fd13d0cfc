"""The house itself: what the wheel holds, how big modules are, how light the import is."""

import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("kernel_ext/postroom", "runtime/postroom_runtime", "widgets/postroom_widgets")


def tracked(*folders: str) -> set[str]:
    """Return the files that git tracks, or that a checkout without git holds."""
    if (ROOT / ".git").exists():
        listed = subprocess.run(
            ["git", "ls-files", *folders], cwd=ROOT, capture_output=True, text=True, check=True
        )
        return {line for line in listed.stdout.splitlines() if (ROOT / line).exists()}
    found = (path for folder in folders for path in (ROOT / folder).rglob("*"))
    return {
        str(path.relative_to(ROOT))
        for path in found
        if path.is_file() and "__pycache__" not in path.parts
    }


@pytest.mark.packaging
def test_the_wheel_holds_exactly_the_tracked_files_of_the_three_packages(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path)],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    (wheel,) = tmp_path.glob("*.whl")
    inside = {n for n in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in n}
    assert inside == {name.split("/", 1)[1] for name in tracked(*PACKAGES)}


def test_each_source_root_holds_one_package() -> None:
    for package in PACKAGES:
        root, name = package.split("/")
        held = {path.split("/")[1] for path in tracked(root)}
        assert held == {name}


def test_the_top_level_is_the_owner_s() -> None:
    fixed = {"pyproject.toml", "kernel_ext", "widgets", "runtime", "notebooks", "tests"}
    fixed |= {"README.md", "LICENSE", "CHANGELOG.md", "docs"}
    held = {path.split("/")[0] for path in tracked(".")}
    assert {name for name in held if not name.startswith(".")} <= fixed


def test_no_module_is_over_400_lines() -> None:
    sizes = {
        path: (ROOT / path).read_text().count("\n")
        for path in tracked(*PACKAGES)
        if path.endswith(".py")
    }
    assert {path: size for path, size in sizes.items() if size > 400} == {}


def test_no_module_hides_an_import_of_our_own_in_a_function() -> None:
    hidden = [
        f"{path}: {line.strip()}"
        for path in tracked("runtime", "widgets")
        if path.endswith(".py")
        for line in _outside_type_checking((ROOT / path).read_text())
        if re.match(r"\s+(from|import) postroom", line)
    ]
    assert hidden == []


def _outside_type_checking(source: str) -> list[str]:
    return re.sub(r"if TYPE_CHECKING:\n(?:[ \t]+.*\n|\n)+", "", source).splitlines()


def test_importing_postroom_brings_in_nothing_heavy() -> None:
    code = "import postroom, sys; print(*sorted(m.split('.')[0] for m in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {"duckdb", "numpy", "IPython", "anywidget", "ipywidgets", "pydantic_ai", "openai"}
    assert heavy & set(done.stdout.split()) == set()


def test_the_version_is_the_changelog_s_newest_or_unreleased() -> None:
    from postroom_runtime import __version__

    heads = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert heads
    assert heads[0] in ("Unreleased", __version__)


def test_every_dependency_is_justified_in_its_line() -> None:
    lines = (ROOT / "pyproject.toml").read_text().splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("dependencies = ["))
    end = next(i for i in range(start, len(lines)) if lines[i] == "]")
    assert all("#" in line for line in lines[start + 1 : end])
    project = tomllib.loads("\n".join(lines))["project"]
    assert len(project["dependencies"]) == end - start - 1
