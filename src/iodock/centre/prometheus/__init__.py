"""Rows of a monitor store out of a Prometheus that scrapes the agents: `PrometheusStore`.

`address` and `client` ask, `selection` says for what, `series` what came, `growth` makes rows of it."""

from iodock.centre.prometheus.address import Address, Credentials, is_address, parsed
from iodock.centre.prometheus.client import Client
from iodock.centre.prometheus.store import PrometheusStore

__all__ = ["Address", "Client", "Credentials", "PrometheusStore", "is_address", "parsed"]
