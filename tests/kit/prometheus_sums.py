"""Queries for sums on which a collector and a Prometheus must agree."""

from __future__ import annotations

SUMS = """
    SELECT job, user, source, target, sum(read_bytes)::BIGINT AS read_bytes, sum(reads)::BIGINT AS reads,
        sum(write_bytes)::BIGINT AS write_bytes, sum(writes)::BIGINT AS writes, sum(open)::BIGINT AS open,
        sum(getattr)::BIGINT AS getattr, sum(other)::BIGINT AS other, sum(time_us)::BIGINT AS time_us,
        bool_and(exact) AS exact
    FROM job_io WHERE source LIKE '%job_stats' GROUP BY ALL ORDER BY ALL
"""
