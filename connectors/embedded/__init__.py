"""Topics in a SQLite database: a broker for one machine, without a server."""
