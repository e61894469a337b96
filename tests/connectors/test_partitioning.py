import re
from pathlib import Path

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


def test_the_document_has_the_numbers_of_two_keys():
    path = Path(__file__).parents[2] / "docs" / "messages.md"
    if not path.is_file():
        pytest.skip("docs/ is not beside the tests")
    told = re.search(
        r"For `([\w-]+)` that is (\d+) modulo the\nnumber, for `([\w-]+)` (\d+), so of four "
        r"partitions they are in (\d) and (\d)",
        path.read_text(encoding="utf-8"),
    )
    keys = told[1].encode(), told[3].encode()
    assert [murmur2(key) & 0x7FFFFFFF for key in keys] == [int(told[2]), int(told[4])]
    assert [partition_of(key, 4) for key in keys] == [int(told[5]), int(told[6])]


def test_records_without_a_key_are_in_the_first_partition():
    assert partition_of(None, 7) == 0
