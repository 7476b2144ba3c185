"""What may stand in a text although it looks like personal data: domains for examples, networks, texts that the configuration names."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable

from dataproc.pii.reading import Find

# Reserved for examples and tests (RFC 2606), and example.edu (IANA): nobody's address.
EXAMPLE_DOMAINS = ("example.com", "example.org", "example.net", "example.edu", "example", "test", "invalid", "localhost")


class Allowed:
    """domains: of e-mail addresses, subdomains included; networks: of IP addresses (`198.18.0.0/15`); texts: whatever their kind."""

    def __init__(self, domains: Iterable[str], networks: Iterable[str], texts: Iterable[str]):
        self._domains = frozenset(domain.lower().strip(".") for domain in domains)
        self._networks = [ipaddress.ip_network(network) for network in networks]
        self._texts = frozenset(text.encode() for text in texts)

    def holds(self, raw: bytes, find: Find) -> bool:
        """Whether a find in a text is to be left as it is."""
        span = raw[find.start : find.end]
        if span in self._texts:
            return True
        if find.kind == "email" and self._domains:
            labels = span.rpartition(b"@")[2].decode().lower().split(".")
            return any(".".join(labels[k:]) in self._domains for k in range(len(labels)))
        if find.kind == "ip" and self._networks:
            address = ipaddress.ip_address(span.decode())
            return any(address in network for network in self._networks)
        return False
