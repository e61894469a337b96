"""`streamgp dead-letters`, `forget` and `rebuild`: what a deployment needs now and then."""
