"""Rows of a monitor store from a Prometheus that scrapes the agents: `PrometheusStore`.

`address` and `client` send queries, `selection` chooses the series, `series` interprets them, and `growth`
turns them into rows."""

from iodock.centre.prometheus.address import Address, Credentials, is_address, parsed
from iodock.centre.prometheus.client import Client
from iodock.centre.prometheus.store import PrometheusStore

__all__ = ["Address", "Client", "Credentials", "PrometheusStore", "is_address", "parsed"]
