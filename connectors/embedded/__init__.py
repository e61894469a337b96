"""Topics in a SQLite database: a broker for one machine, without a server.

- `topics`: the broker protocol; `database`: tables, positions, checksums.
- `directory`: the directory that holds it, its lock; `migration`: import of older line files.

"""
