"""Public tables and logs, and the learners that `isgp()` is compared with on them."""
