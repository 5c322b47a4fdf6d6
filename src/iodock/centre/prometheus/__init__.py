"""Computes the rows of a monitor store from a Prometheus server that scrapes the agents. The class is
`PrometheusStore`.

The modules `address` and `client` send queries, `selection` chooses the series, `series` interprets their
labels, and `growth` computes rows from their samples."""

from iodock.centre.prometheus.address import Address, Credentials, is_address, parsed
from iodock.centre.prometheus.client import Client
from iodock.centre.prometheus.store import PrometheusStore

__all__ = ["Address", "Client", "Credentials", "PrometheusStore", "is_address", "parsed"]
