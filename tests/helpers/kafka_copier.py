"""A worker in a process of its own that copies events to predictions and may stop itself.

python kafka_copier.py SERVERS PREFIX STOP_AT [TIMES]: ends with 0 when the group has processed all
events, with 75 when the client fails and 76 when it is fenced. STOP_AT is "nothing", or the step of
the first transaction before which the process stops itself until the test continues it. TIMES is
the factor by which a transaction may last longer than in other tests.
"""

import os
import signal
import sys
from time import monotonic

from connectors.kafka import worker_client
from connectors.topics import BrokerError, FencedError
from tests.helpers import kafka_cases


def stop_before(step):
    """Stop the process the next time a given step of a transaction is called."""
    original = getattr(worker_client, step)

    def stopping(*arguments, **options):
        setattr(worker_client, step, original)
        os.kill(os.getpid(), signal.SIGSTOP)
        return original(*arguments, **options)

    setattr(worker_client, step, stopping)


def main(servers, prefix, stop_at, times="1"):
    longer = {"transaction_s": int(times) * kafka_cases.QUICK["transaction_s"]}
    with kafka_cases.opened(servers, prefix, create=False, timeouts=longer) as topics:
        link = topics.client(group=prefix + "g", instance="copier", max_records=200)
        kafka_cases.settle(link)
        if stop_at != "nothing":
            stop_before(stop_at)
        until = monotonic() + 60.0
        while topics.lags(prefix + "g")["events", 0] > 0 and monotonic() < until:
            records = link.poll(0.2)
            link.commit(
                [kafka_cases.out("predictions", r.value, r.partition, r.key) for r in records]
            )
        link.close()


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except FencedError as error:
        print(error)
        sys.exit(76)
    except BrokerError as error:
        print(error)
        sys.exit(75)
