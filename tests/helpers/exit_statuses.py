"""Exit statuses of a worker, in the order in which the documents list them."""

from streamgp.apps.console import (
    DONE,
    FENCED,
    HUNG_UP,
    INTERNAL_ERROR,
    INTERRUPTED,
    LOST_BROKER,
    TERMINATED,
    TOO_MANY_BAD,
    WRONG_USE,
)

OF_A_WORKER = (
    DONE,
    WRONG_USE,
    TOO_MANY_BAD,
    INTERNAL_ERROR,
    LOST_BROKER,
    FENCED,
    HUNG_UP,
    INTERRUPTED,
    TERMINATED,
)
