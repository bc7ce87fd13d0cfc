"""A session's events, written down one after the other as the runtime would store them."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from postroom_runtime.contracts.event import Event, EventKind
from postroom_runtime.contracts.session_record import SessionRecord, SessionStatus

START = datetime(2026, 3, 2, 10, 2, 14, tzinfo=UTC)

PEOPLE = {
    "s-0001": SessionRecord(id="s-0001", name="lead", agent="planner"),
    "s-0002": SessionRecord(id="s-0002", name="rev", agent="reviewer", parent="s-0001"),
    "s-0003": SessionRecord(id="s-0003", name="coder", agent="coder", parent="s-0002"),
}


def now() -> datetime:
    """Return the time it is, for a story that is told live."""
    return datetime.now(UTC)


class Story:
    """Writes the events of session ``s-0002``, called rev, with a clock of its own."""

    def __init__(self, me: str = "s-0002", start: datetime = START) -> None:
        self.me, self.now, self.seq, self.mails, self.turns = me, start, 0, 0, 0
        self.events: list[Event] = []
        self.unread: list[dict[str, Any]] = []
        self.begun: dict[str, str] = {}
        self.price: dict[str, float] = {}
        """``cost`` of a model turn, in US dollars; empty where nobody knows."""

    def tick(self, seconds: float) -> "Story":
        self.now += timedelta(seconds=seconds)
        return self

    def event(self, kind: EventKind, live: bool = False, **data: Any) -> Event:
        self.seq += 0 if live else 1
        event = Event(kind=kind, seq=self.seq, session=self.me, at=self.now, data=data)
        self.events.append(event)
        return event

    # ── Mail ──

    def mail(
        self,
        text: str = "",
        *,
        sender: Mapping[str, Any] | None = None,
        id: str = "",
        interrupt: bool = False,
        hops: int = 0,
        body: Mapping[str, Any] | None = None,
        **more: Any,
    ) -> dict[str, Any]:
        """Accept mail; from the owner unless ``sender`` says otherwise."""
        self.mails += 1
        kind = "agent_message" if sender and sender["kind"] == "session" else "user_message"
        envelope = {
            "id": id or f"m-{self.mails:04x}",
            "seq": self.mails,
            "session": self.me,
            "sender": sender or {"kind": "user"},
            "priority": "interrupt" if interrupt else "normal",
            "hops": hops,
            "accepted_at": self.now.isoformat(),
            "body": body or {"kind": kind, "text": text, **more},
        }
        self.unread.append(envelope)
        self.event(EventKind.MAIL_ACCEPTED, mail=envelope)
        return envelope

    def letter(
        self, text: str, sender: str = "s-0003", hops: int = 1, **more: Any
    ) -> dict[str, Any]:
        """Accept mail of another session."""
        by = {"kind": "session", "session": sender, "agent": PEOPLE[sender].agent}
        return self.mail(text, sender=by, hops=hops, **more)

    def control(self, tag: str) -> dict[str, Any]:
        """Accept an order of the owner."""
        return self.mail(body={"kind": "control", "message": {"tag": tag}})

    def finished(
        self,
        call: str,
        tool: str,
        response: Any,
        state: str = "completed",
        token: str = "",
    ) -> dict[str, Any]:
        """End a call: its record and its mail; with a token it had waited for its owner."""
        self.event(
            EventKind.TOOL_COMPLETED,
            call={
                "id": call,
                "session": self.me,
                "tool": tool,
                "arguments": {},
                "state": state,
                "result": response,
                "started_at": self.begun.get(call, self.now.isoformat()),
                "ended_at": self.now.isoformat(),
            },
        )
        body = {
            "kind": "tool_call_finished",
            "call": call,
            "tool": tool,
            "state": state,
            "response": response,
        }
        if token:
            body |= {"kind": "continuation_result", "token": token}
        return self.mail(sender={"kind": "tool", "call": call}, body=body)

    def deferred(self, call: str, tool: str, reason: str = "") -> "Story":
        """Let a call wait for its owner, as approval ap-0001."""
        record = {"id": call, "session": self.me, "tool": tool, "arguments": {}}
        self.event(
            EventKind.CALLS_DEFERRED,
            call={**record, "state": "deferred", "reason": reason, "token": "t-0001"},
        )
        return self.decided(call, "pending")

    def decided(self, call: str, state: str, by: str = "", decision: Any = None) -> "Story":
        """Ask for an approval, or answer it."""
        kind = EventKind.APPROVAL_REQUESTED if state == "pending" else EventKind.APPROVAL_RESOLVED
        told = {"id": "ap-0001", "call": call, "state": state, "answered_by": by}
        self.event(kind, approval={**told, "decision": decision})
        return self

    # ── Turns ──

    def run(self) -> "Story":
        self.event(EventKind.RUN_STARTED, turn=self.turns + 1)
        return self

    def heard(
        self,
        *results: Mapping[str, Any],
        mail: Sequence[Mapping[str, Any]] | None = None,
        **more: Any,
    ) -> "Story":
        """Store a user turn that reads the unread mail (``mail``: only this), and the record."""
        read = list(self.unread if mail is None else mail)
        self.unread = []
        self.turns += 1
        turn = {"index": self.turns, "role": "user", "text": "…", **more}
        turn |= {"mail": read} if read else {}
        turn |= {"results": list(results)} if results else {}
        if read:
            seqs = [envelope["seq"] for envelope in read]
            self.event(EventKind.INBOX, text="…", mail=seqs, turn=self.turns)
        self.event(EventKind.SESSION_UPDATED, turn=turn)
        self.record("running", cursor=self.mails)
        return self

    def amended(self, *mail: Mapping[str, Any]) -> "Story":
        """Store the last user turn anew, with more mail in it."""
        self.unread = []
        turn = {"index": self.turns, "role": "user", "text": "…", "mail": list(mail)}
        self.event(EventKind.INBOX, text="…", mail=[mail[-1]["seq"]], turn=self.turns)
        self.event(EventKind.SESSION_UPDATED, turn=turn)
        self.record("running", cursor=self.mails)
        return self

    def delta(self, *pieces: str) -> "Story":
        for piece in pieces:
            self.event(EventKind.TEXT_DELTA, live=True, text=piece)
        return self

    def said(self, text: str = "", *calls: Mapping[str, Any], **more: Any) -> "Story":
        self.turns += 1
        turn = {"index": self.turns, "role": "model", "text": text, **more}
        turn |= {"calls": list(calls)} if calls else {}
        turn["usage"] = {"requests": 1, "input_tokens": 2100, "output_tokens": 318, **self.price}
        self.event(EventKind.SESSION_UPDATED, turn=turn)
        return self

    def started(self, call: str, tool: str, **arguments: Any) -> "Story":
        self.begun[call] = self.now.isoformat()
        record = {
            "id": call,
            "session": self.me,
            "tool": tool,
            "arguments": arguments,
            "state": "running",
            "started_at": self.begun[call],
        }
        self.event(EventKind.TOOL_STARTED, call=record)
        return self

    def stopped(self, reason: str = "answer", rounds: int = 1, status: str = "idle") -> "Story":
        self.event(EventKind.RUN_STOPPED, reason=reason, rounds=rounds)
        self.record(status, cursor=self.mails - len(self.unread), end_reason=reason)
        return self

    def record(self, status: str, cursor: int = 0, **more: Any) -> "Story":
        record = {
            "id": self.me,
            "name": PEOPLE[self.me].name,
            "agent": PEOPLE[self.me].agent,
            "parent": PEOPLE[self.me].parent,
            "status": str(SessionStatus(status)),
            "cursor": cursor,
            "turns": self.turns,
            "usage": {
                "input_tokens": 2100 * self.turns,
                "output_tokens": 318 * self.turns,
                **{name: each * self.turns for name, each in self.price.items()},
            },
            **more,
        }
        self.event(EventKind.SESSION_UPDATED, session=record)
        return self


def request(id: str, tool: str, **arguments: Any) -> dict[str, Any]:
    """Return a call as a model turn carries it."""
    return {"id": id, "tool": tool, "arguments": arguments}


def reply(call: str, tool: str, content: str, state: str = "completed") -> dict[str, Any]:
    """Return the tool message of a call."""
    return {"call": call, "tool": tool, "content": content, "state": state}


def detached(call: str, tool: str, why: str = "still running after 10s") -> dict[str, Any]:
    """Return the placeholder of a call that goes on without its model."""
    content = f'{{"status": "running", "tool_call_id": "{call}", "detached": "{why}"}}'
    return reply(call, tool, content, "running")


def review() -> Story:
    """Tell a long afternoon: two suites, a question, an interrupt, a failure, results by mail."""
    story = Story()
    story.mail(
        "Please review the retry change in PR 214. Run both suites and tell me whether it is safe to ship today."
    )
    story.run().heard()
    story.tick(12).said(
        "I read the diff and start both suites. The new back-off is capped at 30 s without a word why, so I ask coder.",
        request("call_0001", "read_diff", pr=214),
        request("call_0002", "run_tests", suite="fast"),
        request("call_0003", "run_tests", suite="integration", workers=4, fail_fast=False),
        request(
            "call_0004",
            "send-message",
            to="coder",
            text="Why is the back-off capped at 30 s?",
            expects_reply=True,
        ),
    )
    for call, tool in [
        ("call_0001", "read_diff"),
        ("call_0002", "run_tests"),
        ("call_0003", "run_tests"),
        ("call_0004", "send-message"),
    ]:
        story.started(call, tool)
    story.tick(0.8).finished(
        "call_0001", "read_diff", "retry.py  +38 −12\ntests/test_retry.py  +61 −4"
    )
    story.finished("call_0004", "send-message", {"id": "m-1c08", "seq": 4, "session": "s-0003"})
    story.tick(2.4).finished("call_0002", "run_tests", "412 passed in 3.1 s")
    story.tick(6)
    answer = story.letter(
        "The gateway drops idle connections after 35 s, so a longer pause would always meet a dead socket. It is in the runbook, not in the code. I can add a comment.",
        in_reply_to="m-1c08",
    )
    story.heard(
        reply("call_0001", "read_diff", "retry.py  +38 −12\ntests/test_retry.py  +61 −4"),
        reply("call_0002", "run_tests", "412 passed in 3.1 s"),
        detached("call_0003", "run_tests"),
        reply("call_0004", "send-message", '{"id": "m-1c08"}'),
        mail=[answer],
    )
    story.tick(6).said(
        "Sound reason. I note it and go through the docs while the integration suite runs.",
        request("call_0005", "search_docs", query="gateway idle timeout"),
    )
    story.started("call_0005", "search_docs").tick(4)
    story.mail("Never mind the docs. Check staging first.", interrupt=True)
    story.heard(detached("call_0005", "search_docs", "interrupted")).tick(4)
    story.said("", request("call_0006", "deploy_status", target="staging")).started(
        "call_0006", "deploy_status"
    )
    story.tick(2).finished(
        "call_0006", "deploy_status", "HTTP 503 from deploy.internal, 3 tries", "failed"
    )
    story.heard(
        reply("call_0006", "deploy_status", "HTTP 503 from deploy.internal, 3 tries", "failed"),
        mail=[],
    )
    story.tick(3).said(
        "Staging does not answer, so I cannot check it now.", end_reason="answer"
    ).stopped(rounds=4).tick(6)
    story.finished(
        "call_0005",
        "search_docs",
        "3 pages. First: runbooks/gateway.md, “idle sockets are closed after 35 s”",
    )
    story.tick(58).finished(
        "call_0003",
        "run_tests",
        "231 passed, 2 failed in 1 m 51 s\nFAILED test_gateway.py::test_reconnect_after_idle\nFAILED test_gateway.py::test_backoff_cap",
    )
    story.run().heard().tick(9).said(
        "Two failures, both in the gateway tests and both new with this branch. I look for the commit.",
        request("call_0007", "bisect", good="v2.8.0", bad="HEAD", test="test_reconnect_after_idle"),
    )
    story.started("call_0007", "bisect")
    story.event(
        EventKind.TOOL_PROGRESS,
        live=True,
        call="call_0007",
        done=5,
        total=8,
        text="19 commits left",
    )
    story.tick(10).heard(detached("call_0007", "bisect"))
    story.delta(
        "Bisect has narrowed it to the commit that moved ",
        "the cap into the client. While it finishes I",
    )
    story.tick(3).letter(
        "I added the comment on the cap. Shall I also make it a setting?",
        hops=2,
        expects_reply=True,
    )
    story.tick(5).mail("Also tell me who approved the client change.")
    return story


def gated() -> Story:
    """Tell the same afternoon, and of a roll-back that waits for its owner in the end."""
    story = review()
    story.said("It needs a roll-back.", request("call_0008", "deploy", target="staging"))
    story.started("call_0008", "deploy", target="staging")
    story.deferred("call_0008", "deploy", reason="touches what people use")
    return story
