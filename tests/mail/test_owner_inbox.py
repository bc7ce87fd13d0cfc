"""The owner's read-only feed, one per agent (I-3, I-4, I-5, I-13, I-17, I-18, I-19, I-35)."""

from typing import Any

import pytest

from contracts.envelopes import AT, clock
from postroom_runtime.contracts.envelope import FromSystem, Notification
from postroom_runtime.contracts.errors import ConfigError
from postroom_runtime.contracts.journal import RowKind
from postroom_runtime.mail.owner_inbox import OwnerInbox
from postroom_runtime.storage.memory_storage import MemoryStorage


@pytest.fixture
def storage() -> MemoryStorage:
    return MemoryStorage(now=clock)


@pytest.fixture
def inbox(storage: MemoryStorage) -> OwnerInbox:
    return OwnerInbox(storage, clock)


def test_an_inbox_is_made_empty_and_once(storage: MemoryStorage, inbox: OwnerInbox) -> None:
    """I-4, I-17."""
    assert not inbox.exists("reviewer")

    inbox.ensure("reviewer")
    inbox.ensure("reviewer")

    assert inbox.exists("reviewer")
    assert inbox.entries("reviewer") == []
    assert storage.head() == 1


def test_an_inbox_is_called_inbox_hidden_and_without_a_bound(
    storage: MemoryStorage, inbox: OwnerInbox
) -> None:
    """I-3, I-5, I-35."""
    inbox.ensure("reviewer")

    made = storage.records()["inbox@reviewer"]
    assert (made.name, made.agent, made.hidden, made.max_unread) == (
        "inbox",
        "reviewer",
        True,
        None,
    )
    assert made.created_at == AT


def test_two_agents_have_two_inboxes(inbox: OwnerInbox) -> None:
    """I-4."""
    inbox.write("reviewer", "one").result()
    inbox.write("writer", "two").result()

    assert [entry.text for entry in inbox.entries("reviewer")] == ["one"]
    assert [entry.text for entry in inbox.entries("writer")] == ["two"]


def test_an_inbox_that_a_file_has_already_is_not_made_again(storage: MemoryStorage) -> None:
    """I-18."""
    OwnerInbox(storage, clock).write("reviewer", "before").result()
    again = OwnerInbox(storage, clock)
    head = storage.head()

    again.ensure("reviewer")

    assert storage.head() == head
    assert [entry.text for entry in again.entries("reviewer")] == ["before"]


def test_an_entry_is_a_notification_from_the_system(
    storage: MemoryStorage, inbox: OwnerInbox
) -> None:
    """I-13, I-19: and a row of its own kind, never mail."""
    inbox.write("reviewer", "disk full", metadata={"free": 0}).result()

    (entry,) = inbox.entries("reviewer")
    assert entry.sender == FromSystem("runtime")
    assert entry.body == Notification("disk full", "notification", {"free": 0})
    assert (storage.count(RowKind.ENTRY), storage.count(RowKind.MAIL)) == (1, 0)


@pytest.mark.parametrize(
    ("actions", "metadata"),
    [
        (None, {"a": 1}),
        ([], {"a": 1, "actions": []}),
        ([{"type": "approval_review"}], {"a": 1, "actions": [{"type": "approval_review"}]}),
    ],
)
def test_actions_stand_in_the_metadata_only_when_given(
    inbox: OwnerInbox, actions: Any, metadata: dict[str, Any]
) -> None:
    """I-19: an empty list of actions was given, and is written."""
    inbox.write("reviewer", "look", metadata={"a": 1}, actions=actions).result()

    (entry,) = inbox.entries("reviewer")
    assert isinstance(entry.body, Notification)
    assert entry.body.metadata == metadata


def test_one_entry_per_word_and_never_full(inbox: OwnerInbox) -> None:
    """I-35, trap 9: 500 notifications are 500 entries."""
    for number in range(500):
        inbox.write("reviewer", f"{number}").result()

    assert [entry.seq for entry in inbox.entries("reviewer")] == list(range(1, 501))


def test_an_entry_with_an_id_is_written_once(inbox: OwnerInbox) -> None:
    first = inbox.write("reviewer", "asked", type="approval", id="ap-0001").result()
    again = inbox.write("reviewer", "asked again", type="approval", id="ap-0001").result()

    assert (again.seq, again.duplicate) == (first.seq, True)
    assert [entry.text for entry in inbox.entries("reviewer")] == ["asked"]


def test_reading_an_inbox_changes_nothing_and_an_unknown_one_is_empty(inbox: OwnerInbox) -> None:
    """I-2, M-20."""
    inbox.write("reviewer", "one").result()

    assert inbox.entries("reviewer") == inbox.entries("reviewer")
    assert inbox.entries("nobody") == []
    assert not inbox.exists("nobody")


@pytest.mark.parametrize("content", [None, 5, {"text": "x"}])
def test_a_notification_is_text(inbox: OwnerInbox, content: Any) -> None:
    with pytest.raises(ConfigError, match="a notification is text"):
        inbox.write("reviewer", content)

    assert not inbox.exists("reviewer")
