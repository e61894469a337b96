"""Flink job: reads the inputs from Kafka, processes them key by key, writes results exactly once.

Source and sink are Flink's own Kafka connector in its table form: only that gives Python access to
the headers, offsets and times of records. All results go through one sink, with one transaction per
partition and checkpoint, so that no reader sees only some of the results of a checkpoint's inputs.

"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pyflink.common import Row, Types
from pyflink.datastream import DataStream, KeyedProcessFunction, StreamExecutionEnvironment
from pyflink.java_gateway import get_gateway
from pyflink.table import DataTypes, Schema, StreamTableEnvironment, TableDescriptor

from connectors.flink.function import OUTPUT, LoadFunction, LoopFunction, state_key
from connectors.topics import COMPACTED, WORKER_INPUTS, Place, TopicName
from connectors.wire.state_records import ERASED_BY, SEPARATOR

OUTPUTS: tuple[TopicName, ...] = ("predictions", "requests", "consensus", "dead-letters", "state")
"""Topics written; to `state`, which Flink keeps itself, only labels taken back from annotators."""
MAX_PARALLELISM = 1024
"""The largest number of tasks among which keys can be divided; state with another value cannot be
restored."""
TRANSACTION_S = 900.0
"""How long a transaction may be open: the most that a broker allows by default. A job must not be
down for longer: results that belong to a checkpoint, but that the broker has aborted by then, are
lost."""

_BYTES = DataTypes.BYTES()
_HEADERS = DataTypes.MAP(DataTypes.STRING().not_null(), DataTypes.BYTES().not_null())


@dataclass(frozen=True, kw_only=True)
class JobSettings:
    """Settings of a job that do not depend on its loops.

    Parameters
    ----------
    group
        Names the transactions; also the source that the written records name.
    reads_as
        Kafka group for which the positions in the inputs are committed.
    names
        What the topics are called on the broker.
    n_partitions
        Number of partitions of each topic.
    client
        Properties of Kafka's client: servers and security.
    keyed
        Whether each key has a loop of its own.
    ends
        End offsets, up to which the inputs are read; the state is then written when the job is
        drained. None: read without end.

    """

    group: str
    reads_as: str
    names: Mapping[TopicName, str]
    n_partitions: int
    client: Mapping[str, str]
    keyed: bool = True
    ends: Mapping[Place, int] | None = None


def build(
    environment: StreamExecutionEnvironment, settings: JobSettings, function: LoopFunction
) -> None:
    """Add the job to an environment."""
    environment.set_max_parallelism(MAX_PARALLELISM)
    tables = StreamTableEnvironment.create(environment)
    consensus = settings.names["consensus"]
    ends: dict[tuple[str, int], int] | None = None
    if settings.ends is not None:
        ends = {(settings.names[name], n): end for (name, n), end in settings.ends.items()}

    def is_input(row: Row) -> bool:
        if ends is not None and row[2] >= ends[row[0], row[1]]:
            return False
        # In the consensus log only others' deletions are inputs.
        return row[0] != consensus or (row[6] is None and ERASED_BY not in (row[4] or {}))

    source = _source(settings, WORKER_INPUTS, {"scan.startup.mode": "group-offsets"})
    inputs = tables.to_data_stream(tables.from_descriptor(source)).filter(is_input)
    written = _keyed(inputs, settings, function)
    columns = (  # in the order of the sink's columns
        Schema.new_builder()
        .column("topic", DataTypes.STRING())
        .column("headers", _HEADERS)
        .column("key", _BYTES)
        .column("value", _BYTES)
        .build()
    )
    statements = tables.create_statement_set()
    statements.add_insert(
        _sink(settings),
        tables.from_data_stream(_partitioned(written, settings.n_partitions), columns),
    )
    statements.attach_as_datastream()


def build_load(
    environment: StreamExecutionEnvironment, settings: JobSettings, function: LoadFunction
) -> None:
    """Add a job that only loads what workers have learned, from which the main job continues.

    With each checkpoint it commits the group's positions in the topics `state` and `consensus`.
    """
    environment.set_max_parallelism(MAX_PARALLELISM)
    tables = StreamTableEnvironment.create(environment)
    # Separate ids for its source's state: the main job must not take that state for its own.
    tables.get_config().set("table.exec.uid.generation", "ALWAYS")
    tables.get_config().set("table.exec.uid.format", "load_<id>_<transformation>")
    source = _source(settings, COMPACTED, {"scan.startup.mode": "earliest-offset"})
    keyed = settings.keyed

    def is_of_a_key(row: Row) -> bool:
        return not (keyed and (row[5] or b"").startswith(SEPARATOR.encode()))

    records = tables.to_data_stream(tables.from_descriptor(source)).filter(is_of_a_key)
    columns = Schema.new_builder().column("value", _BYTES).build()
    nowhere = TableDescriptor.for_connector("blackhole").schema(columns).build()
    statements = tables.create_statement_set()
    statements.add_insert(
        nowhere, tables.from_data_stream(_keyed(records, settings, function), columns)
    )
    statements.attach_as_datastream()


def _keyed(stream: DataStream, settings: JobSettings, function: KeyedProcessFunction) -> DataStream:
    """Apply a function to the records of each key, with the state that both jobs share."""
    roles = {name: topic for topic, name in settings.names.items()}
    keyed = settings.keyed

    def key_of(row: Row) -> str:
        return state_key(row, roles, keyed=keyed)

    processed = stream.key_by(key_of, Types.STRING()).process(function, OUTPUT)
    return processed.name("loops").uid("loops")


def _partitioned(written: DataStream, n_partitions: int) -> DataStream:
    """Send each record to the sink's task that writes its partition.

    This is `partition_custom` without Python functions, which would need processes of their own.
    """
    jvm = get_gateway().jvm.org.apache.flink
    by_first_column = jvm.streaming.api.functions.python.PartitionCustomKeySelector()
    to_its_number = jvm.python.legacy.IdPartitioner()
    stream = written._j_data_stream.partitionCustom(to_its_number, by_first_column)
    stream.getTransformation().setParallelism(n_partitions)
    return DataStream(stream)


def _source(
    settings: JobSettings, topics: Iterable[TopicName], options: Mapping[str, str]
) -> TableDescriptor:
    columns = (
        Schema.new_builder()
        .column_by_metadata("topic", DataTypes.STRING(), is_virtual=True)
        .column_by_metadata("partition", DataTypes.INT(), is_virtual=True)
        .column_by_metadata("offset", DataTypes.BIGINT(), is_virtual=True)
        .column_by_metadata("timestamp", DataTypes.TIMESTAMP_LTZ(3), is_virtual=True)
        .column_by_metadata("headers", _HEADERS, is_virtual=True)
        .column("key", _BYTES)
        .column("value", _BYTES)
        .build()
    )
    options = {
        **options,
        "topic": ";".join(settings.names[topic] for topic in topics),
        "properties.group.id": settings.reads_as,
        "properties.auto.offset.reset": "earliest",
        "properties.isolation.level": "read_committed",
        # Keys would move to partitions that the topics are given later, away from their learners.
        "scan.topic-partition-discovery.interval": "0 s",
    }
    return _table(columns, settings, options)


def _sink(settings: JobSettings) -> TableDescriptor:
    columns = (
        Schema.new_builder()
        .column_by_metadata("topic", DataTypes.STRING())
        .column_by_metadata("headers", _HEADERS)
        .column("key", _BYTES)
        .column("value", _BYTES)
        .build()
    )
    options = {
        "topic": ";".join(settings.names[topic] for topic in OUTPUTS),
        "sink.delivery-guarantee": "exactly-once",
        "sink.transactional-id-prefix": f"streamgp-{settings.group}",
        "sink.partitioner": "fixed",
        "sink.parallelism": str(settings.n_partitions),
        "properties.transaction.timeout.ms": str(round(1e3 * TRANSACTION_S)),
    }
    return _table(columns, settings, options)


def _table(columns: Schema, settings: JobSettings, options: Mapping[str, str]) -> TableDescriptor:
    table = (
        TableDescriptor.for_connector("kafka")
        .schema(columns)
        .option("key.format", "raw")
        .option("key.fields", "key")
        .option("value.format", "raw")
        .option("value.fields-include", "EXCEPT_KEY")
    )
    client = {f"properties.{name}": value for name, value in settings.client.items()}
    for name, value in {**client, **options}.items():
        table = table.option(name, value)
    return table.build()
