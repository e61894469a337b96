"""CPU time of Flink for a record, with and without state: python -m tests.flink.throughput [--help]

A real Kafka broker with waiting events of many keys, a share of them with labels; the job processes
them in pairs of runs: once as it is, once with everything in the memory of its processes. The CPU
time of all processes, JVM and Python, is counted over the later part of the records, when
everything is running. CPU time measures the cost of a record even on a machine with other load;
wall-clock time is shown as well.

"""

import argparse
import json
import os
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path

from connectors.topics import Outgoing, partition_of
from tests.flink.__main__ import ENVIRONMENT, N_PARTITIONS, Job, deployed
from tests.kafka_broker import Broker, Unavailable

WARM = 0.4
"""The share of the records before the clock starts."""
_TICKS = os.sysconf("SC_CLK_TCK")


def send(topics, n_keys, n_events, labelled):
    rng = random.Random(1)
    writer = topics.writer("feeder")
    for n in range(n_events):
        key = f"key{n % n_keys}".encode()
        x = {f"f{i}": rng.random() for i in range(4)}
        value = {"event_id": f"e{n}", "x": x}
        if rng.random() < labelled:
            value["y"] = "home" if x["f0"] + x["f1"] < 1.0 else "work"
        number = partition_of(key, N_PARTITIONS)
        data = json.dumps(value).encode()
        writer.send(Outgoing(topic="events", partition=number, key=key, value=data))
    writer.close()


def cpu_s(job):
    """Return the CPU time that the processes of a job have taken."""
    total = 0
    for pid, _ in job.processes():
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        total += int(fields[11]) + int(fields[12])
    return total / _TICKS


def work_off(broker, python, directory, module, options, prefix):
    """Return records, CPU seconds and seconds of the later part, and a checkpoint's bytes."""
    path, _, topics = deployed(broker, directory, prefix)
    send(topics, options.keys, options.events, options.labelled)
    flags = [word for each in options.flink for word in ("-D", each)]
    job = Job(python, path, directory, module=module, flags=flags)
    job.start(options.parallelism)
    try:
        reader, n, began = topics.reader(["predictions"]), 0, None
        while n < options.events:
            n += len(reader.poll(0.5))
            job.check()
            if began is None and n >= WARM * options.events:
                began = n, cpu_s(job), time.monotonic()
        n_then, cpu_then, then = began
        cpu, wall = cpu_s(job) - cpu_then, time.monotonic() - then
        reader.close()
        time.sleep(3.0)
        job.stop()
        kept = max(
            (directory / prefix / "flink").glob("*/chk-*"), key=lambda at: at.stat().st_mtime
        )
        size = sum(file.stat().st_size for file in kept.rglob("*") if file.is_file())
    finally:
        job.kill()
        topics.close()
    return (n - n_then), cpu, wall, size


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--python", type=Path, default=ENVIRONMENT / "bin/python")
    parser.add_argument("--keys", type=int, default=100)
    parser.add_argument("--events", type=int, default=50_000)
    parser.add_argument("--labelled", type=float, default=0.05, help="share with a label")
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--parallelism", type=int, default=1)
    parser.add_argument("-D", dest="flink", action="append", default=[], metavar="KEY=VALUE")
    options = parser.parse_args()
    if not options.python.exists():
        print(f"left out: no PyFlink at {options.python}")
        return 0
    ratios = []
    try:
        with Broker() as broker, tempfile.TemporaryDirectory(prefix="streamgp-flink-") as name:
            for pair in range(options.pairs):
                each = {}
                modules = {"state": "streamgp", "no state": "tests.flink.stateless"}
                for kind in sorted(modules, reverse=bool(pair % 2)):
                    found = work_off(
                        broker,
                        str(options.python),
                        Path(name),
                        modules[kind],
                        options,
                        f"p{pair}{kind[0]}",
                    )
                    n, cpu, wall, size = found
                    each[kind] = cpu / n
                    print(
                        f"{kind}: {1e3 * cpu / n:.3f} ms CPU per record, {n / wall:.0f} per s, "
                        f"checkpoint {size / 1e6:.2f} MB, load {os.getloadavg()[0]:.1f}",
                        flush=True,
                    )
                ratios.append(each["no state"] / each["state"])
    except Unavailable as missing:
        print(f"left out: {missing}")
        return 0
    print(f"speed with state / without: {100 * statistics.median(ratios):.0f} %")
    return 0


if __name__ == "__main__":
    sys.exit(main())
