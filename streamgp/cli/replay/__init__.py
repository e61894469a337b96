"""`streamgp replay`, `report` and `demo`: recorded logs, played to the end."""
