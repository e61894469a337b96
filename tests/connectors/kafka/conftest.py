"""A broker beside the one that all tests share."""

import pytest


@pytest.fixture(scope="package")
def own_broker(broker_of_ones_own):
    """A broker with users, certificates and rights, whose files may be damaged."""
    with broker_of_ones_own(security=True) as made:
        yield made
