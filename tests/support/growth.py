"""How the time that work takes grows with its size."""

import time


def growth(work, small, large):
    """Times as long as `work(small)` takes `work(large)`; less than 50 ms count as 50."""

    def seconds(size):
        start = time.process_time()
        work(size)
        return time.process_time() - start

    seconds(min(small, 1_000))  # what is made once
    return seconds(large) / max(seconds(small), 0.05)
