"""Ask a model on the loopback, in one line of a test."""

import asyncio
from typing import Any

import pytest

from models.openai_server import OpenAIServer, Reply
from models.transcripts import prompt, quiet, user
from postroom_runtime.contracts.errors import ModelError
from postroom_runtime.models.model import Thought
from postroom_runtime.models.provider import ProviderMind
from postroom_runtime.models.resolve import resolve


def mind_of(server: OpenAIServer) -> ProviderMind:
    mind = resolve(server.model).begin("s-0001")
    assert isinstance(mind, ProviderMind)
    return mind


def ask(server: OpenAIServer, *texts: str, **fields: Any) -> Thought:
    turns = [user(text) for text in texts or ("hi",)]
    return asyncio.run(mind_of(server).think(prompt(*turns, **fields), quiet))


def fail(*replies: Reply) -> ModelError:
    with OpenAIServer(*replies) as server, pytest.raises(ModelError) as caught:
        ask(server)
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith(server.model)
    assert caught.value.model == server.model
    return caught.value
