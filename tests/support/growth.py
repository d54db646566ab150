"""How the time that work takes grows with its size."""

import gc
import time


def growth(work, small, large, floor=0.05):
    """Times as long as `work(small)` takes `work(large)`; less than `floor` seconds count as `floor`.

    Where that is more than one and a half times the sizes' ratio it is measured again, up to three times, and the least
    counts: a pause of the machine is over by then, and what is not linear stays so.
    """

    def seconds(size):
        gc.disable()  # a collection looks at all objects of all tests
        start = time.process_time()
        try:
            work(size)
            return time.process_time() - start
        finally:
            gc.enable()

    seconds(min(small, 1_000))  # what is made once
    ratio = float("inf")
    for _ in range(3):
        longest = seconds(large)
        is_quick = longest < 1.5 * large / small * floor  # however long the small one takes
        ratio = min(ratio, longest / (floor if is_quick else max(seconds(small), floor)))
        if ratio < 1.5 * large / small:
            break
    return ratio
