"""``%step`` in a real kernel: mail is held, seen before it is let through, and never hangs a wait."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kernel.harness import Kernel, kernel
from kernel.terminal import ipython

pytestmark = pytest.mark.kernel

POLITE = """
import postroom as pr

@pr.script
def polite(turn):
    if turn.mail[-1].sender.kind == "session":
        yield pr.call("send-message", to=turn.mail[-1].sender.id, text="thank <b>you</b>")
    return f"read: {turn.text}"

for name in ("ann", "bob"):
    pr.room().spawn(pr.Agent(name, model=polite, wake_on=("user", "peer"), mail_scope="all"))
"""


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    with kernel(tmp_path_factory.mktemp("kernel")) as started:
        started.good("%load_ext postroom")
        yield started


@pytest.fixture
def lab(running: Kernel) -> Kernel:
    """Return a kernel with an empty room in memory, and two polite sessions in it."""
    running.good("%postroom open :memory:")
    running.good(POLITE)
    return running


def test_each_step_lets_one_letter_through_and_shows_what_it_does_and_what_is_next(
    lab: Kernel,
) -> None:
    on = lab.good("%postroom step on")
    sent = lab.good("%send ann --from=bob hello <i>ann</i>")
    looked = lab.good("%step --look")
    first = lab.good("%step")
    second = lab.good("%step")
    status = lab.good("%postroom")

    assert on.streams.startswith("Mail is held from now on.")
    assert sent.text == "m-0001 → ann #1 (idle; held: %step lets it through)"
    assert looked.text.splitlines() == [
        "next: m-0001  bob → ann  hello <i>ann</i>",
        "      starts a run of ann",
    ]
    assert first.text.splitlines()[2] == "next: m-call_0001  ann → bob (1 hop)  thank <b>you</b>"
    assert second.text.splitlines()[:2] == [
        "m-call_0001  ann → bob (1 hop)  thank <b>you</b>",
        "      starts a run of bob",
    ]
    assert "step mode on, 1 letter held (%step, %postroom step off)" in status.text
    assert second.value is not None
    assert "thank &lt;b&gt;you&lt;/b&gt;" in second.value["text/html"]
    assert "<b>you" not in second.value["text/html"]


def test_waiting_in_step_mode_ends_at_once_and_says_what_is_held(lab: Kernel) -> None:
    lab.good("%postroom step on")

    answered = lab.good("%send ann --wait hello")
    waited = lab.good("%wait --for=answer")
    middle = lab.good("%wait\nx = 1")
    nothing = lab.good("%step\n%step")

    held = "1 letter held: %step lets one through"
    assert held in answered.text
    assert held in waited.text
    assert held in middle.text
    assert nothing.text.endswith("nothing waits")
    assert "read: hello" in lab.good("%transcript ann").text


def test_step_mode_off_lets_everything_through(lab: Kernel) -> None:
    lab.good("%postroom step on\n%send ann one\n%send bob two")

    off = lab.good("%postroom step off")
    lab.good("%wait")

    assert off.streams == "Mail goes through by itself again, and 2 letters with it.\n"
    assert "read: two" in lab.good("%transcript bob").text
    assert "step mode" not in lab.good("%postroom").text


def test_steps_work_in_loops_and_keep_their_result(lab: Kernel) -> None:
    lab.good("%postroom step on\n%send ann,bob one")

    kept = lab.good("r = %step bob")
    looped = lab.good("for _ in range(2):\n    %step")

    assert kept.text == ""
    assert lab.good("r.mail.text, r.effect, r.next").text == "('one', 'starts a run of bob', None)"
    assert [data["text/plain"].splitlines()[-1] for data in looped.shown] == [
        "nothing waits",
        "nothing waits",
    ]


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ("%postroom step", "step is off; say step on or step off, not ''"),
        ("%postroom step of", "not 'of'"),
        ("%step ann bob", "one session at a time, not 2"),
    ],
)
def test_what_cannot_be_read_says_what_can(lab: Kernel, cell: str, said: str) -> None:
    assert said in lab.run(cell).text


def test_steps_work_in_a_terminal(tmp_path: Path) -> None:
    with ipython(tmp_path) as terminal:
        terminal.run("%load_ext postroom")
        terminal.run("%postroom step on")
        terminal.run("%spawn echo --as ann hello")
        stepped = terminal.run("%step")
        read = terminal.run("%transcript ann")

    assert "you → ann  hello" in stepped
    assert "starts a run of ann" in stepped
    assert "nothing waits" in stepped
    assert "echo: hello" in read
