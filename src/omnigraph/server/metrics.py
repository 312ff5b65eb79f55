"""Metrics: what the server is doing, in the format of Prometheus.

Nothing of any graph is in it: `graph_metrics.py` has that, for callers who may know it.
"""

from __future__ import annotations

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    generate_latest,
)

CONTENT_TYPE = CONTENT_TYPE_LATEST
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


class Metrics:
    """The counters of one server. Routes are counted by their template, never by their path."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        self._requests = Counter(
            "omnigraph_http_requests",
            "Requests answered.",
            ["method", "route", "status"],
            registry=self._registry,
        )
        self._seconds = Histogram(
            "omnigraph_http_request_seconds",
            "Time from the head of a request to the end of its answer.",
            ["method", "route"],
            buckets=_SECONDS,
            registry=self._registry,
        )
        self.in_flight = Gauge(
            "omnigraph_http_requests_in_flight",
            "Requests that are being answered.",
            registry=self._registry,
        )
        self.rejected = Counter(
            "omnigraph_admission_rejections",
            "Writes refused because their actor had too much under way.",
            registry=self._registry,
        )
        self.exports = Gauge(
            "omnigraph_exports_in_flight", "Exports under way.", registry=self._registry
        )
        self._long_writes = Counter(
            "omnigraph_long_writes",
            "Loads of size and merges, by where they ran: in the process for them, or here.",
            ["place"],
            registry=self._registry,
        )
        self._jobs = Counter(
            "omnigraph_jobs",
            "Jobs of upkeep that have ended, by what they did and how they ended.",
            ["kind", "outcome"],
            registry=self._registry,
        )
        self._reloads = Counter(
            "omnigraph_reloads",
            "Times the configuration was read again, by whether it was used or refused.",
            ["outcome"],
            registry=self._registry,
        )
        self._is_refused = Gauge(
            "omnigraph_configuration_is_refused",
            "Whether the files say what was refused, so that an older configuration is in use.",
            registry=self._registry,
        )
        self._counters: dict[tuple[str, str, int], Counter] = {}
        self._histograms: dict[tuple[str, str], Histogram] = {}

    def count_request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one answer."""
        counter = self._counters.get((method, route, status))
        if counter is None:
            counter = self._requests.labels(method, route, str(status))
            self._counters[method, route, status] = counter
        histogram = self._histograms.get((method, route))
        if histogram is None:
            histogram = self._histograms[method, route] = self._seconds.labels(method, route)
        counter.inc()
        histogram.observe(seconds)

    def count_reload(self, *, is_applied: bool) -> None:
        """Count one reload."""
        self._reloads.labels("applied" if is_applied else "refused").inc()
        self._is_refused.set(not is_applied)

    def count_job(self, kind: str, outcome: str) -> None:
        """Count one job of upkeep that has ended."""
        self._jobs.labels(kind, outcome).inc()

    def long_write(self, *, is_in_write_process: bool) -> None:
        """Count one long write."""
        self._long_writes.labels("apart" if is_in_write_process else "here").inc()

    def text(self) -> bytes:
        """Everything counted so far."""
        return generate_latest(self._registry)
