"""The paper on active online Confidence Boosting."""
