"""What an answer costs, by the price table that is installed. Nothing is fetched."""

from ipaddress import ip_address
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelResponse


def price_of(response: "ModelResponse") -> float | None:
    """Return what ``response`` costs in US dollars; None where the price table does not say.

    A gateway that names its model as a provider of the table does is counted at that provider's price;
    a server on this machine or in this house sends no bill, whatever its model is called.
    """
    if response.usage.cost is not None:
        return float(response.usage.cost)  # A gateway says itself what it charged.
    # Without a provider the table would guess one by the sound of the name.
    if not response.model_name or not response.provider_name or at_home(response.provider_url):
        return None
    try:
        return float(response.cost().total_price)
    except Exception:
        # The answer is paid for: whatever the table makes of its numbers must not lose it.
        return None


def at_home(url: str | None) -> bool:
    """Return whether ``url`` leads to this machine or a private network."""
    host = urlsplit(url or "").hostname
    if host is None:
        return False
    try:
        return ip_address(host).is_private
    except ValueError:
        return "." not in host or host.endswith((".local", ".localhost", ".internal"))
