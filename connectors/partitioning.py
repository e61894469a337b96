"""Which partition a key belongs to: the one that Kafka's own clients choose.

A feeder, an annotator's program and a worker put the records of one entity into partitions of the
same number, whatever wrote them.

"""

from __future__ import annotations

import struct

_MASK = 0xFFFFFFFF
_SEED = 0x9747B28C
_M = 0x5BD1E995


def partition_of(key: bytes | None, n_partitions: int) -> int:
    """Return the partition of a key; records without one go to the first.

    Examples
    --------
    >>> [partition_of(key, 4) for key in (b"ann", b"bob", b"eve", None)]
    [2, 2, 0, 0]

    """
    return 0 if key is None else (murmur2(key) & 0x7FFFFFFF) % n_partitions


def murmur2(data: bytes) -> int:
    """Return the 32 bits of MurmurHash2 with Kafka's seed, as an unsigned number.

    Examples
    --------
    >>> murmur2(b"foobar") - 2**32  # as Java's clients print it
    -790332482

    References
    ----------
    [^1]: Appleby, A., 2008. MurmurHash2. Kafka: org.apache.kafka.common.utils.Utils.murmur2.

    """
    n_whole = len(data) & ~3
    h = _SEED ^ len(data)
    for (k,) in struct.iter_unpack("<I", data[:n_whole]):
        k = k * _M & _MASK
        k = (k ^ k >> 24) * _M & _MASK
        h = (h * _M & _MASK) ^ k
    if rest := data[n_whole:]:
        h = (h ^ int.from_bytes(rest, "little")) * _M & _MASK
    h = (h ^ h >> 13) * _M & _MASK
    return h ^ h >> 15
