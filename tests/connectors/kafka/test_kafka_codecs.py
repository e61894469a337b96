"""Whatever codec a producer compresses with, a worker reads its records."""

import pytest

from connectors.kafka.client import Connection
from tests.helpers.kafka_cases import linked, opened, poll

CODECS = ("gzip", "snappy", "lz4", "zstd")


def send_compressed(servers, topic, codec, n):
    producer = Connection(servers).producer(compression_type=codec, linger_ms=50)
    for i in range(n):
        producer.send(topic, key=b"ann", value=codec.encode() + b" %d" % i, partition=0)
    producer.flush()
    producer.close()


@pytest.mark.parametrize("codec", CODECS)
def test_records_of_every_codec_reach_a_worker(kafka, kafka_prefix, codec):
    with opened(kafka, kafka_prefix, partitions=1) as topics:
        send_compressed(kafka, kafka_prefix + "events", codec, 500)
        with linked(topics, kafka_prefix + "g") as link:
            records = poll(link, 500)
        assert [r.value for r in records] == [codec.encode() + b" %d" % i for i in range(500)]
