"""Models that a loop may hold, of each kind."""

from river import feature_extraction, naive_bayes, neighbors, preprocessing, stats, utils

from streamgp import GPClassifier, SkepticalClassifier, budgets, isgp, query

MODELS = {
    "default": lambda: isgp(seed=3),
    "short warm-up": lambda: SkepticalClassifier(GPClassifier(), warm_up=20, seed=3),
    "paper": lambda: isgp("paper", seed=3),
    "at most": lambda: SkepticalClassifier(
        GPClassifier(), budget=budgets.AtMost(9), warm_up=8, seed=3
    ),
    "review": lambda: SkepticalClassifier(
        GPClassifier(),
        query.AlwaysAsk(),
        query.SkepticalChallenge(0.7),
        warm_up=8,
        review=query.LeaveOneOutReview(0.2, every=2, budget=budgets.RateBudget(0.7, seed=3)),
        seed=3,
    ),
    "at most per": lambda: SkepticalClassifier(
        GPClassifier(), query.AlwaysAsk(), budget=budgets.AtMostPer(3, 20.0), warm_up=8, seed=3
    ),
    "rate": lambda: SkepticalClassifier(
        GPClassifier(), query.Entropy(0.0), budget=budgets.RateBudget(0.4), warm_up=8, seed=3
    ),
    "naive Bayes": lambda: SkepticalClassifier(naive_bayes.GaussianNB(), warm_up=8, seed=3),
    "neighbours": lambda: SkepticalClassifier(neighbors.KNNClassifier(), warm_up=8, seed=3),
    "pipeline": lambda: SkepticalClassifier(
        preprocessing.StandardScaler() | preprocessing.MinMaxScaler() | GPClassifier(),
        warm_up=20,
        seed=3,
    ),
    "windows": lambda: SkepticalClassifier(
        feature_extraction.Agg("n", None, utils.Rolling(stats.Mean, window_size=5))
        | preprocessing.StandardScaler()
        | GPClassifier(),
        warm_up=20,
        seed=3,
    ),
    "supervised pipeline": lambda: SkepticalClassifier(
        feature_extraction.TargetAgg(by="n", how=stats.Count()) | GPClassifier(),
        warm_up=20,
        seed=3,
    ),
}
