"""The programs behind the commands."""
