"""``%watch --into`` and ``%unwatch`` in a kernel (M-125…M-127)."""

from collections.abc import Iterator

import pytest

from kernel.harness import Kernel, kernel

pytestmark = pytest.mark.kernel


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    with kernel(tmp_path_factory.mktemp("kernel")) as started:
        started.good("%load_ext postroom")
        yield started


@pytest.fixture
def lab(running: Kernel) -> Kernel:
    """Return a kernel with a boss and its worker."""
    running.good(
        "%postroom open :memory:\n"
        "import postroom as pr\n"
        "bea = pr.room().spawn('echo', name='bea')\n"
        "ann = pr.room().spawn('echo', name='ann', parent=bea)"
    )
    return running


def test_m125_watch_into_forwards_until_unwatch_says_how_much(lab: Kernel) -> None:
    """M-125, M-126: the watch is displayed once, and may be kept."""
    begun = lab.good("%watch ann --into=bea --events=run.stopped --ttl=60")
    kept = lab.good("w = %watch ann --into=bea --tool=deploy_*")
    told = lab.good("%send ann --wait hi\n%wait\nlen(w.events)")
    listed = lab.good("%watch")
    status = lab.good("%postroom")
    offered = lab.complete("%unwatch w-")
    ended = lab.good("%unwatch w-0001 w-0002")
    empty = lab.good("%watch")

    assert begun.text == "w-0001: ann → bea (run.stopped; for 60 s)"
    assert kept.text == ""
    assert told.text.endswith("8")
    assert "w-0001  ann  bea   run.stopped" in listed.text
    assert "watches   2 under way (%watch)" in status.text
    assert offered == ["w-0001", "w-0002"]
    assert ended.streams.startswith("w-0001 (ann → bea) is over: 1 forwarded.\nw-0002 (ann → bea)")
    assert empty.text == "No watch is under way. Begin one: %watch NAME --into=OTHER"


@pytest.mark.parametrize(
    ("cell", "ename", "said"),
    [
        ("%watch --all ann", "UsageError", "--all shows every session"),
        ("%watch --all --into=bea", "UsageError", "--all shows every session"),
        ("%watch ann --events=run.stopped", "UsageError", "--events needs --into=OTHER"),
        ("%watch --into=bea", "UsageError", "--into needs the NAME"),
        ("%watch ann --into=bee", "UnknownRecipient", "Did you mean 'bea'"),
        ("%watch ann --into=ann", "ConfigError", "ann cannot watch itself"),
        ("%watch ann --into=bea --events=run.stop", "ConfigError", "Did you mean 'run.stopped'"),
        ("%watch ann --into=bea --ttl=0", "ConfigError", "ttl=0"),
        ("%unwatch", "UsageError", "it needs the ID of a watch"),
        ("%unwatch w-0009", "ConfigError", "None is under way"),
    ],
)
def test_m127_a_watch_that_will_not_do_is_one_line(
    lab: Kernel, cell: str, ename: str, said: str
) -> None:
    failed = lab.run(cell)

    assert failed.ename == ename
    assert said in failed.text


def test_the_whole_room_is_shown_as_a_widget_with_its_words(lab: Kernel) -> None:
    """A saved notebook and a terminal read the same: sessions, and who wrote to whom."""
    lab.good("%send ann --wait hello")
    shown = lab.good("%watch --all")

    assert "you → ann  hello" in shown.text
    assert "ann  echo" in shown.text
