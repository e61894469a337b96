"""Metrics of the page in Prometheus's text format; none of them names a person or a label."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping

from streamgp.apps.page.access import Traffic

BOUNDS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.25, 0.5, 1.0, 2.5, 5.0)


class Durations:
    """Histogram of durations in seconds.

    Examples
    --------
    >>> durations = Durations()
    >>> for seconds in (0.004, 0.02, 9.0):
    ...     durations.note(seconds)
    >>> durations.n, durations.cumulated()[:3]
    (3, [1, 1, 2])

    """

    def __init__(self) -> None:
        self.n = 0
        self.total_s = 0.0
        self._counts = [0] * (len(BOUNDS_S) + 1)

    def note(self, seconds: float) -> None:
        """Count a duration."""
        self.n += 1
        self.total_s += seconds
        self._counts[bisect_left(BOUNDS_S, seconds)] += 1

    def cumulated(self) -> list[int]:
        """Return how many durations were at most each bound."""
        n, found = 0, []
        for count in self._counts[:-1]:
            n += count
            found.append(n)
        return found


def prometheus(traffic: Traffic, answers: Durations, gauges: Mapping[str, float]) -> str:
    """Return all metrics as text.

    Parameters
    ----------
    answers
        How long answers took, from the request until the broker had stored them.

    Examples
    --------
    >>> text = prometheus(Traffic(), Durations(), {"ready": 1.0})
    >>> [line for line in text.splitlines() if "ready" in line]
    ['# TYPE streamgp_page_ready gauge', 'streamgp_page_ready 1']

    """
    lines = ["# TYPE streamgp_page_requests_total counter"]
    for (route, method, status), n in sorted(traffic.requests.items()):
        labels = f'route="{route}",method="{method}",status="{status}"'
        lines.append(f"streamgp_page_requests_total{{{labels}}} {n}")
    lines.append("# TYPE streamgp_page_refused_total counter")
    for error, n in sorted(traffic.refused.items()):
        lines.append(f'streamgp_page_refused_total{{error="{error}"}} {n}')
    lines.append("# TYPE streamgp_page_answer_seconds histogram")
    bounds = (*map(str, BOUNDS_S), "+Inf")
    for bound, n in zip(bounds, (*answers.cumulated(), answers.n), strict=True):
        lines.append(f'streamgp_page_answer_seconds_bucket{{le="{bound}"}} {n}')
    lines.append(f"streamgp_page_answer_seconds_sum {answers.total_s:.6f}")
    lines.append(f"streamgp_page_answer_seconds_count {answers.n}")
    for name, value in {"streams": float(traffic.streams.total()), **gauges}.items():
        lines.append(f"# TYPE streamgp_page_{name} gauge")
        lines.append(f"streamgp_page_{name} {value:g}")
    return "\n".join(lines) + "\n"
