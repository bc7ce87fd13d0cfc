"""One widget's place in a feed: what its front end has, and what it gets next."""

import json
from collections.abc import Callable, Mapping
from typing import Final, Protocol

from postroom_runtime.contracts.extra import Json
from postroom_widgets.view_rows import Row

Message = Mapping[str, Json]
Post = Callable[[Message], None]

BATCH_SECONDS: Final = 0.05
BATCH_ROWS: Final = 200
BYTES_PER_SECOND: Final = 400_000
"""Half of what the Jupyter server lets one kernel publish."""
WINDOW_ROWS: Final = 500
"""Rows a view gets when it opens; it asks for earlier ones."""


class Told(Protocol):
    """What readers are told of: rows, each with its place ``o`` and its last change ``v``."""

    @property
    def head(self) -> Row:
        """What stands above the rows."""
        ...

    @property
    def version(self) -> int:
        """The number of the last change."""
        ...

    def ordered(self) -> list[Row]:
        """Return the rows from top to bottom."""
        ...

    def since(self, version: int) -> list[Row]:
        """Return the rows changed after ``version``, in order of their change."""
        ...


class Reader:
    """One widget's place in a feed. It is silent until its front end says hello.

    Args:
        post: Sends a message to the front end.
        window: Rows it gets when it begins.
    """

    def __init__(self, post: Post, window: int = WINDOW_ROWS) -> None:
        self.post, self.window = post, window
        self.listening = False
        self.version = 0
        """It has every change up to here."""
        self._top: list[int] = [0, 0]
        self._earlier = 0
        self._head: Row | None = None
        self._streamed: dict[str, Row] = {}
        self._not_before = 0.0

    def hello(self, state: Told, after: int, top: list[int] | None) -> None:
        """Begin to listen.

        Args:
            state: What there is.
            after: The front end has every change up to this one.
            top: The place of its first row; None when it has none, and gets the last ones.
        """
        if top is None:
            self._window(state)
        else:
            self._top, self._earlier = top, sum(row["o"] < top for row in state.ordered())
        self.version = min(after, state.version)
        self.listening, self._head, self._streamed = True, None, {}

    def _window(self, state: Told) -> None:
        rows = state.ordered()
        self._earlier = max(0, len(rows) - self.window)
        self._top = rows[self._earlier]["o"] if self._earlier else [0, 0]

    def older(self, state: Told, count: int) -> None:
        """Send rows from above the first one: ``count`` of them, 200 at most."""
        above = [row for row in state.ordered() if row["o"] < self._top]
        rows = above[-min(count, BATCH_ROWS) :]
        if rows:
            self._top = rows[0]["o"]
        self._earlier = len(above) - len(rows)
        self.post({"op": "older", "rows": rows, "earlier": self._earlier, "top": self._top})

    def push(self, state: Told, life: str, now: float) -> float:
        """Send the next batch, if there is any and it is not too soon.

        Args:
            state: What there is.
            life: Of which feed the rows are.
            now: Loop time, seconds.

        Returns:
            In how many seconds it wants more; 0 when it is up to date.
        """
        if self._not_before > now:
            return self._not_before - now
        news = state.since(self.version)
        if len(news) > 2 * self.window:
            self._window(state)  # so far behind, it begins anew with the last rows
        changed = [row for row in news if row["o"] >= self._top]
        if not changed and self._head == state.head:
            self.version = state.version
            return 0
        batch = changed[:BATCH_ROWS]
        left = len(changed) - len(batch)
        upto = batch[-1]["v"] if left else state.version
        rows = [self._news(row) for row in batch]
        self.post(
            {
                "op": "rows",
                "life": life,
                "after": self.version,
                "upto": upto,
                "left": left,
                "earlier": self._earlier,
                "top": self._top,
                "head": state.head,
                "rows": rows,
            }
        )
        self.version, self._head = upto, state.head
        pause = max(BATCH_SECONDS, len(json.dumps(rows)) / BYTES_PER_SECOND)
        self._not_before = now + pause
        return pause if left else 0

    def _news(self, row: Row) -> Row:
        """Return what the front end needs to know of a row: of a text that streams, what is new."""
        key, before = row["key"], self._streamed.get(row["key"])
        if not row.get("live"):
            self._streamed.pop(key, None)
            return row
        self._streamed[key] = row
        text, known = row.get("text", ""), (before or {}).get("text", "")
        if not known or not text.startswith(known) or row.get("more"):
            return row
        base = before["v"] if before else 0
        return {"key": key, "v": row["v"], "o": row["o"], "base": base, "add": text[len(known) :]}
