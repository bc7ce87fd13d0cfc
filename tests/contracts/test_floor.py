"""The lowest floor: words and errors, no loop and no thread."""

import ast
import subprocess
import sys
from pathlib import Path

import postroom_runtime.contracts

FLOOR = Path(postroom_runtime.contracts.__file__).parent
MODULES = sorted(path.stem for path in FLOOR.glob("*.py") if path.stem != "__init__")


def test_no_module_of_contracts_imports_a_loop_a_thread_or_another_floor() -> None:
    imported: set[str] = set()
    for name in MODULES:
        for part in ast.walk(ast.parse((FLOOR / f"{name}.py").read_text("utf-8"))):
            if isinstance(part, ast.Import):
                imported.update(alias.name for alias in part.names)
            elif isinstance(part, ast.ImportFrom):
                imported.add(part.module or "")

    ours = {name for name in imported if name.startswith("postroom")}
    assert {name.rpartition(".")[0] for name in ours} == {"postroom_runtime.contracts"}
    assert (imported - ours) <= {
        "collections.abc",
        "dataclasses",
        "datetime",
        "decimal",
        "difflib",
        "enum",
        "json",
        "re",
        "typing",
    }


def test_importing_contracts_brings_neither_asyncio_nor_threading() -> None:
    program = (
        f"import sys; sys.path.insert(0, {str(FLOOR.parent.parent)!r})\n"
        + "\n".join(f"import postroom_runtime.contracts.{name}" for name in MODULES)
        + "\nprint(sorted({'asyncio', 'threading', 'duckdb', 'anyio', 'pydantic'} & set(sys.modules)))"
    )

    told = subprocess.run(
        [sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True, check=True
    )

    assert told.stdout.strip() == "[]"
