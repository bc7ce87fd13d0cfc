"""What a kernel can do, in words. Pure: versions in, a sentence out."""

from collections.abc import Sequence
from typing import Final

LIVE: Final = (7, 4)
"""From this ipykernel on, messages are handled while a cell awaits, in every front end."""


def kernel_words(ipykernel: str | None) -> str:
    """Return what ``%postroom`` says of the kernel.

    Args:
        ipykernel: Its version; None in a plain terminal.
    """
    if ipykernel is None:
        return (
            "plain IPython: sessions move on while a cell waits (%wait); "
            "after %gui asyncio at the prompt too"
        )
    if is_live(ipykernel):
        return f"ipykernel {ipykernel}: what you type in a view arrives at once, while a cell waits too"
    return f"ipykernel {ipykernel}: what you type in a view while a cell runs arrives when it ends"


def load_warning(ipykernel: str | None) -> str:
    """Return the line to print at load, '' when there is nothing to warn of."""
    if ipykernel is None or is_live(ipykernel):
        return ""
    return f"postroom: {kernel_words(ipykernel)}; ipykernel 7.4 or newer does not make it wait"


def is_live(ipykernel: str) -> bool:
    """Tell whether messages of views are handled while a cell awaits."""
    return tuple(_numbers(ipykernel)) >= LIVE


def _numbers(version: str) -> Sequence[int]:
    numbers = []
    for part in version.split(".")[:2]:
        digits = part[: len(part) - len(part.lstrip("0123456789"))]
        if not digits:
            break
        numbers.append(int(digits))
    return numbers
