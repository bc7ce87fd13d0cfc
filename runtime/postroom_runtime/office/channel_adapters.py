"""Channels that need nothing but an address: a web hook, and a program of one's own."""

import asyncio
import hashlib
import hmac
import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Final
from urllib.parse import urlsplit

from postroom_runtime.calls.processes import GRACE_SECONDS, ProcessFailed, run_process
from postroom_runtime.contracts.errors import ConfigError, PostroomError
from postroom_runtime.mail.channels import PUSH_SECONDS, Push
from postroom_runtime.storage.clock import utc_now

_TRY_AGAIN: Final = frozenset({408, 425, 429})
"""Answers below 500 that say: later."""


class PushFailed(PostroomError):
    """A channel could not deliver a push; the entry is in the owner inbox all the same."""


class Webhook:
    """Posts each push as JSON to an address, and tries again when the other side is in trouble.

    With a ``secret``, ``X-Postroom-Signature`` is ``sha256=`` and the HMAC, in hex, of the text
    ``TIMESTAMP.BODY``, where TIMESTAMP is the header ``X-Postroom-Timestamp`` (seconds since 1970) and
    BODY the bytes sent. ``X-Postroom-Id`` is the same in each try.

    Args:
        url: An ``http`` or ``https`` address.
        secret: What the receiver checks the signature with.
        headers: Further headers.
        attempts: How often to try: after a failure to connect, a time-out, or an answer of 500 and
            above (and 408, 425, 429). Any other answer but a 2xx is final.
        timeout: Seconds for one try.
        backoff: Seconds before the second try; doubled before each further one.
        now: The clock of the timestamp.

    Raises:
        ConfigError: The address or a number will not do.
    """

    def __init__(
        self,
        url: object,
        secret: str | bytes | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        attempts: int = 3,
        timeout: float = PUSH_SECONDS,
        backoff: float = 0.5,
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        parts = urlsplit(url) if isinstance(url, str) else None
        if parts is None or parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigError(
                f"url={url!r} is no web hook: give an http:// or https:// address.", value=url
            )
        if attempts < 1 or timeout <= 0 or backoff < 0:
            raise ConfigError(
                f"attempts={attempts}, timeout={timeout}, backoff={backoff} (seconds) will not do: "
                "give at least 1 attempt, more than 0 and at least 0 seconds.",
                value=attempts,
            )
        # Here and not on the loop: both read files.
        import httpx

        self._httpx = httpx
        self._verify = httpx.create_ssl_context() if parts.scheme == "https" else False
        self._url, self._headers = str(url), dict(headers or {})
        self._host = parts.hostname
        self._secret = secret.encode() if isinstance(secret, str) else secret
        self._attempts, self._timeout, self._backoff = attempts, timeout, backoff
        self._now = now

    def __repr__(self) -> str:
        return f"Webhook({self._host}, {'signed' if self._secret else 'not signed'})"

    @property
    def seconds(self) -> float:
        """How long one push may take, all its tries and waits together."""
        waits = sum(self._backoff * float(2**tried) for tried in range(self._attempts - 1))
        return self._attempts * self._timeout + waits + 1.0

    async def send(self, push: Push) -> None:
        """Post ``push``.

        Raises:
            PushFailed: Every try failed, or an answer was final.
        """
        body = json.dumps(push.to_json(), ensure_ascii=False).encode()
        async with self._httpx.AsyncClient(verify=self._verify, timeout=self._timeout) as client:
            for attempt in range(1, self._attempts + 1):
                try:
                    async with asyncio.timeout(self._timeout):
                        answer = await client.post(
                            self._url, content=body, headers=self._signed(push, body)
                        )
                except (self._httpx.HTTPError, TimeoutError) as error:
                    words = str(error) or f"no answer within {self._timeout:g} s"
                else:
                    if answer.is_success:
                        return
                    words = f"it answered {answer.status_code}"
                    if answer.status_code < 500 and answer.status_code not in _TRY_AGAIN:
                        raise PushFailed(f"{self._host} did not take {push.id}: {words}")
                if attempt < self._attempts:
                    await asyncio.sleep(self._backoff * 2 ** (attempt - 1))
        raise PushFailed(f"{self._host} did not take {push.id}, {self._attempts} tries: {words}")

    def _signed(self, push: Push, body: bytes) -> dict[str, str]:
        timestamp = str(int(self._now().timestamp()))
        headers = {
            **self._headers,
            "Content-Type": "application/json",
            "X-Postroom-Id": push.id,
            "X-Postroom-Timestamp": timestamp,
        }
        if self._secret is not None:
            signed = hmac.new(self._secret, timestamp.encode() + b"." + body, hashlib.sha256)
            headers["X-Postroom-Signature"] = f"sha256={signed.hexdigest()}"
        return headers


class CommandChannel:
    """Runs a program for each push, with the push as JSON on its standard input.

    It runs in a process group of its own, without a shell; when its time is up it is ended with
    everything that it started.

    Args:
        argv: The program and its arguments.
        timeout: Seconds it may take.
        cwd: Where it runs.
        env: Variables on top of the kernel's own.

    Raises:
        ConfigError: The command line is empty or cannot be read, or the time is none.
    """

    def __init__(
        self,
        argv: str | Sequence[str],
        *,
        timeout: float = PUSH_SECONDS,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
    ) -> None:
        try:
            parts = shlex.split(argv) if isinstance(argv, str) else [str(part) for part in argv]
        except ValueError as error:
            raise ConfigError(f"{argv!r} cannot be read: {error}.", value=argv) from None
        if not parts or timeout <= 0:
            raise ConfigError(
                f"argv={argv!r}, timeout={timeout} (seconds) will not do: give a program and "
                "its arguments, and more than 0 seconds.",
                value=argv,
            )
        self._argv, self._timeout, self._cwd, self._env = parts, timeout, cwd, env

    def __repr__(self) -> str:
        return f"CommandChannel({shlex.join(self._argv)})"

    @property
    def seconds(self) -> float:
        """How long one push may take, with the time that its end takes."""
        return self._timeout + 2 * GRACE_SECONDS + 1

    async def send(self, push: Push) -> None:
        """Run the program.

        Raises:
            PushFailed: It could not be started, failed, or ran out of time.
        """
        try:
            async with asyncio.timeout(self._timeout):
                said = await run_process(
                    self._argv,
                    stdin=json.dumps(push.to_json(), ensure_ascii=False),
                    cwd=self._cwd,
                    env=self._env,
                )
        except TimeoutError:
            raise PushFailed(
                f"{self._argv[0]} was ended after {self._timeout:g} s, with all it had started"
            ) from None
        except ProcessFailed as error:
            raise PushFailed(str(error)) from None
        if said.returncode != 0:
            words = (said.stderr.strip() or said.stdout.strip())[:500]
            raise PushFailed(f"{self._argv[0]} ended with exit code {said.returncode}: {words}")
