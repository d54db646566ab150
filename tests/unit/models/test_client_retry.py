from __future__ import annotations

from email.utils import formatdate

import pytest

from sire_core.errors import ConfigurationError
from sire_core.models.openai.faults import RetryPolicy, retry_after


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "2"}, 2.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": formatdate(1_000_060, usegmt=True)}, 60.0),
        ({"retry-after": formatdate(999_000, usegmt=True)}, 0.0),
        ({"retry-after": "soon"}, None),
        ({}, None),
    ],
)
def test_retry_after(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers, now=1_000_000.0) == seconds


def test_back_off_grows_is_capped_and_repeats_with_a_seed() -> None:
    policy = RetryPolicy(base=1.0, cap=8.0, seed=3)
    source = policy.jitter()
    delays = [policy.delay(attempt, None, source) for attempt in range(8)]
    assert all(0.5 * min(8, 2**n) <= delay <= min(8, 2**n) for n, delay in enumerate(delays))
    again = policy.jitter()
    assert delays == [policy.delay(attempt, None, again) for attempt in range(8)]
    assert 60.0 <= policy.delay(0, 60.0, source) <= 61.0
    with pytest.raises(ConfigurationError):
        RetryPolicy(max_retries=-1)
