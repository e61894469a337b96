"""Command of `tests/chaos`."""

from tests.chaos.__main__ import main

if __name__ == "__main__":
    raise SystemExit(main())
