"""What one process keeps on its disk: snapshots, and a shelf for loops that wait."""
