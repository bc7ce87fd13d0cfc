"""What lands in the owner inbox by itself: what happened, and what the owner can do about it (I-1)."""

from typing import TYPE_CHECKING

from postroom_runtime.contracts.call import Call
from postroom_runtime.contracts.envelope import Outgoing
from postroom_runtime.contracts.session_record import SessionRecord
from postroom_runtime.contracts.turn import EndReason, Role
from postroom_runtime.mail.owner_inbox import OwnerInbox

if TYPE_CHECKING:
    from postroom_runtime.office.life import Life


def orphan_entry(inbox: OwnerInbox, record: SessionRecord, call: Call) -> Outgoing:
    """Return the entry that tells of a call whose kernel ended, to be stored with its end (M-71)."""
    name = record.name
    return inbox.letter(
        record.agent,
        f"{call.tool} ({call.id}) of {name} was cut off by the end of the kernel; whether it took "
        f"effect is unknown. Look, then tell {name}: it goes on when you write to it (%resume {name}).",
        type="orphaned",
        metadata={
            "session": record.id,
            "session_name": name,
            "call": call.id,
            "tool": call.tool,
            "arguments": dict(call.arguments),
        },
        id=f"cut-off-{call.id}",
    )


def tell_poisoned(life: "Life", before: SessionRecord) -> None:
    """Tell the owner, once, of mail that has failed the run twice in a row, with no turn between.

    Args:
        life: Of the session whose run has just ended.
        before: Its record when the run began.
    """
    record = life.state.record
    if before.end_reason is not EndReason.FAILED or record.end_reason is not EndReason.FAILED:
        return
    turns = life.state.turns
    answered = max((turn.index for turn in turns if turn.role is Role.MODEL), default=0)
    if answered > before.turns:
        return  # it came further than the last time
    batch = [mail for turn in turns if turn.index > answered for mail in turn.mail]
    batch = batch or [mail for mail in life.state.unread() if mail.text.strip()]
    if not batch:
        return
    name, ids = record.name, ", ".join(mail.id for mail in batch)
    line = record.error.partition("\n")[0]
    life.report(
        "poisoned",
        f"{name} has failed twice on the same mail ({ids}): {line}\nMend its agent or its tools and "
        f"define it again, then %resume {name}; or give it up: %close {name}.",
        id=f"poisoned-{record.id}-{batch[0].seq}",
        mail=[mail.id for mail in batch],
        error=line,
    )
