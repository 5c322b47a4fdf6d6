"""Counters of storage arrays and their controllers, which agents can't read: from CSV files and SNMP
tools."""
