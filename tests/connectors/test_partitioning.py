import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.topics import murmur2, partition_of

# of Kafka's own UtilsTest.testMurmur2
KNOWN = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}


@pytest.mark.parametrize("data", KNOWN)
def test_the_hash_is_that_of_kafkas_java_clients(data):
    assert murmur2(data) == KNOWN[data] % 2**32


@given(st.binary())
def test_the_hash_is_that_of_kafka_python(data):
    default = pytest.importorskip("kafka.partitioner.default")
    assert murmur2(data) == default.murmur2(data) % 2**32


@given(st.binary(), st.integers(1, 12))
def test_a_key_is_always_in_the_same_partition_of_those_there_are(key, n):
    assert partition_of(key, n) == partition_of(key, n) < n


def test_records_without_a_key_are_in_the_first_partition():
    assert partition_of(None, 7) == 0
