"""What may stand behind ``model=``, and what is said of what may not."""

import asyncio
import subprocess
import sys

import pytest

from models.transcripts import prompt, quiet, user
from postroom_runtime.contracts.errors import ConfigError, ModelError
from postroom_runtime.contracts.ids import SessionId
from postroom_runtime.contracts.turn import Usage
from postroom_runtime.models.built_in import echo
from postroom_runtime.models.forms import ModelForm, parse_form
from postroom_runtime.models.model import Emit, Mind, Prompt, Thought
from postroom_runtime.models.resolve import resolve
from postroom_runtime.models.script import script


class Parrot:
    """A model and a mind made by hand: any object with the right methods will do."""

    name = "parrot"

    def begin(self, session: SessionId) -> Mind:
        return self

    async def think(self, prompt: Prompt, emit: Emit) -> Thought:
        return Thought(text=prompt.turns[-1].text)

    @property
    def owed(self) -> Usage:
        return Usage()

    def close(self) -> None: ...


def test_echo_is_built_in() -> None:
    assert resolve("echo") is echo


def test_a_script_is_itself() -> None:
    made = script(lambda turn: "")

    assert resolve(made) is made


def test_a_name_finds_the_script_known_by_it_before_a_built_in_one() -> None:
    mine = script(name="echo")(lambda turn: "mine")

    assert resolve("echo", scripts={"echo": mine}) is mine


def test_any_object_that_is_a_model_is_itself() -> None:
    parrot = Parrot()

    assert resolve(parrot) is parrot


def test_a_pydantic_ai_model_is_adapted() -> None:
    from pydantic_ai.models.test import TestModel

    model = resolve(TestModel(custom_output_text="42"))
    thought = asyncio.run(model.begin("s-0001").think(prompt(user("6 * 7")), quiet))

    assert model.name == "test:test"
    assert thought.text == "42"


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("openai:gpt-5", ("openai", "gpt-5", None)),
        ("anthropic:claude-sonnet-4-5", ("anthropic", "claude-sonnet-4-5", None)),
        ("google:gemini-3", ("google", "gemini-3", None)),
        ("ollama:qwen2.5:0.5b", ("ollama", "qwen2.5:0.5b", None)),
        ("openai-chat:a/b:c", ("openai-chat", "a/b:c", None)),
        ("openai-chat:@cf/meta/llama", ("openai-chat", "@cf/meta/llama", None)),
        ("openai-chat:gpt@2025-01-01", ("openai-chat", "gpt@2025-01-01", None)),
        (
            "openai-chat:@cf/a:b@https://h.example/x@y/v1",
            ("openai-chat", "@cf/a:b", "https://h.example/x@y/v1"),
        ),
        ("openai-chat:m@http://[::1]:8080/v1", ("openai-chat", "m", "http://[::1]:8080/v1")),
        ("openai:m@http://h/v1", ("openai", "m", "http://h/v1")),
    ],
)
def test_a_text_is_taken_apart(text: str, form: tuple[str, str, str | None]) -> None:
    assert parse_form(text) == ModelForm(text, *form)
    assert resolve(text).name == text


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("openai:", "name is missing: write 'openai:NAME'"),
        ("openai: gpt-5", "name is missing"),
        ("openai-chat:@http://h/v1", "name is missing"),
        ("openai-chat:m@localhost:8080/v1", "begins with http:// or https://"),
        ("openai-chat:m@127.0.0.1:8080", "begins with http:// or https://"),
        ("openai-chat:m@ftp://h/v1", "begins with http:// or https://"),
        ("openai-chat:m@http://", "is no address"),
        ("openai-chat:m@http://h:port/v1", "is no address"),
        ("openai-chat:m@http://h:99999/v1", "is no address"),
        ("openai-chat:m@http://h /v1", "is no address"),
        ("anthropic:claude@http://h/v1", "takes no server: use one of openai, openai-chat, ollama"),
    ],
)
def test_a_wrong_form_is_refused_at_once(text: str, why: str) -> None:
    with pytest.raises(ConfigError) as caught:
        resolve(text)

    assert repr(text) in str(caught.value)
    assert why in str(caught.value)


def test_a_password_in_an_address_is_refused_and_not_repeated() -> None:
    with pytest.raises(ConfigError, match="holds a password") as caught:
        resolve("openai-chat:m@http://me:hunter2@h/v1")

    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("text", ["local:model.gguf", "replay:tape.jsonl"])
def test_kinds_of_later_versions_say_so(text: str) -> None:
    with pytest.raises(ModelError, match="not in this version") as caught:
        resolve(text)

    assert caught.value.model == text


@pytest.mark.parametrize(
    ("text", "near"),
    [
        ("ecoh", "'echo'"),
        ("carefull", "'careful'"),
        ("open-ai:gpt-5", "'openai:gpt-5'"),
        ("OpenAI:gpt-5", "'openai:gpt-5'"),
        ("antropic:claude", "'anthropic:claude'"),
        ("gpt-5", "'openai:gpt-5'"),
        ("claude-opus", "'anthropic:claude-opus'"),
        ("gemini-3", "'google:gemini-3'"),
    ],
)
def test_an_unknown_name_is_answered_with_what_is_near_and_what_is_allowed(
    text: str, near: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        resolve(text, scripts={"careful": echo})

    assert f"model={text!r} is unknown: did you mean {near}" in str(caught.value)
    assert "'openai-chat:NAME@http://host/v1'" in str(caught.value)


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        (None, "give a script or its name"),
        (3, "give a script or its name"),
        ("", "give a script or its name".capitalize()),
        (Parrot, "Give an instance: Parrot(…)"),
        (lambda turn: "", "Make a script of the function with @script"),
    ],
)
def test_anything_else_is_named_with_what_is_allowed(value: object, hint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        resolve(value)

    assert caught.value.value is value
    assert hint in str(caught.value)


def test_nothing_heavy_is_imported_for_a_script_or_by_resolving() -> None:
    """Lessons start at once: providers are imported when one is first asked."""
    code = """
import sys
import postroom_runtime.models.script
from postroom_runtime.models.resolve import resolve
resolve("echo").begin("s-0001")
resolve("openai:gpt-5").begin("s-0001")
resolve("openai-chat:m@http://127.0.0.1:1/v1").begin("s-0001")
heavy = ("pydantic_ai", "openai", "httpx", "httpx2", "duckdb", "numpy", "IPython", "anywidget")
print([name for name in heavy if name in sys.modules])
"""

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"
