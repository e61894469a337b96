"""What all commands on a deployment share: its topics, and the way to them."""
