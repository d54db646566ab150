"""Products on the calling thread are those of numpy, whatever their sizes and types."""

import numpy as np
import pytest

from sire_core.arrays.products import all_products, row_products


@pytest.mark.parametrize(("rows", "others", "width"), [(6, 1000, 64), (0, 10, 64), (3, 0, 64), (700, 5000, 40)])
def test_products_are_those_of_numpy(rows, others, width):
    random = np.random.default_rng(0)
    left, right = (random.random((count, width), dtype=np.float32) for count in (rows, others))
    np.testing.assert_allclose(all_products(left, right), left @ right.T, rtol=1e-5)
    np.testing.assert_allclose(row_products(right, np.arange(width)), right @ np.arange(width), rtol=1e-5)
    np.testing.assert_array_equal(row_products(right > 0.5, np.ones(width)), (right > 0.5).sum(axis=1))
