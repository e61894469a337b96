"""Learners that keep no examples: what their wrapper may ask of them."""

from __future__ import annotations


class Unretained:
    """A learner whose knowledge of an example does not depend on which others it keeps."""

    @property
    def is_exact(self) -> bool:
        """Whether an example can be relabelled without a trace: no, since none is retained."""
        return False

    @property
    def retains_all(self) -> bool:
        """Whether no example is ever given up, whatever follows."""
        return True
