"""Gaussian processes on arrays; they know neither features by name nor River.

- `exact`: regression on several targets with one covariance; `cholesky`: its packed factor.
- `bounded`: numbered examples, a window or a bound on them; `sparse`: exact at first, then
`inducing_regression` at the points of `inducing_points`.
- `marginal_likelihood`, `hyperparameters`: fits of kernel and noise variance.
- `random_features`, `linear_experts`, `expert_evidence`: ensembles of random Fourier features.
- `joint_posterior`: a fixed pool of points, and points with pending answers; `latent_noise`:
  classification by expectation propagation with privileged noise.
- `arrays`: growing arrays.

"""
