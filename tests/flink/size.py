"""State, checkpoints and restarts of many keys on a cluster: python -m tests.flink.size [--help]

A real Kafka broker, a standalone cluster, and waiting events of many keys, a share of them with
labels. Once all are processed: the size and duration of a checkpoint, per key and compared with
what a worker would keep of the same key in its topics; the time until the next event is predicted
after a stop with a savepoint and a start with another parallelism, and after all task managers were
killed.

"""

import argparse
import json
import os
import random
import signal
import statistics
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import urlsplit

from connectors.topics import Outgoing, partition_of
from streamgp.apps.deployment.deployment import build_loops
from tests.flink.__main__ import ENVIRONMENT, N_PARTITIONS, deployed
from tests.flink.cluster import StandaloneCluster, submit
from tests.flink.throughput import send
from tests.helpers.conversations import OnWorker
from tests.kafka_broker import Broker, Unavailable

GROUP, N_LOOKED_AT, N_CHECKPOINTS = "size", 100, 5


def of_worker(topics, config, n_keys):
    """Return the bytes that a worker keeps of a key in its topics, as a mean over some keys."""
    keys = {f"key{n}".encode() for n in random.Random(1).sample(range(n_keys), N_LOOKED_AT)}
    settings, workers, now = build_loops(config, source="test"), {}, time.time()
    reader = topics.reader(["events"])
    while not reader.caught_up:
        for record in reader.poll(0.5):
            if record.key in keys:
                if record.key not in workers:
                    workers[record.key] = OnWorker(settings, GROUP, record.partition)
                workers[record.key].step(record, now)
    reader.close()
    sizes = [
        sum(len(key) + len(value) for _, key, value in worker.store.items() if key[:1] != b"\x1f")
        for worker in workers.values()
    ]
    assert len(sizes) == N_LOOKED_AT
    return statistics.mean(sizes)


class Clock:
    def __init__(self):
        self._began = time.monotonic()

    def __call__(self):
        return time.monotonic() - self._began

    def tell(self, text):
        print(f"{self():.0f} s: {text}; load {os.getloadavg()[0]:.0f}", flush=True)


class Predictions:
    def __init__(self, topics):
        self._topics, self._reader, self.n = topics, topics.reader(["predictions"]), 0

    def wait_for(self, n, cluster, patience_s):
        until = time.monotonic() + patience_s
        while self.n < n:
            self.n += len(self._reader.poll(0.5))
            cluster.check()
            assert time.monotonic() < until, f"{self.n} of {n} events were predicted"

    def wait_for_one_more(self, cluster, name):
        """Send an event of a key, and wait until it is predicted."""
        key, writer = b"key0", self._topics.writer("feeder")
        value = json.dumps({"event_id": name, "x": {f"f{i}": 0.5 for i in range(4)}}).encode()
        number = partition_of(key, N_PARTITIONS)
        writer.send(Outgoing(topic="events", partition=number, key=key, value=value))
        writer.close()
        self.wait_for(self.n + 1, cluster, 300.0)


def checkpoints(cluster):
    """Return the cluster's data on the last checkpoints, once a few more are complete."""
    (job,) = cluster.jobs()
    began = cluster.ask(f"/jobs/{job}/checkpoints")["counts"]["completed"]
    while True:
        found = cluster.ask(f"/jobs/{job}/checkpoints")
        if found["counts"]["completed"] >= began + N_CHECKPOINTS:
            done = [each for each in found["history"] if each["status"] == "COMPLETED"]
            return done[:N_CHECKPOINTS]
        time.sleep(1.0)


def bytes_in(directory):
    return sum(path.stat().st_size for path in Path(directory).rglob("*") if path.is_file())


def run(python, directory, options):
    flags = [word for each in options.flink for word in ("-D", each)]
    n_events = options.keys * options.events
    with Broker() as broker:
        path, config, topics = deployed(broker, directory, GROUP)
        send(topics, options.keys, n_events, options.labelled)
        cluster, clock = StandaloneCluster(python, directory), Clock()
        try:
            cluster.start_manager()
            for _ in range(options.task_managers):
                cluster.start_worker()
            submit(cluster, python, path, directory, options.parallelism[0], flags=flags)
            clock.tell("submitted")
            predictions = Predictions(topics)
            predictions.wait_for(n_events, cluster, 1800.0)
            clock.tell(f"{n_events} events of {options.keys} keys")
            done = checkpoints(cluster)
            size = statistics.median(each["state_size"] for each in done)
            took = [each["end_to_end_duration"] for each in done]
            kept = of_worker(topics, config, options.keys)
            of_key = size / options.keys
            clock.tell(
                f"a checkpoint has {size / 1e6:.1f} MB and takes {statistics.median(took):.0f} ms "
                f"({min(took)} to {max(took)}); {of_key:.0f} bytes per "
                f"key, a worker's {kept:.0f}: ratio {of_key / kept:.2f}"
            )
            for parallelism in options.parallelism[1:]:
                began = clock()
                savepoint = cluster.stop()
                stopped = clock() - began
                submit(
                    cluster, python, path, directory, parallelism, begin_at=savepoint, flags=flags
                )
                submitted = clock() - began
                predictions.wait_for_one_more(cluster, f"stopped-{parallelism}")
                clock.tell(
                    f"parallelism {parallelism}: stopped with a savepoint of "
                    f"{bytes_in(urlsplit(savepoint).path) / 1e6:.1f} MB after {stopped:.1f} s, "
                    f"submitted after {submitted:.1f} s, an event predicted after "
                    f"{clock() - began:.1f} s"
                )
            began = clock()
            for _ in range(options.task_managers):
                cluster.kill_worker()
            for _ in range(options.task_managers):
                cluster.start_worker()
            predictions.wait_for_one_more(cluster, "killed")
            clock.tell(
                f"killed all task managers: an event was predicted after {clock() - began:.1f} s"
            )
        finally:
            cluster.kill()
            topics.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--python", type=Path, default=ENVIRONMENT / "bin/python")
    parser.add_argument("--keys", type=int, default=10_000)
    parser.add_argument("--events", type=int, default=4, help="for each key")
    parser.add_argument("--labelled", type=float, default=0.25, help="share with a label")
    parser.add_argument("--task-managers", type=int, default=2, help="of two slots each")
    parser.add_argument("--parallelism", type=int, nargs="+", default=[2, 4, 1])
    parser.add_argument("-D", dest="flink", action="append", default=[], metavar="KEY=VALUE")
    options = parser.parse_args()
    if not options.python.exists():
        print(f"left out: no PyFlink at {options.python}")
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # also ends the cluster and the broker
    try:
        with tempfile.TemporaryDirectory(prefix="streamgp-flink-") as name:
            run(options.python, Path(name), options)
    except Unavailable as missing:
        print(f"left out: {missing}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
