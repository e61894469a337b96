"""The command line of streamgp with a Flink job that also records what it takes, and when.

It writes a record with the header `trace` to `dead-letters` for each step, in one transaction with
the output of the step: a step that a failure rolled back leaves no trace.

"""

import json

from connectors.flink import function
from connectors.keyed_state import KeyedState
from connectors.topics import Outgoing
from streamgp.cli.main import main
from tests.helpers.conversations import TRACE


class TracedState(KeyedState):
    """State that records each step before it is taken."""

    def step(self, record, now):
        place = [record.topic, record.offset]
        return [self._trace([*place, now]), *super().step(record, now)]

    def on_time(self, now):
        return [self._trace([None, self.entity, now]), *super().on_time(now)]

    def _trace(self, content):
        return Outgoing(
            topic="dead-letters",
            partition=self._number,
            key=None,
            value=json.dumps(content).encode(),
            headers=[(TRACE, b"1")],
        )


class TracedFunction(function.LoopFunction):
    """A function that creates such states."""

    def open(self, runtime_context):
        function.KeyedState = TracedState
        super().open(runtime_context)

    def _state(self, ctx, now):
        state = super()._state(ctx, now)
        state.entity = ctx.get_current_key().partition(":")[2]
        return state


if __name__ == "__main__":
    from tests.flink import traced  # by its name, for the processes of Flink

    function.LoopFunction = traced.TracedFunction
    main()
