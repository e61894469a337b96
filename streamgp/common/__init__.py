"""Functions of numbers, names and settings that every other package uses."""
