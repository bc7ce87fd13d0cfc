"""The magics that decide about calls, in a real kernel."""

from collections.abc import Iterator

import pytest

from kernel.harness import Kernel, kernel

pytestmark = pytest.mark.kernel

WORK = '''
import asyncio
import threading
import postroom as pr

async def bisect(steps: int) -> str:
    """Look for a commit."""
    pr.progress(5, 8, "19 commits left")
    await asyncio.sleep(600)
    return "found"

go = threading.Event()

def grind() -> str:
    """Work where nobody can stop it."""
    go.wait(60)
    return "ground"

def deploy(target: str) -> str:
    """Deploy."""
    return f"deployed to {target}"

@pr.script
def worker(turn):
    if turn.mail[0].sender.kind != "user":
        return f"read: {turn.text}"
    if "look" in turn.text:
        yield pr.call("bisect", steps=8)
        return "looked"
    if "grind" in turn.text:
        yield pr.call("grind")
        return "over"
    if "deploy" in turn.text:
        yield pr.call("deploy", target="staging")
        return "asked"
    return f"read: {turn.text}"

pr.room().define(pr.Agent("worker", model=worker, tools=[bisect, deploy, grind], policy=pr.Policy(
    rules=(
        pr.Rule(tool="bisect", disposition=pr.RunAsync(attach_seconds=0.1)),
        pr.Rule(tool="deploy", disposition=pr.Defer(reason="touches staging")),
    ),
    wrappers=(pr.Wrapper(match=pr.Match(tool="bisect"), decorators=(pr.Retries(count=2),)),),
)));
'''


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    with kernel(tmp_path_factory.mktemp("kernel")) as started:
        started.good("%load_ext postroom")
        yield started


@pytest.fixture
def lab(running: Kernel) -> Kernel:
    """Return a kernel with a worker in an empty room."""
    running.good("%postroom open :memory:")
    running.good(WORK)
    running.good("%spawn worker --as rev --hidden")
    return running


def test_a_running_call_is_listed_and_cancelled_by_its_id(lab: Kernel) -> None:
    """M-2, M-84, M-116."""
    lab.good("%send rev look")
    lab.good("%wait --for=tool.started\nawait asyncio.sleep(0.3)")
    listed = lab.good("%calls rev").text
    assert "bisect(steps=8)" in listed
    assert "runAsync 0.1 s · retries 2" in " ".join(listed.split())
    assert "5/8 19 commits left" in listed

    near = lab.run("%cancel call_001")
    assert near.ename == "ConfigError"
    assert near.evalue == "no call 'call_001'. Did you mean 'call_0001'?"
    assert "→ rev" in lab.good("%cancel call_0001").text
    lab.good("%wait rev")
    assert "cancelled" in lab.good("%calls").text
    assert lab.good("%cancel call_0001").text == "call_0001 (bisect) has ended: cancelled.\n"


def test_a_call_whose_thread_goes_on_after_it_was_cancelled_says_so_until_it_ends(
    lab: Kernel,
) -> None:
    """M-73, M-77."""
    lab.good("%send rev grind")
    lab.good("%wait --for=tool.started\nawait asyncio.sleep(0.3)")
    lab.good("%stop rev\n%wait rev")

    listed = " ".join(lab.good("%calls").text.split())
    assert "cancelled, still running" in listed
    assert "its thread cannot be stopped and goes on" in listed
    assert "what it returns is discarded" in listed

    lab.good("go.set()\nawait asyncio.sleep(0.3)")
    assert "still running" not in lab.good("%calls").text
    assert "ground" not in lab.good("%transcript rev").text


def test_a_gated_call_is_shown_where_one_looks_and_approved_with_other_arguments(
    lab: Kernel,
) -> None:
    """M-97: the first answer wins, and the second is one line. I-9: in a place of its own."""
    lab.good("%send rev deploy\n%wait")
    assert "inbox" not in lab.good("%sessions").text
    assert lab.run("%send inbox hello").ename == "InboxReadOnly"
    assert "ap-0001" in lab.good("%calls").text
    assert "approvals 1 waiting for you: ap-0001" in lab.good("%postroom status").text
    for line in ("%inbox", "%inbox worker"):
        page = lab.good(line).text
        assert "rev wants to run deploy: touches staging" in page
        assert "%approve ap-0001" in page

    assert lab.run('%approve ap-0001 --args={"target"').ename == "UsageError"
    assert lab.run("%approve ap-0001 --always=ever").ename == "ConfigError"
    told = lab.good('%approve ap-0001 --args={"target": "production"}\n%wait').text
    assert told.startswith(
        'ap-0001 approved by %approve, arguments edited · deploy(target="production") of rev'
    )
    assert "deployed to production" in lab.good("%transcript rev").text

    late = lab.run("%deny call_0001 too late")
    assert late.ename == "AlreadyAnswered"
    assert late.evalue == "ap-0001 was already approved by %approve; that stands."
    assert late.traceback.count("\n") == 0
    assert "approvals none waiting" in lab.good("%postroom").text


def test_a_denied_call_tells_its_agent_why(lab: Kernel) -> None:
    lab.good("%send rev deploy\n%wait")

    told = lab.good("%deny ap-0001 Not on a Friday?\n%wait").text

    assert told.startswith("ap-0001 denied by %deny: Not on a Friday? · deploy")
    assert "not approved: Not on a Friday?" in lab.good("%transcript rev").text
    assert "denied" in lab.good("%calls").text
    assert "denied by %deny: Not on a Friday?" in lab.good("%inbox").text
    assert lab.run("%inbox workr").evalue == "no agent 'workr' has an inbox. Did you mean 'worker'?"
    assert lab.run("%approve ap-0009").evalue == "no approval 'ap-0009'; open: none."


def test_pause_interrupt_and_resume(lab: Kernel) -> None:
    """M-75, M-82, M-83."""
    lab.good("%send rev look")
    lab.good("%wait --for=tool.started")
    assert "→ rev" in lab.good("%pause rev").text
    lab.good("await asyncio.sleep(0.3)")
    assert "paused" in lab.good("%sessions --hidden").text
    assert "running" in lab.good("%calls").text
    assert "paused" in lab.good("%interrupt rev are you there?").text
    assert "no longer paused" in lab.good("%resume rev").text
    lab.good("%cancel call_0001\n%wait")
    assert "are you there?" in lab.good("%transcript rev").text


@pytest.mark.parametrize("name", ["pause", "cancel", "approve", "deny", "inbox", "calls"])
def test_a_question_mark_explains_the_magic(lab: Kernel, name: str) -> None:
    asked = lab.good(f"%{name}?")
    (page,) = asked.payload
    assert "Example:" in page["data"]["text/plain"]


def test_what_runs_unasked_is_listed_and_ends_when_its_owner_says_so(lab: Kernel) -> None:
    assert "Nothing runs unasked" in lab.good("%permissions").text
    lab.good("%send rev deploy\n%wait")
    told = lab.good("%approve ap-0001 --always=args\n%wait").text
    assert "pm-0001: deploy runs unasked in rev with the same arguments." in told
    assert "%revoke pm-0001 ends that." in told

    lab.good("%send rev deploy\n%wait")
    assert "approvals none waiting" in lab.good("%postroom").text
    row = " ".join(lab.good("%permissions").text.split())
    assert 'pm-0001 deploy(target="staging") rev ap-0001 by %approve' in row
    assert lab.good("standing = %permissions\nstanding[0].allow").text == "<Allow.ARGS: 'args'>"

    said = lab.good("%revoke pm-0001").text
    assert "pm-0001 no longer lets deploy run: you are asked again." in said
    late = lab.run("%revoke pm-0001")
    assert late.evalue == "pm-0001 was already revoked by %revoke; that stands."
    assert lab.run("%revoke").ename == "UsageError"
    lab.good("%send rev deploy\n%wait")
    assert "1 waiting for you: ap-0002" in lab.good("%postroom").text

    lab.good("%approve ap-0002 --always\n%wait")
    assert "deploy(…)" in lab.good("%permissions").text
