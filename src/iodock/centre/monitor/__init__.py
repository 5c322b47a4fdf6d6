"""Job monitoring: the collector that keeps what agents send, and what is asked of it."""
