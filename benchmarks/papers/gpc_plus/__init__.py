"""The paper on classification with privileged noise (GPC+)."""
