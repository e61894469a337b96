"""Settings of every test: hypothesis draws the same examples each time, and minds no slowness."""

from hypothesis import settings

settings.register_profile("ci", derandomize=True, deadline=None, max_examples=50)
settings.register_profile("search", deadline=None, max_examples=2000)
settings.load_profile("ci")
