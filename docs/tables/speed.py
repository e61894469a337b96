"""Tables of times, memory and losses."""

from __future__ import annotations

from table import Table, Value, crossed, each

_CHAOS = {
    "workers killed / terminated / stopped and continued": (
        "{kills_kill} / {kills_term} / {kills_stop}"
    ),
    "broker killed or stopped": "{broker_restarts}",
    "events; hostile ones among and beside them": "{events:,}; {hostile:,}",
    "**predictions lost**": "**{lost}**",
    "**predictions duplicated**": "**{duplicated}**",
    "inputs that cannot be used; dead letters exactly once, with the original bytes": (
        "{dead_expected:,}; {dead_found:,}"
    ),
    "hostile events that are dead letters, the others being predicted": "{hostile_dead:,}",
    "dead letters without a cause": "{dead_too_many}",
    "questions asked; without exactly one end": "{requests:,}; {ends_wrong}",
    "challenges": "{challenges:,}",
    "answers, corrections and withdrawals": "{answers:,}",
    "lines of the consensus log that do not follow from them": "{lines_wrong}",
    "labels learned": "{learned:,}",
    "gaps in their numbering": "{gaps}",
    "deleted labels still in the log, and others removed from it": "{nulls_wrong}",
    "predictions of every fourth user; those that a learner rebuilt from the consensus log repeats "
    "bitwise": "{explained:,}; {bit_equal:,}",
    "users; those whose learner in the last snapshots differs from what the topics give": (
        "{keys}; {state_differences}"
    ),
    "scrapes of the metrics; times that a counter exceeded what the topics hold, or decreased": (
        "{scrapes:,}; {backwards}"
    ),
    "restores": "{restores}",
    "longest time without output from a partition": "{longest_stall_s:.0f} s",
}

_KAFKA_LOOPS = each(
    "loop",
    **{
        "bare client: consume, decode, encode, produce, one transaction a batch": "bare client",
        "worker without learner": "worker, no learner",
        "worker, a Gaussian process of 50 examples for each key": "worker, 50 examples per key",
    },
)

TABLES = {
    "chaos": Table(
        measured="chaos",
        rows={title: {"$what": what} for title, what in _CHAOS.items()},
        columns={"ten minutes": "$what"},
    ),
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
    "windows": Table(
        measured="windows",
        rows=each(
            "what",
            **{
                "`Windows`, set `activity`, two vectors": "streamgp, activity",
                "`Windows`, mean, sd, min, max, median": "streamgp, five features",
                "pandas `rolling`, these five, all rows at once": "pandas rolling, five features",
                "tsflex, these five, all rows at once": "tsflex, five features",
            },
        ),
        columns={"features of a window": "{features}", "rows per second": "{rows per s:,.0f}"},
    ),
    "windows-learned": Table(
        measured="windows",
        rows=each(
            "what",
            **{
                "`isgp()`, at most one label for ten windows": (
                    "watch, isgp(), one label for ten windows"
                ),
                "`isgp()`": "watch, isgp()",
                "`isgp()`, every label": "watch, isgp(), every label",
                "River's AMF, every label": "watch, AMF, every label",
                "River's AMF behind a `StandardScaler`, every label": (
                    "watch, AMF, scaled, every label"
                ),
                "River's ARF, every label": "watch, ARF, every label",
            },
        ),
        columns={
            "labels learned": "{labels:.0f}",
            "macro F1": "{macro F1:.3f}",
            "seconds": "{seconds:.1f}",
        },
    ),
    "gp-speed": Table(
        measured="gp_speed",
        head="examples held",
        rows={f"{n}": {"points": n} for n in (50, 200, 500, 1000, 3000, 6000)},
        columns={
            "µs per event": "{step_us:.0f}",
            "÷ one triangular solve": "{step_per_dtpsv:.1f}",
            "÷ reading the factor once": "{step_per_reading:.1f}",
            "explicit inverse, as in the paper ÷ this": "{inverse_per_step:.1f}",
        },
    ),
    "boosting-speed": Table(
        measured="boosting_speed",
        head="| labels",
        rows=crossed(
            each("trees", "numba", "numpy"),
            {format(Value(n), ","): {"labels": n} for n in (500, 2000, 10_000)},
        ),
        columns={
            "predict": "{predict_us:.0f}",
            "learn": "{update_us:.0f}",
            "predict a row of a frame": "{predict_many_us:.0f}",
        },
    ),
    "boosting-peers": Table(
        measured="boosting_speed",
        rows=each(
            "learner",
            **{
                "`ConfidenceBoostingClassifier`": "ConfidenceBoostingClassifier",
                "`OnlineForestClassifier(n_models=100)`": "OnlineForestClassifier",
                "River AMF": "River AMF",
                "River ARF": "River ARF",
                "River AdaBoost over Hoeffding trees": "River AdaBoost",
                "River ADWIN boosting over Hoeffding trees": "River ADWIN boosting",
            },
        ),
        columns={"µs": "{step_us:.0f}", "wrong": "{error:.3f}"},
    ),
    "kafka": Table(
        measured="kafka",
        head="events per second of one process",
        rows=_KAFKA_LOOPS,
        columns={
            "median of five": "{events per s:,.0f}",
            "slowest": "{slowest:,.0f}",
            "fastest": "{fastest:,.0f}",
            "share of the bare client": "{share of bare:.2f}",
        },
    ),
    "kafka-cpu": Table(
        measured="kafka",
        rows={title: {"CPU of": where["loop"]} for title, where in _KAFKA_LOOPS.items()},
        columns={
            "µs of CPU per event": "{us per event:.0f}",
            "times the bare client": "{times bare:.2f}",
        },
    ),
    "kafka-latency": Table(
        measured="kafka",
        head="latency, ms | events per second",
        rows={"{latency} | {at events per s:.0f}": {}},
        columns={"half within": "{p50 ms:.0f}", "99 % within": "{p99 ms:.0f}"},
    ),
    "takeovers": Table(
        measured="takeovers",
        head="what happens to one of two workers | `leave`",
        rows=crossed(
            each(
                "what",
                "SIGTERM for good",
                "stopped, and started again",
                "a second worker starts",
            ),
            {"true": {"leave": True}, "false": {"leave": False}},
        )
        | crossed(
            each(
                "what",
                "killed for good",
                "killed, and started again",
                "killed for good inside a transaction",
            ),
            {"false": {"leave": False}},
        ),
        columns={
            "trials": "{trials}",
            "its own partitions": "{own s:.1f}",
            "most": "{own, most s:.1f}",
            "those of the other": "{others s:.1f}",
            "most of these": "{others, most s:.1f}",
        },
    ),
    "egp-speed": Table(
        measured="egp_speed",
        head="experts | labels",
        rows=crossed(
            {"1": {"experts": 1}, "7": {"experts": 7}},
            {format(Value(n), ","): {"labels": n} for n in (200, 2000, 20_000, 100_000)},
        ),
        columns={"predict, µs": "{predict_us:.0f}", "learn, µs": "{learn_us:.0f}"},
    ),
    "egp-peers": Table(
        measured="egp_speed",
        rows=each(
            "learner",
            "EnsembleGPRegressor",
            "scikit-learn GaussianProcessRegressor",
            "scikit-learn SGDRegressor on RBFSampler",
            "River ARFRegressor",
            "River AMFRegressor",
            "River KNNRegressor",
        ),
        columns={"NMSE": "{nmse:.3f}", "µs, mean": "{mean_step_us:.0f}"},
    ),
    "page": Table(
        measured="page",
        head="milliseconds",
        rows={
            "a client, from the answer to the next card": {"wait": "client: answer to next card"},
            "the browser, from the key to the next card": {"wait": "browser: key to next card"},
        },
        columns={
            "answers": "{n}",
            "median": "{median ms:.0f}",
            "95 %": "{95 % ms:.0f}",
            "most": "{most ms:.0f}",
        },
    ),
    "keys": Table(
        measured="keys",
        head="users",
        rows={"{keys:,}": {}},
        columns={
            "ready": "{ready:,}",
            "labels per user": "{labels per key}",
            "bytes in memory": "{bytes per key ready:,.0f}",
            "bytes in the file": "{bytes per key in the store:,.0f}",
            "MB grown": "{memory MB:.0f}",
            "MB if all were ready": "{all ready MB:,.0f}",
            "events per second": "{events per s:,.0f}",
            "µs of the learner": "{us per event ready:.0f}",
            "µs per visit": "{us per visit:.0f}",
        },
    ),
}
