"""The magics in a real kernel: what cells show, what waits, what is caught."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kernel.harness import Kernel, kernel

pytestmark = pytest.mark.kernel

SLOW = """
import asyncio
import postroom as pr

@pr.script
async def slow(turn):
    print("noise of the script")
    await asyncio.sleep(60)
    return "done"
"""


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    with kernel(tmp_path_factory.mktemp("kernel")) as started:
        loaded = started.good("%load_ext postroom")
        assert loaded.streams == (
            "postroom: :memory: (no notebook name known), no sessions yet. Help: %postroom help\n"
        )
        yield started


@pytest.fixture
def lab(running: Kernel) -> Kernel:
    """Return a kernel with an empty room in memory."""
    running.good("%postroom open :memory:")
    return running


# ── What is displayed ──


def test_spawn_shows_the_view_and_wait_says_how_it_ended(lab: Kernel) -> None:
    spawned = lab.good("%spawn echo --as ann Hello, are you there?")
    waited = lab.good("%wait")

    view, kept = spawned.shown
    assert "application/vnd.jupyter.widget-view+json" in view
    assert "text/html" in kept
    assert spawned.value is None
    assert waited.value == {"text/plain": "ann is idle"}
    assert "Hello, are you there?" in lab.good("%mail ann").text
    assert "echo: Hello, are you there?" in lab.good("%transcript ann").text


def test_a_receipt_is_displayed_once_wherever_its_line_stands(lab: Kernel) -> None:
    lab.good("%spawn echo --as ann")

    last = lab.good("%send ann one")
    middle = lab.good("%send ann two\nx = 1")
    both = lab.good("%send ann three\n%send ann four")
    inside = lab.good("for word in ['five', 'six']:\n    %send ann {word}")
    kept = lab.good("r = %send ann seven")

    assert last.text == "m-0001 → ann #1 (idle)"
    assert middle.text.startswith("m-0002 → ann #2")
    assert [data["text/plain"].split()[0] for data in both.shown] == ["m-0003", "m-0004"]
    assert [data["text/plain"].split()[0] for data in inside.shown] == ["m-0005", "m-0006"]
    assert kept.text == ""
    assert lab.good("r.seq, r.name").text == "(7, 'ann')"


def test_mail_to_several_returns_a_list_of_receipts(lab: Kernel) -> None:
    lab.good("%spawn echo --as ann\n%spawn echo --as bob")

    sent = lab.good("%send ann,bob hello")
    kept = lab.good("r = %send ann,bob hello\n[one.name for one in r]")

    assert sent.text.count("\n") == 1
    assert kept.text == "['ann', 'bob']"


def test_nothing_is_sent_when_one_of_several_is_unknown(lab: Kernel) -> None:
    lab.good("%spawn echo --as ann")

    refused = lab.run("%send ann,anne hello")

    assert refused.ename == "UnknownRecipient"
    assert "Did you mean 'ann'" in refused.evalue
    assert lab.good("len(get_ipython().run_line_magic('mail', 'ann'))").text == "0"


def test_send_and_wait_shows_the_receipt_and_the_answer(lab: Kernel) -> None:
    lab.good("%spawn echo --as ann")

    shown = lab.good("%send ann --wait=20 what is {6 * 7}?")
    kept = lab.good("r = %send ann --wait again")
    body = lab.good("%%send ann --wait\nline {one}\nline $two\n")

    assert [data["text/plain"] for data in shown.shown] == [
        "m-0001 → ann #1 (idle)",
        "echo: what is 42?",
    ]
    assert kept.text == ""
    assert lab.good("r.woken_by, r.text").text == ("(<WokenBy.ANSWER: 'answer'>, 'echo: again')")
    assert body.shown[-1]["text/plain"] == "echo: line {one}\nline $two"


def test_lists_are_lists_with_text_and_html(lab: Kernel) -> None:
    lab.good("%spawn echo --as ann <b>hi</b>\n%wait")

    value = lab.good("%sessions").value
    assert value is not None
    assert value["text/plain"].splitlines()[0].split() == [
        "name", "id", "agent", "status", "unread",
    ]  # fmt: skip
    page = lab.good("%mail ann").value
    assert page is not None
    assert "&lt;b&gt;hi" in page["text/html"]
    assert lab.good("found = %mail ann\nfound[0].text").text == "'<b>hi</b>'"
    assert lab.good("turns = %transcript ann --last=1\n[t.role.value for t in turns]").text == (
        "['model']"
    )
    assert lab.good("%calls ann").text == "No tool calls yet."


def test_a_semicolon_shows_nothing(lab: Kernel) -> None:
    lab.good("%spawn echo --as ann hi")

    assert lab.good("%wait ann;").text == ""
    assert lab.good("%sessions;  # quietly").text == ""
    assert "hi;" in lab.good("%send ann hi;\n%mail ann").text


def test_the_room_tells_its_status_and_its_help(lab: Kernel) -> None:
    lab.good("%spawn echo --as ann hi\n%wait")

    status = lab.good("%postroom").text
    help = lab.good("%postroom help").text

    assert "room      :memory: (kept in memory only)" in status
    assert "sessions  1 (1 idle)" in status
    assert "ipykernel" in status
    assert all(f"%{name} " in help for name in ("spawn", "send", "wait", "mailsql"))
    assert lab.run("%postroom stauts").status == "error"


def test_a_room_in_memory_answers_queries_too(lab: Kernel) -> None:
    lab.good("%spawn echo --as ann hi\n%wait")

    found = lab.good("r = %mailsql select text from mail\nr[0], r.df()['text'][0]")

    assert found.text == "(('hi',), 'hi')"
    assert lab.run("%mailsql").ename == "UsageError"


# ── Waiting ──


def test_a_cell_waits_in_if_for_try_and_async_def(lab: Kernel) -> None:
    lab.good("%spawn echo --as ann\n%spawn echo --as bob")
    lab.good("%send ann,bob hi")

    cell = lab.good(
        "told = []\n"
        "for name in ['ann', 'bob']:\n"
        "    if name:\n"
        "        try:\n"
        "            r = %wait {name} --timeout=20\n"
        "        finally:\n"
        "            told.append(r.sessions)\n"
        "async def again():\n"
        "    x = %wait\n"
        "    return x.woken_by.value\n"
        "told, await again()"
    )

    assert cell.text == "([('ann',), ('bob',)], 'idle')"


def test_a_time_out_returns_and_says_what_still_works(lab: Kernel) -> None:
    lab.good(SLOW + "\n%spawn s --model slow --as sam go")

    late = lab.good("%wait sam --timeout=0.2")
    middle = lab.good("%wait sam --timeout=0.2\nx = 1")
    strict = lab.run("%wait sam --timeout=0.2 --strict")

    assert "still working: sam" in late.text
    assert "still working: sam" in middle.text
    assert strict.ename == "WaitTimedOut"
    assert strict.traceback.count("\n") == 0


def test_a_failure_is_told_instead_of_an_answer(lab: Kernel) -> None:
    lab.good("import postroom as pr\n@pr.script\ndef bad(turn):\n    return 1 / 0")
    lab.good("%spawn b --model bad --as bob")

    asked = lab.good("%send bob --wait hi")
    middle = lab.good("%send bob again\n%wait\nx = 1")

    said = "bob failed: ZeroDivisionError: division by zero"
    assert said in asked.shown[-1]["text/plain"]
    assert said in middle.shown[-1]["text/plain"]


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ("def f():\n    %wait\nf()", "inside the function f"),
        ("def f():\n    %send ann --wait never\nf()", "await session.wait()"),
        ("%%capture\n%wait", "%%capture cannot run a magic that waits"),
        ("%%time\n%wait", "%%time cannot run a magic that waits"),
        ("%time %wait", "%time cannot run a magic that waits"),
    ],
)
def test_where_nothing_can_wait_the_cell_fails_in_one_line(
    lab: Kernel, cell: str, said: str
) -> None:
    lab.good("%spawn echo --as ann")

    failed = lab.run(cell)

    assert failed.status == "error"
    assert failed.ename == "CannotWait"
    assert said in failed.traceback
    assert failed.traceback.count("\n") == 0
    assert lab.good("len(get_ipython().run_line_magic('mail', 'ann'))").text == "0"


# ── Mistakes ──


def test_errors_can_be_caught_in_the_cell(lab: Kernel) -> None:
    lab.good("%spawn echo --as ann\nimport postroom as pr")

    cell = lab.good(
        "try:\n"
        "    %send anne are you there?\n"
        "except pr.UnknownRecipient as error:\n"
        "    print('caught', error.near)\n"
        "try:\n"
        "    r = %wait ann --for=doom\n"
        "except pr.ConfigError as error:\n"
        "    print('caught', error.value)\n"
    )

    assert cell.streams == "caught ('ann',)\ncaught doom\n"


def test_a_bad_option_is_a_usage_error(lab: Kernel) -> None:
    failed = lab.run("%send ann --wiat hello")

    assert failed.status == "error"
    assert failed.ename == "UsageError"
    assert "Did you mean --wait? To begin the text with it, write -- first." in failed.text


@pytest.mark.parametrize(
    ("cell", "ename", "said"),
    [
        ("%spawn reviewer", "ConfigError", "no agent 'reviewer'"),
        ("%spawn eho", "ConfigError", "did you mean 'echo'"),
        ("%spawn echo --tools nope", "ConfigError", "no tool 'nope' in this notebook"),
        ("%mail ann", "UnknownRecipient", "No session is open yet"),
        ("%step", "PostroomError", "the room does not step. Switch it on with %postroom step on"),
        ("%step ann", "UnknownRecipient", "No session is open yet"),
        ("%send inbox hello", "InboxReadOnly", "read-only"),
    ],
)
def test_an_error_is_one_line(lab: Kernel, cell: str, ename: str, said: str) -> None:
    failed = lab.run(cell)

    assert failed.ename == ename
    assert said in failed.traceback
    assert failed.traceback.count("\n") == 0


# ── Text ──


def test_question_marks_arrive_and_help_stays_help(lab: Kernel) -> None:
    lab.good("%spawn echo --as ann")

    sent = lab.good(
        "%send ann don't you?\nif True:\n    r = %send ann still there?\n%send ann why??"
    )
    helped = lab.good("%send?")

    assert len(sent.shown) == 2
    assert not sent.payload
    assert lab.good("[m.text for m in get_ipython().run_line_magic('mail', 'ann')]").text == (
        "[\"don't you?\", 'still there?', 'why??']"
    )
    assert "%send TO[,TO…]" in helped.payload[0]["data"]["text/plain"]
    assert "Example:" in lab.inspect("%send")
    assert lab.good("%%send?").payload


def test_expressions_see_the_function_they_stand_in(lab: Kernel) -> None:
    lab.good("%spawn echo --as ann")

    lab.good(
        "name = 'outer'\n"
        "def f(name):\n"
        "    %send ann {name} {nope} $name\n"
        "f('inner')\n"
        "%send ann {name}"
    )

    assert lab.good("[m.text for m in get_ipython().run_line_magic('mail', 'ann')]").text == (
        "['inner {nope} $name', 'outer']"
    )


# ── Agents and sessions ──


def test_an_agent_is_defined_and_defined_anew(lab: Kernel) -> None:
    lab.good("import postroom as pr\n@pr.script\ndef shout(turn):\n    return turn.text.upper()")
    lab.good(
        "def look(place: str) -> str:\n    '''Look at a place.\n\n    Args:\n        place: Where.\n"
        "    '''\n    return place"
    )

    first = lab.good("%%agent rev --model echo --tools look --max-iterations=3\nBe brief.\n")
    lab.good("%spawn rev")
    second = lab.good("%%agent rev --model shout\nBe loud.")
    answer = lab.good("%send rev --wait hello")

    assert first.streams == "agent rev is defined.\n"
    assert second.streams == "agent rev is defined anew; rev uses it from the next turn.\n"
    assert answer.shown[-1]["text/plain"] == "HELLO"
    assert (
        lab.good(
            "agent = pr.room().agents()[-1]\nagent.instructions, agent.slug, len(agent.tools)"
        ).text
        == "('Be loud.', 'rev', 0)"
    )


def test_an_agent_with_a_wrong_knob_says_the_rule(lab: Kernel) -> None:
    failed = lab.run("%%agent rev --mail-scope everyone\nBe brief.")

    assert failed.ename == "ConfigError"
    assert "mail_scope='everyone'" in failed.evalue


def test_the_same_name_is_the_same_session(lab: Kernel) -> None:
    lab.good("s = %spawn echo --as ann hello")

    again = lab.good("t = %spawn echo --as ann hello")
    taken = lab.run("%%agent rev\nx\n")
    other = lab.run("%spawn rev --as ann")

    assert taken.status == "ok"
    assert "not sent again" in again.streams
    assert lab.good("s is t, len(s.mail())").text == "(True, 1)"
    assert other.ename == "NameTaken"


def test_mail_as_another_session_stands_under_its_permissions(lab: Kernel) -> None:
    lab.good("%spawn echo --as lead\n%spawn echo --as kid --parent lead\n%spawn echo --as other")

    lab.good("%send kid --from=lead hello")
    refused = lab.run("%send other --from=kid hello")

    assert refused.ename == "NotPermitted"
    assert "lead" in lab.good("%mail kid").text
    assert "  kid" in lab.good("%sessions").text


def test_closed_sessions_free_their_names(lab: Kernel) -> None:
    lab.good("%spawn echo --as ann hi\n%wait")

    assert "Closed: ann" in lab.good("%close ann").streams
    assert lab.run("%send ann hi").ename == "UnknownRecipient"
    assert "s-0002" in lab.good("%spawn echo --as ann\n%sessions").text


# ── Quiet, and awake ──


def test_what_sessions_print_reaches_no_cell(lab: Kernel) -> None:
    lab.good(
        "import postroom as pr\n"
        "def noisy(n: int) -> str:\n"
        "    '''Make noise.'''\n"
        "    print('noise of the tool')\n"
        "    return 'ok'\n"
        "@pr.script\n"
        "def loud(turn):\n"
        "    print('noise of the script')\n"
        "    yield pr.call('noisy', n=1)\n"
        "    print('more noise')\n"
        "    return 'done'\n"
    )
    lab.strays.clear()
    cells = [
        lab.good("%%agent loud --model loud --tools noisy\nx\n"),
        lab.good("%spawn loud --as lou go\nprint('mine')"),
        lab.good("%wait"),
        lab.good("x = 1"),
    ]

    assert "done" in lab.good("%transcript lou").text
    assert [cell.streams for cell in cells[1:]] == ["mine\n", "", ""]
    assert not any("noise" in cell.text for cell in cells)
    assert {parent for parent, text in lab.strays if "noise" in text} <= {""}


def test_an_interrupt_ends_the_wait_and_never_the_sessions(lab: Kernel) -> None:
    lab.good(SLOW + "\n%spawn s --model slow --as sam go\n%spawn echo --as ann")
    sent = lab.start("print('begun')\n%wait sam\nprint('never')")
    lab.until(lambda: "begun" in lab.cell(sent).streams)

    lab.interrupt()
    cell = lab.finish(sent)

    assert cell.ename == "WaitInterrupted"
    assert cell.traceback == (
        "WaitInterrupted: stopped waiting; the sessions live on. Still working: sam."
    )
    assert "never" not in cell.streams
    assert "running" in lab.good("%sessions").text
    assert lab.good("%send ann --wait still there?").shown[-1]["text/plain"] == (
        "echo: still there?"
    )


def test_an_interrupt_of_a_wait_can_be_caught(lab: Kernel) -> None:
    lab.good(SLOW + "\n%spawn s --model slow --as sam go")
    sent = lab.start(
        "print('begun')\n"
        "try:\n"
        "    %wait sam\n"
        "except pr.WaitInterrupted as error:\n"
        "    print('left', error.left)\n"
        "await asyncio.sleep(0)\n"
        "print('and on', asyncio.current_task().cancelling())"
    )
    lab.until(lambda: "begun" in lab.cell(sent).streams)

    lab.interrupt()

    assert lab.finish(sent).streams == "begun\nleft ('sam',)\nand on 0\n"


def test_a_view_is_live_while_a_cell_waits(lab: Kernel) -> None:
    lab.comms.clear()
    lab.good(SLOW + "\n%spawn s --model slow --as sam go\n%spawn echo --as ann")
    views = [
        comm
        for comm, said in lab.comms.items()
        if "snapshot" in said[0].get("data", {}).get("state", {})
    ]
    sent = lab.start("print('begun')\n%wait sam")
    lab.until(lambda: "begun" in lab.cell(sent).streams)

    lab.tell_widget(views[-1], {"op": "hello", "after": 0, "top": None})
    lab.tell_widget(views[-1], {"op": "send", "id": "c-1", "text": "typed in the view"})
    lab.until(lambda: "echo: typed in the view" in str(lab.comms[views[-1]]))
    lab.interrupt()

    assert lab.finish(sent).ename == "WaitInterrupted"


def test_a_profile_may_load_postroom_before_the_kernel_has_its_loop(tmp_path: Path) -> None:
    profile = "c = get_config()\nc.InteractiveShellApp.extensions = ['postroom']\n"
    with kernel(tmp_path, profile=profile) as lab:
        lab.good(SLOW + "\n%spawn s --model slow --as sam go\n%spawn echo --as ann hi")
        assert lab.good("%wait ann").text == "ann is idle"
        sent = lab.start("print('begun')\n%wait sam")
        lab.until(lambda: "begun" in lab.cell(sent).streams)

        lab.interrupt()

        assert lab.finish(sent).ename == "WaitInterrupted"


# ── Tab ──


def test_tab_offers_sessions_agents_and_options(lab: Kernel) -> None:
    lab.good("%spawn echo --as rev-1\n%spawn echo --as rev.2")

    assert lab.complete("%send rev") == ["rev-1", "rev.2"]
    assert lab.complete("x = %wait rev-") == ["rev-1"]
    assert lab.complete("%spawn ec") == ["echo"]
    assert lab.complete("%wait --ti") == ["--timeout="]
    assert "call_" not in str(lab.complete("%wait --for="))
