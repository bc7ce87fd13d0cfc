"""Start sessions: a new one is stored with its first message in one transaction."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from postroom_runtime.contracts.config import Agent
from postroom_runtime.contracts.envelope import FromUser, Outgoing, UserMessage
from postroom_runtime.contracts.errors import ConfigError, NameTaken
from postroom_runtime.contracts.ids import check_name
from postroom_runtime.contracts.session_record import SessionStatus
from postroom_runtime.office.newborn import Newborn
from postroom_runtime.office.options import Options
from postroom_runtime.office.session import Session

if TYPE_CHECKING:
    from postroom_runtime.office.room import Room


def spawn(
    room: "Room",
    agent: Agent | str,
    text: str | None,
    *,
    name: str | None,
    parent: "Session | str | None",
    model: Any,
    tools: Sequence[Any] | None,
    bind: Mapping[str, Any] | None,
    hidden: bool,
    again: bool,
) -> Session:
    """See :meth:`Room.spawn`."""
    if text is not None and not isinstance(text, str):
        raise ConfigError(f"a first message is text, not {text!r}.", value=text)
    if isinstance(agent, Agent):
        known = room.roster.get(agent.slug)
        definition = known if known and known.agent is agent else None
        if definition is None:
            room.define(agent)
            definition = room.roster.named(agent.slug)
    else:
        definition = room.roster.named(check_name(agent, "agent"), model)
        room.owner_inbox.ensure(definition.agent.slug)
    slug = definition.agent.slug
    called = check_name(name if name is not None else slug)
    options = Options({})
    options.update(model, tools, bind)
    options.apply(definition, room)  # what will not do is refused now, before anything is stored
    existing = room.router.named(called)
    if existing is not None and not existing.closed:
        if existing.agent != slug:
            raise NameTaken(called, existing.agent, slug)
        return _again(room.session(called), text, model, tools, bind, again=again)
    above = room.session(parent) if isinstance(parent, str) else parent
    return _new(room, definition.agent, called, text, above, options, hidden)


def _new(
    room: "Room",
    agent: Agent,
    name: str,
    text: str | None,
    parent: Session | None,
    options: Options,
    hidden: bool,
) -> Session:
    newborn = Newborn(room, agent, name, parent, options, hidden=hidden)
    first = Outgoing(session=newborn.record.id, sender=FromUser(), body=UserMessage(text or ""))
    newborn.store(*([] if text is None else [first])).result()
    session = newborn.session()
    room.admit(session)
    return session


def _again(
    session: Session,
    text: str | None,
    model: Any,
    tools: Sequence[Any] | None,
    bind: Mapping[str, Any] | None,
    *,
    again: bool,
) -> Session:
    told = ["the same session goes on"]
    stored = session.status is SessionStatus.READY
    options = session.life.options
    if options.update(model, tools, bind):
        session.life.state.commit_now(options=options.stored())
        told.append("its options count from its next turn")
    if again and text is not None:
        session.send(text)
    elif text is not None:
        told.append("the first message was not sent again (--again sends it)")
    if stored:
        # Spawning it by name is its owner's word that it may run here.
        session.resume()
        told.append("it runs here again, with all its unread mail")
    session.new = False
    session.note = "; ".join(told)
    return session
