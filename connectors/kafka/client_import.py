"""The client of Kafka, loaded without its warnings: what is used of it here, and nothing else."""

from __future__ import annotations

import warnings

with warnings.catch_warnings():
    # The client reads its tables in a way that Python 3.11 and 3.12 advise against.
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
    from kafka import errors as kafka_errors
    from kafka.admin import ConfigResource, ConfigResourceType, MemberToRemove, OffsetSpec
    from kafka.consumer.fetcher import Fetcher
    from kafka.consumer.subscription_state import ConsumerRebalanceListener
    from kafka.coordinator.assignors.range import RangePartitionAssignor
    from kafka.future import Future
    from kafka.net.sasl import get_sasl_mechanism
    from kafka.producer.future import FutureRecordMetadata
    from kafka.producer.producer_batch import ProducerBatch
    from kafka.protocol.consumer import IsolationLevel
    from kafka.record.default_records import DefaultRecordBatch
    from kafka.record.memory_records import MemoryRecordsBuilder
    from kafka.structs import MemberState, OffsetAndMetadata

__all__ = [
    "ConfigResource",
    "ConfigResourceType",
    "ConsumerRebalanceListener",
    "DefaultRecordBatch",
    "Fetcher",
    "Future",
    "FutureRecordMetadata",
    "IsolationLevel",
    "KafkaAdminClient",
    "KafkaConsumer",
    "KafkaProducer",
    "MemberState",
    "MemberToRemove",
    "MemoryRecordsBuilder",
    "OffsetAndMetadata",
    "OffsetSpec",
    "ProducerBatch",
    "RangePartitionAssignor",
    "TopicPartition",
    "get_sasl_mechanism",
    "kafka_errors",
]
