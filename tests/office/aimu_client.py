"""A model for AIMU's agents, written in Python: its loop, tools and messages are AIMU's own."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from aimu.aio._base import AsyncBaseModelClient
from aimu.models import BaseModelClient
from aimu.models.base import AdHocModel, ModelSpec, StreamChunk, StreamingContentType


@dataclass(frozen=True)
class Calls:
    """An answer that asks for one tool."""

    tool: str


Think: TypeAlias = Callable[[list[dict[str, Any]]], str | Calls]
"""Gives the answer to the messages so far; each as a provider would be sent it."""


class _Scripted:
    """What both clients do with a message taken in: answer, and leave the answer behind."""

    think: Think
    requests: list[list[dict[str, Any]]]

    def _answer(self: Any) -> str:
        sent = [{k: v for k, v in m.items() if k != "timestamp"} for m in self.messages]
        self.requests.append(json.loads(json.dumps(sent)))
        answer: str | Calls = self.think(self.requests[-1])
        if isinstance(answer, Calls):
            self._record_tool_calls([{"name": answer.tool, "arguments": {}}])
            return ""
        self._append_message({"role": "assistant", "content": answer})
        return answer


_MODEL = AdHocModel(ModelSpec("scripted", tools=True))


class Scripted(_Scripted, BaseModelClient):
    """A client for ``aimu.agents.Agent``; streams a whole answer as one piece."""

    def __init__(self, think: Think) -> None:
        super().__init__(_MODEL)
        self.think, self.requests = think, []

    def _generate(self, *given: Any, **more: Any) -> Any:
        raise NotImplementedError

    def _chat(
        self,
        user_message: str | None = None,
        generate_kwargs: Any = None,
        use_tools: bool = True,
        stream: bool = False,
        **more: Any,
    ) -> Any:
        self._chat_setup(user_message, None, use_tools)
        text = self._answer()
        if not stream:
            return text
        return iter([StreamChunk(StreamingContentType.GENERATING, text)] if text else [])


class AsyncScripted(_Scripted, AsyncBaseModelClient):
    """A client for ``aimu.aio.Agent``."""

    def __init__(self, think: Think) -> None:
        super().__init__(_MODEL)
        self.think, self.requests = think, []

    async def _generate(self, *given: Any, **more: Any) -> Any:
        raise NotImplementedError

    async def _chat(
        self,
        user_message: str | None = None,
        generate_kwargs: Any = None,
        use_tools: bool = True,
        stream: bool = False,
        **more: Any,
    ) -> Any:
        await self._chat_setup(user_message, None, use_tools)
        return self._answer()
