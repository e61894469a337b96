"""Whether topics and configuration fit each other, before a worker begins."""

from __future__ import annotations

from connectors.records import Topics
from connectors.worker.loop_settings import LoopSettings
from streamgp.cli.configuration.addresses import KafkaAddress, parse_address
from streamgp.cli.configuration.build import build_model, build_total_budget
from streamgp.cli.configuration.validation import ConfigError
from streamgp.cli.configuration.worker_settings import WorkerConfig


def build_loops(config: WorkerConfig, *, source: str) -> LoopSettings:
    """Return what the loops of a worker are made of.

    Examples
    --------
    >>> build_loops(WorkerConfig(), source="my.toml").keyed
    True

    """
    spans, total = config.loop, build_total_budget(config)
    if total is not None and not config.worker.keyed:
        raise ConfigError(
            f"{source}: total_budget is for a learner of each key, and worker.keyed is false; "
            "put the limit into [budget]"
        )
    return LoopSettings(
        model=build_model(config, source=source),
        keyed=config.worker.keyed,
        expires_after_s=spans.expires_after_s,
        answer_horizon_s=spans.answer_horizon_s,
        max_keys=spans.max_keys if config.worker.keyed else None,
        total_budget=total,
    )


def check_creation(config: WorkerConfig) -> None:
    """Refuse to make topics on which the configured worker could not work."""
    assert config.broker is not None
    is_kafka = isinstance(parse_address(config.broker.url), KafkaAddress)
    if is_kafka and not config.worker.keyed and config.topics.partitions != 1:
        raise ConfigError(
            f"topics.partitions = {config.topics.partitions}, but one learner for all keys "
            "(worker.keyed = false) needs 1; write partitions = 1 in section [topics]"
        )


def topic_problems(topics: Topics, config: WorkerConfig) -> list[str]:
    """Return what is wrong with the topics for this configuration, one line each."""
    problems = list(topics.problems())
    if not problems and not config.worker.keyed and (n := topics.n_partitions()) != 1:
        problems = [
            f"the topics have {n} partitions, but one learner for all keys (worker.keyed = false) "
            "needs 1; make topics with one partition, or write keyed = true"
        ]
    return problems
