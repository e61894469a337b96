"""The command line of streamgp with a Flink job that keeps no state, to time Flink without state.

The records of each key are in the memory of the Python process, and in no checkpoint.

"""

from collections import defaultdict

from connectors.flink import function
from connectors.keyed_state import MemoryKeyStore
from streamgp.cli.main import main


class StatelessFunction(function.LoopFunction):
    """A function with a store in memory for each key."""

    def open(self, runtime_context):
        super().open(runtime_context)
        self._stores = defaultdict(MemoryKeyStore)

    def _state(self, ctx, now):
        self._store = self._stores[ctx.get_current_key()]
        return super()._state(ctx, now)


if __name__ == "__main__":
    from tests.flink import stateless  # by its name, for the processes of Flink

    function.LoopFunction = stateless.StatelessFunction
    main()
