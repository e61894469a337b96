"""Tables of what things cost."""

from __future__ import annotations

from table import Table

TABLES = {
    "loop": Table(
        measured="loop",
        rows={"{step}": {}},
        columns={
            "learner, µs": "{learner_us:.0f}",
            "with loop and `SkepticalClassifier`": "{loop_us:.0f}",
        },
    ),
    "temporal-cost": Table(
        measured="temporal",
        head="classes",
        rows={"{classes}": {}},
        columns={"µs": "{us_per_event:.1f}"},
    ),
}
