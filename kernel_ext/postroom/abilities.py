"""What a kernel can do, in words. Pure: versions in, a sentence out."""

from collections.abc import Sequence
from typing import Final

LIVE: Final = (7, 4)
"""From this ipykernel on, messages are handled while a cell awaits, in every front end."""

_TERMINAL: Final = "sessions move on during %wait; after %gui asyncio at the prompt too"
_LATE: Final = "what you type in a view while a cell runs arrives when it ends"


def kernel_words(ipykernel: str | None) -> str:
    """Return what ``%postroom`` says of the kernel.

    Args:
        ipykernel: Its version; None in a plain terminal.
    """
    if ipykernel is None:
        return f"plain IPython; {_TERMINAL}"
    if is_live(ipykernel):
        return f"ipykernel {ipykernel}; views are live while a cell waits"
    return f"ipykernel {ipykernel}; {_LATE}"


def load_note(ipykernel: str | None) -> str:
    """Return the line that load adds where a kernel cannot do all, else ''."""
    if ipykernel is None:
        return f"In a terminal {_TERMINAL}."
    if is_live(ipykernel):
        return ""
    return f"With ipykernel {ipykernel} {_LATE}; from 7.4 on it arrives at once."


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
