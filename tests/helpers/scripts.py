"""Python scripts as text, for tests of what a process leaves behind."""

import subprocess
import sys


def run_script(script, *arguments):
    """Run a script in a process of its own, which may fork and kill."""
    done = subprocess.run(
        [sys.executable, "-c", script, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
