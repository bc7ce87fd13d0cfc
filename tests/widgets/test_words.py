"""The live view and the saved view use the same words for the same states."""

import json
import math
import re
import subprocess
from typing import Any

import pytest

from postroom_runtime.contracts.spending import money
from postroom_runtime.contracts.turn import EndReason
from postroom_widgets import board_static, inbox_static, wording
from postroom_widgets.assets import STATIC
from postroom_widgets.inbox_model import REACH
from postroom_widgets.prose import prose_parts


def node(script: str) -> Any:
    """Run a script against the front end's own modules; return what it prints as JSON."""
    code = f"""
      import * as kit from "{STATIC.as_uri()}/kit.js";
      import {{ statusWords }} from "{STATIC.as_uri()}/session.js";
      import {{ endWords, streamedWords }} from "{STATIC.as_uri()}/rows.js";
      import {{ sentReceipt }} from "{STATIC.as_uri()}/calls.js";
      import {{ dotOf }} from "{STATIC.as_uri()}/tree.js";
      import {{ proseParts }} from "{STATIC.as_uri()}/prose.js";
      console.log(JSON.stringify({script}));
    """
    run = subprocess.run(
        ["node", "--experimental-default-type=module", "--input-type=module", "-e", code],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def table(name: str) -> dict[str, str]:
    source = "".join((STATIC / f"{file}.js").read_text("utf-8") for file in ("kit", "rows"))
    found = re.search(rf"const {name} = \{{(.*?)\n\}};", source, re.DOTALL)
    assert found, name
    return dict(re.findall(r'"?([\w.]+)"?: "([^"]*)"', found[1]))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("STATES", wording.CALL_STATES),
        ("REASONS", wording.END_REASONS),
        ("MARKS", wording.MARKS),
        ("CAPS", wording.CAPS),
    ],
)
def test_both_have_the_same_words(name: str, words: dict[str, str]) -> None:
    assert table(name) == words


def test_each_end_of_a_run_has_words() -> None:
    assert set(wording.END_REASONS) == set(EndReason)


def test_a_run_whose_model_chose_to_say_nothing_says_so() -> None:
    end = {"reason": EndReason.NO_REPLY, "rounds": 1}
    assert wording.end_words(end) == ("Run ended", "nothing to say · 1 round")


def test_a_failure_says_the_same() -> None:
    source = (STATIC / "rows.js").read_text("utf-8")
    assert wording.KEPT.format(name="${ctx.name}") in source


def test_the_sign_of_a_session_is_the_same() -> None:
    words = ["idle", "ready", "running", "waiting", "paused", "failed", "capped", "closed"]
    states = [
        {"status": status, "asks": asks, "calls": calls, "end": end}
        for status in words
        for asks in (0, 1)
        for calls in (0, 1)
        for end in ("", "stopped")
    ]
    assert node(f"{json.dumps(states)}.map(dotOf)") == list(map(board_static.dot_of, states))


def test_a_question_says_the_same() -> None:
    assert f'"{wording.WITHDRAWN}"' in (STATIC / "rows.js").read_text("utf-8")
    assert f'ASK = "{wording.ASK}"' in (STATIC / "calls.js").read_text("utf-8")


def test_durations_and_numbers_read_the_same() -> None:
    seconds = [0, 0.01, 0.05, 0.84, 2, 9.94, 9.96, 59.4, 59.6, 112, 3599, 3600, 7500]
    tokens = [0, 1, 999, 1000, 2149, 18_400, 999_949, 999_950, 1_300_000]

    assert node(f"{json.dumps(seconds)}.map(kit.span)") == [wording.span(s) for s in seconds]
    assert node(f"{json.dumps(tokens)}.map(kit.count)") == [wording.count(n) for n in tokens]


def test_money_reads_the_same() -> None:
    rounded = [0.125, 0.0625, 0.0125, 1.005, 2.675, 0.0015625, 1000.5, 1001.5]
    edges = [0.001, 0.00995, 0.01, 0.0995, 0.1, 0.995, 1, 9.995, 10, 999.99, 999.995, 1000]
    near = [just for at in edges for just in (math.nextafter(at, 0), at, math.nextafter(at, 9e9))]
    tens = [digits * 10.0**power for power in range(-8, 9) for digits in (1, 1.4949, 1.7, 9.96)]
    amounts = [0, 1e-12, *rounded, *near, *tens, 123_456_789.5]

    assert node(f"{json.dumps(amounts)}.map(kit.money)") == [money(n) for n in amounts]
    assert node("[kit.money(null), kit.money(undefined), kit.money(-1)]") == ["", "", ""]


def test_the_status_reads_the_same() -> None:
    heads: list[dict[str, Any]] = [
        {"status": "ready"},
        {"status": "ready", "needs": "ready (needs agent rev)"},
        {"status": "running"},
        {"status": "running", "turn": 4},
        {"status": "idle"},
        {"status": "idle", "end": "answer"},
        {"status": "idle", "end": "stopped"},
        {"status": "waiting"},
        {"status": "waiting", "calls": 1},
        {"status": "waiting", "calls": 2},
        {"status": "waiting", "calls": 2, "asks": 1},
        {"status": "waiting", "asks": 2},
        {"status": "idle", "asks": 1},
        {"status": "running", "turn": 4, "asks": 1},
        {"status": "paused"},
        {"status": "failed", "turn": 5},
        {"status": "capped"},
        {"status": "closed"},
    ]

    assert node(f"{json.dumps(heads)}.map(statusWords)") == [wording.status_words(h) for h in heads]


ENDS: list[dict[str, Any]] = [
    {"reason": "answer", "rounds": 3, "allowed": 10, "seconds": 48},
    {"reason": "answer", "rounds": 1, "allowed": 1},
    {"reason": "answer", "rounds": 5, "allowed": 13, "extended": 1},
    {"reason": "answer", "rounds": 24, "allowed": 30, "extended": 2},
    {"reason": "budget", "rounds": 11, "allowed": 10, "seconds": 3.2},
    {"reason": "answer", "rounds": 2},
    {"reason": "no_reply"},
    {"reason": "stopped", "rounds": 2, "allowed": 10},
    {"reason": "paused", "rounds": 2, "allowed": 10},
    {"reason": "failed", "rounds": 2, "allowed": 10, "seconds": 1},
    {"reason": "closed"},
    {"reason": "interrupted"},
    {"reason": "capped"},
    {"reason": "capped", "cap": "max_tokens", "rounds": 4, "allowed": 10},
    {"reason": "capped", "cap": "of a newer Postroom"},
    {"reason": "unheard of"},
]


def test_an_end_says_how_many_rounds_of_how_many_it_took_alike_in_both() -> None:
    """A-24, A-26."""
    saved = [wording.end_words(end) for end in ENDS]
    assert node(f"{json.dumps(ENDS)}.map(endWords)") == [list(words) for words in saved]
    assert saved[0] == ("Run ended", "final answer · 3 of 10 rounds · 48 s")
    assert saved[2] == ("Run ended", "final answer · 5 of 13 rounds, extended once")
    assert saved[4] == (
        "Run ended",
        "budget of rounds · 10 of 10 rounds and a last answer · 3.2 s",
    )
    assert saved[7] == ("Run ended", "stopped by you · 2 of 10 rounds")
    assert saved[8] == ("Run paused", "2 of 10 rounds")
    assert saved[13] == ("Run ended", "budget of tokens · 4 of 10 rounds")


def test_a_turn_that_streams_says_how_much_is_there_alike_in_both() -> None:
    turns: list[dict[str, Any]] = [
        {},
        {"text": ""},
        {"text": "a"},
        {"text": "grün 🌱"},
        {"text": "x" * 1200, "more": 300},
    ]
    saved = [wording.streamed_words(turn) for turn in turns]
    assert node(f"{json.dumps(turns)}.map(streamedWords)") == saved
    assert saved[1:4] == ["asked", "streaming · 1 character", "streaming · 6 characters"]
    assert saved[4] == "streaming · 1,500 characters"


def test_a_letter_that_was_sent_says_how_far_it_got_alike_in_both() -> None:
    sent: list[dict[str, Any]] = [
        {},
        {"seq": 4},
        {"seq": 4, "read": True, "turn": 2},
        {"seq": 4, "read": True},
        {"seq": 4, "left": True},
    ]
    saved = [wording.sent_receipt(letter) for letter in sent]
    assert node(f"{json.dumps(sent)}.map(sentReceipt)") == saved
    assert saved[2] == "delivered in its turn 2"


TEXTS = [
    "",
    "plain\n\n**bold** `code`",
    "a\n```python\nx = 1\n\n```\n\nb",
    "```\nopen",
    "~~~\n```\nstill\n```\n~~~\nafter",
    "````md\n```\ninner\n```\n````",
    "    ```\nindented, no fence",
    "``` not `closed`\ntext",
    "a\n```\n```\n```js\n\n",
]


def test_code_is_set_apart_alike_by_both() -> None:
    live = node(f"{json.dumps(TEXTS)}.map(proseParts)")
    saved = [[part._asdict() for part in prose_parts(text)] for text in TEXTS]
    assert live == saved
    assert [part["text"] for part in saved[2]] == ["a", "x = 1\n", "b"]


def test_a_minute_is_written_alike_by_both() -> None:
    at = "2026-03-02T09:05:59+00:00"
    assert node(f"kit.minute({json.dumps(at)})") == wording.minute(at)


def test_an_inbox_says_the_same() -> None:
    source = "".join((STATIC / f"{file}.js").read_text("utf-8") for file in ("inbox", "cards"))
    said = (inbox_static.WAITING, inbox_static.LOOK, inbox_static.NOTHING, inbox_static.LANDS)
    assert [words for words in said if f'"{words}"' not in source] == []
    always = dict(re.findall(r'(\w+): "(These [^"]*|This [^"]*)"', source))
    assert {reach: words[:1].lower() + words[1:] for reach, words in always.items()} == REACH
