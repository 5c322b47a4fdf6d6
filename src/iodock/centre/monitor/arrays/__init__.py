"""Counters of storage arrays and their controllers, which no agent can read: by CSV and SNMP's tools."""
