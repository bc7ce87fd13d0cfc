"""What was given at spawn on top of the agent: model, tools, bound values."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from postroom_runtime.calls.tool import Tool, make_tool
from postroom_runtime.contracts.errors import ConfigError
from postroom_runtime.contracts.extra import Json
from postroom_runtime.models.model import Model
from postroom_runtime.office.roster import Definition, bound, tools_by_name

if TYPE_CHECKING:
    from postroom_runtime.office.room import Room


class Options:
    """One session's options: names are stored, objects and bound values live in this kernel only.

    Args:
        stored: From the session's record.
    """

    def __init__(self, stored: Mapping[str, Json]) -> None:
        self.model: Any = stored.get("model")
        self.tools: Sequence[Any] | None = stored.get("tools")
        self.bind: Mapping[str, Any] = {}
        self.version = 0
        """Counts the changes; a change counts from the next turn."""
        self._needs: Sequence[str] = stored.get("needs", ())

    def update(
        self, model: Any = None, tools: Sequence[Any] | None = None, bind: Any = None
    ) -> bool:
        """Take over what is given; tell whether anything was."""
        if model is None and tools is None and not bind:
            return False
        if model is not None:
            self.model = model
        if tools is not None:
            self.tools = list(tools)
        if bind:
            self.bind = dict(bind)
        # What is an object in this kernel is only named in the file.
        self._needs = []
        self.version += 1
        return True

    def stored(self) -> dict[str, Json]:
        """Return what a record may hold of them: names, never values."""
        needs = [f"the value of {name}" for name in self.bind]
        found: dict[str, Json] = {}
        if isinstance(self.model, str):
            found["model"] = self.model
        elif self.model is not None:
            needs.append(f"its model {getattr(self.model, 'name', type(self.model).__name__)}")
        if self.tools is not None:
            found["tools"] = [tool if isinstance(tool, str) else _name(tool) for tool in self.tools]
        if needs:
            found["needs"] = needs
        return found

    def apply(self, definition: Definition, room: "Room") -> tuple[Model, Mapping[str, Tool]]:
        """Return the model and tools of a session of ``definition`` with these options.

        Raises:
            ConfigError: What was given at spawn is not there in this kernel; says which cell to run.
        """
        if self._needs:
            raise ConfigError(
                f"it was spawned with {', '.join(self._needs)}, which no file keeps. "
                "Run the cell that spawns it again, then %resume it or write to it."
            )
        model = definition.model if self.model is None else room.roster.model(self.model)
        tools = definition.tools
        if self.tools is not None:
            tools = tools_by_name(
                definition.agent.slug, [self._found(tool, definition, room) for tool in self.tools]
            )
        return model, bound(tools, self.bind) if self.bind else tools

    def _found(self, tool: Any, definition: Definition, room: "Room") -> Any:
        if not isinstance(tool, str):
            return tool
        if (known := definition.tools.get(tool)) is not None:
            return known
        if (found := room.find_tool(tool)) is not None:
            return found
        raise ConfigError(
            f"the tool {tool!r} it was spawned with is not defined in this kernel. "
            "Run the cell that defines it, then %resume the session or write to it.",
            value=tool,
        )


def _name(tool: Any) -> str:
    return make_tool(tool).name
