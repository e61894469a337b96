"""A Kafka cluster of three nodes on this machine, each of which is a broker and a controller.

with Cluster() as cluster:
    print(cluster.servers)

"""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType

from .kafka_broker import Broker, free_ports

N_NODES = 3
_SETTINGS = {
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "share.coordinator.state.topic.replication.factor": "3",
    "share.coordinator.state.topic.min.isr": "2",
    # Kafka's own defaults: how long it takes until others take over from a node that was killed.
    "broker.session.timeout.ms": "9000",
    "broker.heartbeat.interval.ms": "2000",
}


class Node(Broker):
    """A node of a cluster, with ports and settings that the others know."""

    def __init__(self, number: int, port: int, *, heap_mb: int, properties: Mapping[str, str]):
        self._number = number
        self._own_port = port
        super().__init__(heap_mb=heap_mb, properties=properties)

    def _settle(self) -> None:
        super()._settle()
        self._port = self._own_port
        self.servers = f"127.0.0.1:{self._port}"
        # Formatted directories are kept by this name, and each belongs to one node.
        self._settings = self._settings.rename(self.directory / f"node-{self._number}.properties")


class Cluster:
    """Three nodes with three copies of everything; `with` starts and ends them.

    Parameters
    ----------
    heap_mb
        Largest heap of each node.
    properties
        Added to the settings of each node, or replacing them.

    Attributes
    ----------
    nodes
        The nodes, all of which `start` starts; `stop` and `kill` take down one, in turn.
    servers
        Addresses for clients.

    """

    def __init__(self, *, heap_mb: int = 256, properties: Mapping[str, str] | None = None) -> None:
        ports = free_ports(2 * N_NODES)
        pairs = list(zip(ports[:N_NODES], ports[N_NODES:], strict=True))
        voters = ",".join(f"{n}@127.0.0.1:{pair[1]}" for n, pair in enumerate(pairs, start=1))
        self.nodes = []
        for number, (port, controller) in enumerate(pairs, start=1):
            own = {
                "node.id": str(number),
                "broker.rack": f"rack-{number}",
                "controller.quorum.voters": voters,
                "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}",
                "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
            }
            given = _SETTINGS | own | dict(properties or {})
            self.nodes.append(Node(number, port, heap_mb=heap_mb, properties=given))
        self.servers = ",".join(node.servers for node in self.nodes)
        self._n_outages = 0

    def __enter__(self) -> Cluster:
        try:
            self.start()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for node in self.nodes:
            node.kill()
            node.remove()

    def start(self) -> None:
        """Start all nodes that are down, and wait until they respond."""
        down = [node for node in self.nodes if node.pid is None]
        for node in down:
            node.launch()
        for node in down:
            node.wait()

    def stop(self) -> None:
        """Terminate the next node."""
        self._next().stop()

    def kill(self) -> None:
        """Kill the next node; its data remains."""
        self._next().kill()

    def _next(self) -> Node:
        self._n_outages += 1
        return self.nodes[self._n_outages % N_NODES]
