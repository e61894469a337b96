"""A thread that looks every few seconds whether the topics are those that a worker began with.

The client itself notices new partitions after five minutes, and says nothing of topics that were
deleted, or deleted and made again. A look is one request for the metadata of seven topics.

"""

from __future__ import annotations

from collections.abc import Mapping
from threading import Event, Thread

from connectors.kafka.admin import Administration
from connectors.kafka.client import CLIENT_ERRORS, Connection
from connectors.kafka.topic_identity import Shape, check_same
from connectors.topics import BrokerError, RefusedError, TopicName

_N_LOOKS = 2


class TopicMonitor:
    """Compares topics with what they were, on a connection of its own.

    Parameters
    ----------
    connection
        Where.
    names
        The names of the topics on the broker.
    shapes
        The topics at the start.

    """

    # _fault  why the worker must end
    # _n_odd  how many looks in a row have found topics that are gone or others: a broker of one
    #         node that starts again believes for a moment that it has none

    def __init__(
        self,
        connection: Connection,
        names: Mapping[TopicName, str],
        shapes: Mapping[TopicName, Shape],
    ) -> None:
        self._connection = connection
        self._administration = Administration(connection, names, partitions=1, replication=-1)
        self._names = names
        self._shapes = shapes
        self._every_s = connection.timeouts.look_s
        self._fault: BrokerError | None = None
        self._n_odd = 0
        self._is_over = Event()
        self._thread = Thread(target=self._watch, name="streamgp: topic monitor", daemon=True)
        self._thread.start()

    def check(self) -> None:
        """Raise what the last look has found.

        Raises
        ------
        RefusedError
            If a topic has another number of partitions.
        BrokerError
            If one was deleted, or deleted and made again, or if the topics cannot be watched.

        """
        if self._fault is not None:
            raise self._fault

    def close(self) -> None:
        """End the thread, which lets go of its connection by itself."""
        self._is_over.set()

    def change(self, administration: Administration) -> BrokerError | None:
        """Look now, by the caller's connection; return what has changed as an error."""
        try:
            check_same(self._names, self._shapes, administration.shapes())
        except BrokerError as error:
            return error
        return None

    def _watch(self) -> None:
        while not self._is_over.wait(self._every_s):
            try:
                self._look()
            except Exception as error:  # or nobody would know that nothing is watched any more
                self._fault = self._connection.said(error, "describe topics")
        self._administration.close()

    def _look(self) -> None:
        try:
            found = self._administration.shapes()
        except CLIENT_ERRORS:
            return  # the broker is away, and the worker will notice where that matters
        try:
            check_same(self._names, self._shapes, found)
            self._n_odd = 0
        except RefusedError as error:
            self._fault = error
        except BrokerError as error:
            self._n_odd += 1
            if self._n_odd >= _N_LOOKS:
                self._fault = error
