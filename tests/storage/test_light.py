import subprocess
import sys


def test_storage_is_imported_without_duckdb_and_numpy() -> None:
    program = (
        "import sys; import postroom_runtime.storage.duckdb_storage, "
        "postroom_runtime.storage.memory_storage, postroom_runtime.storage.repair; "
        "print(sorted({'duckdb', 'numpy', 'pandas', 'pyarrow'} & set(sys.modules)))"
    )

    assert subprocess.check_output([sys.executable, "-c", program], text=True) == "[]\n"
