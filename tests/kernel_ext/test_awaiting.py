"""Waiting magics become awaits, and text keeps its question marks."""

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from IPython.core.inputtransformer2 import TransformerManager

from postroom.awaiting import CannotWait, await_magics, clean_lines, refuse, waits


def transformed(cell: str) -> str:
    """Return the cell as IPython would run it with both transformers installed."""
    manager = TransformerManager()
    manager.cleanup_transforms.append(clean_lines)
    return "".join(await_magics(manager.transform_cell(cell).splitlines(keepends=True)))


@pytest.mark.parametrize(
    ("cell", "python"),
    [
        ("%wait", "await get_ipython().run_line_magic('wait', '')\n"),
        ("x = %wait ann", "x = await get_ipython().run_line_magic('wait', 'ann')\n"),
        ("x[0].y = %wait", "x[0].y = await get_ipython().run_line_magic('wait', '')\n"),
        (
            "if x:\n    %wait ann --any\n",
            "if x:\n    await get_ipython().run_line_magic('wait', 'ann --any')\n",
        ),
        (
            "for n in 'ab':\n    r = %wait {n}\n",
            "for n in 'ab':\n    r = await get_ipython().run_line_magic('wait', '{n}')\n",
        ),
        (
            "é = 'ü'; x = 1\nö = %wait ann\n",
            "é = 'ü'; x = 1\nö = await get_ipython().run_line_magic('wait', 'ann')\n",
        ),
        (
            "%send ann --wait=5 ok?",
            "await get_ipython().run_line_magic('send', 'ann --wait=5 ok?')\n",
        ),
        (
            "%%send ann --wait\nbody\n",
            "await get_ipython().run_cell_magic('send', 'ann --wait', 'body\\n')\n",
        ),
        ("%wait ann \\\n  bob\n", "await get_ipython().run_line_magic('wait', 'ann    bob')\n"),
    ],
)
def test_a_waiting_magic_is_awaited_where_python_allows_it(cell: str, python: str) -> None:
    assert transformed(cell) == python


def test_a_try_and_a_with_and_an_async_function_can_wait() -> None:
    cell = (
        "try:\n    %wait\nfinally:\n    x = 1\n"
        "with open(p) as f:\n    %wait\n"
        "async def go():\n    return_value = %wait\n"
    )

    assert transformed(cell).count("await get_ipython()") == 3


@pytest.mark.parametrize(
    "cell",
    [
        "%send ann hello",
        "%send ann please --wait for me",
        "%send ann -- --wait",
        "%send ann --wiat hello",
        "%%send ann\n%wait --wait\n",
        "%%agent rev\n%wait\n",
        "%mailsql select '--wait'",
        "def f():\n    %wait ann\n",
        "class C:\n    %wait ann\n",
        "async def f():\n    def g():\n        %wait\n",
        "async def f():\n    await get_ipython().run_line_magic('wait', 'a')\n",
        "await get_ipython().run_line_magic('wait', 'a')\n",
        "s = '''\n%wait ann\n'''",
        "# %wait ann",
        "ip = get_ipython()\nip.run_line_magic('wait', x)\n",
        "x = (1,\n",
        "%%bash\n%wait\n",
        "%%capture\nprint('%wait')\n",
    ],
)
def test_nothing_else_is_touched(cell: str) -> None:
    plain = TransformerManager().transform_cell(cell)

    assert transformed(cell) == plain


@pytest.mark.parametrize(
    ("cell", "wrapper"),
    [
        ("%%capture out\n%wait ann\n", "%%capture"),
        ("%%time\nx = 1\nfor n in x:\n    y = %wait {n}\n", "%%time"),
        ("%time %wait ann", "%time"),
        ("%timeit %send ann --wait ok", "%timeit"),
        ("x = %time %wait ann", "%time"),
        ("%%capture\n%%time\n%wait\n", "%%capture"),
        ("%%capture\n%%send ann --wait\nbody\n", "%%capture"),
    ],
)
def test_a_wait_inside_another_magic_fails_in_plain_words(cell: str, wrapper: str) -> None:
    source = transformed(cell)
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]

    assert f".refuse('{wrapper}')" in source
    assert "run_cell_magic" not in source
    assert calls
    with pytest.raises(CannotWait, match=f"^{wrapper} cannot run a magic that waits"):
        exec(source, {})


def test_the_refusal_names_the_way_on() -> None:
    with pytest.raises(CannotWait, match="a cell of its own"):
        refuse("%%capture")


def test_what_waits() -> None:
    assert waits("wait", "--nonsense")
    assert waits("send", "ann --wait={seconds} hello")
    assert not waits("send", "ann hello")
    assert not waits("spawn", "echo --wait")
    assert not waits("time", "")


# ── Question marks ──


@pytest.mark.parametrize(
    ("cell", "line"),
    [
        ("%send ann are you there?", "ann are you there?"),
        ("%send ann why??", "ann why??"),
        ("%send ann is it print?", "ann is it print?"),
        ("%send ann there?   ", "ann there?"),
        ("%send ann don't you?", "ann don't you?"),
        ("%send ann ok (really)?", "ann ok (really)?"),
        ("%send ann?", "ann?"),
        ("r = %send ann still there?", "ann still there?"),
        ("a, b = %send ann,bob still there?", "ann,bob still there?"),
        ("x['k'] = 1\nr = %send ann there?", "ann there?"),
        ("if x:\n    %send ann there?\n", "ann there?"),
        ("x = 1\n%send ann there?\ny = 2", "ann there?"),
        ("%send ann what \\\n   now?", "ann what     now?"),
        ("%send ann why? because", "ann why? because"),
        ("%spawn echo --as ann there?", "echo --as ann there?"),
        ("%interrupt ann there?", "ann there?"),
        ("s = '''x\n'''\n%send ann there?", "ann there?"),
        ("x = \"'''\"  # '''\n%send ann there?", "ann there?"),
    ],
)
def test_text_keeps_its_question_marks(cell: str, line: str) -> None:
    tree = ast.parse(transformed(cell))
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Constant)]

    assert line in [node.value for node in calls]
    assert "pinfo" not in transformed(cell)


def test_two_questions_in_one_cell() -> None:
    source = transformed("%send ann don't you?\n%send bob (or you?\n%send carl there?\n")

    assert "pinfo" not in source
    assert source.count("run_line_magic('send'") == 3


def test_a_cell_keeps_its_question_marks() -> None:
    assert "'ann ok?'" in transformed("%%send ann ok?\nreally?\nprint?\n")
    assert "really?\\nprint?\\n" in transformed("%%send ann ok?\nreally?\nprint?\n")


@pytest.mark.parametrize(
    ("cell", "call"),
    [
        ("%wait;", "await get_ipython().run_line_magic('wait', ';')\n"),
        ("x = %sessions;  # all", "x = get_ipython().run_line_magic('sessions', ';  # all')\n"),
        ('"""\n%wait;\n"""', '"""\n%wait;\n"""\n'),
        ("wait = 1; wait", "wait = 1; wait\n"),
        ("wait; wait", "wait; wait\n"),
    ],
)
def test_a_semicolon_is_no_part_of_a_name(cell: str, call: str) -> None:
    assert transformed(cell) == call


def test_automagic_keeps_its_question_marks() -> None:
    assert "pinfo" not in transformed("send ann are you there?")


@pytest.mark.parametrize(
    "cell",
    [
        "%send?",
        "?%send",
        "send?",
        "%%send?",
        "%send??",
        "x = 1\n%spawn?",
        "print?",
        "%wait?",
        "%sessions?",
    ],
)
def test_help_stays_help(cell: str) -> None:
    assert "pinfo" in transformed(cell)
    assert transformed(cell) == TransformerManager().transform_cell(cell)


@pytest.mark.parametrize(
    "cell",
    [
        'text = """\n%send ann there?\n"""\n',
        "text = '''\nsend ann there?\n  x = %send ann there?\n'''\n",
        "x = {\n  'send': 'a ?'}\n",
        "# %send ann there?\n",
        "%%bash\nsend ann there?\n",
        "send = ask\n",
        "resend(a) #?\n",
        "x = send - y\n",
    ],
)
def test_a_string_or_other_code_is_left_as_it_is(cell: str) -> None:
    assert "".join(clean_lines(cell.splitlines(keepends=True))) == cell


@given(st.lists(st.text(st.sampled_from("%send wait?'\"#\\=x()\t")), max_size=5))
def test_the_transformers_add_nothing_but_blanks_and_awaits(rows: list[str]) -> None:
    lines = [row + "\n" for row in rows]

    kept = "".join(clean_lines(lines))

    assert kept.replace(" ", "") == "".join(lines).replace(" ", "")
    assert "".join(await_magics(lines)).replace("await ", "") == "".join(lines)
