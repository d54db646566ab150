"""Arrays in one file: what was written is read, mapped and not to be changed; half a file is an error."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from sire_core.storage.array_file import map_arrays, save_arrays

ARRAY = st.sampled_from(["<i4", "<i8", "<u2", "<f4", "|u1", "|b1", "|S24"]).flatmap(
    lambda kind: arrays.arrays(kind, arrays.array_shapes(min_dims=1, max_dims=2, min_side=0, max_side=7))
)


@given(given=st.dictionaries(st.text(max_size=5), ARRAY, max_size=5))
def test_arrays_are_read_as_they_were_written(given, tmp_path_factory):
    file = tmp_path_factory.mktemp("arrays") / "arrays.bin"
    save_arrays(file, given)
    found = map_arrays(file)
    assert list(found) == list(given)
    for name, array in given.items():
        assert (found[name].dtype, found[name].shape) == (array.dtype, array.shape)
        assert found[name].tobytes() == array.tobytes()
        assert found[name].ctypes.data % 64 == 0 or not array.size


def test_what_is_mapped_cannot_be_changed(tmp_path):
    save_arrays(tmp_path / "a", {"numbers": np.arange(5)})
    with pytest.raises(ValueError, match="read-only"):
        map_arrays(tmp_path / "a")["numbers"][0] = 1


@pytest.mark.parametrize("kept", [8, 60, 100])
def test_half_a_file_is_an_error(tmp_path, kept):
    file = tmp_path / "a"
    save_arrays(file, {"numbers": np.arange(5), "others": np.arange(9.0)})
    file.write_bytes(file.read_bytes()[:kept])
    with pytest.raises(ValueError):
        map_arrays(file)
