"""`streamgp watch`: a deployment at work, seen from outside."""
