"""Job monitoring: the collector, which stores the samples of agents, and queries on its store."""
