"""The annotation page: people answer in a browser."""
