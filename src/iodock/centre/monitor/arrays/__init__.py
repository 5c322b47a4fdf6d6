"""Imports counters of storage arrays and their controllers from CSV files and from the output of SNMP tools.
Agents can't read these counters, because no agent runs on an array."""
