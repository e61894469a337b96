"""River estimators over dictionaries of features, around the arrays of `gp` and `trees`.

- `gp_classifier`, `gp_regressor`: one Gaussian process; `gp_core`: what they share; `gp_tuning`:
  when their hyperparameters are fitted.
- `ensemble_gp`: ensembles of random Fourier features; `ensemble_core`: what they share.
- `privileged_gp`: privileged noise (GPC+); `privileged_core`, `privileged_inputs`: its core and
  its inputs.
- `forest`, `boosting`: online random forests, and boosting of weighted classifiers.
- `river_adapters`: data frames and third-party estimators.

"""
