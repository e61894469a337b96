"""Online random forests on arrays.

- `forest`: several forests over the same examples; `storage`: their trees and examples as arrays.
- `numba_backend`, `numpy_backend`: growth and prediction, compiled or not, with equal results.

"""
