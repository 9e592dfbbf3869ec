"""Whether what is sent to an address stays on this machine."""

from __future__ import annotations

from ipaddress import ip_address
from urllib.parse import urlsplit


def is_local(url: str) -> bool:
    """Whether a URL names the machine's own loopback, by number or as `localhost`.

    Any other name may lead elsewhere tomorrow, whatever it leads to today.

    >>> is_local("http://127.0.0.1:8000/v1"), is_local("http://gpu-7:8000/v1")
    (True, False)
    """
    host = urlsplit(url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
