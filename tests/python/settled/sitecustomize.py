"""For programs that the tests train with on a GPU, found by PYTHONPATH.

Autograd's thread of a device lets go of the last backward some time after it: where Python 3.11 has
begun to end by then, PyTorch 2.15 aborts, recorded or not (about 3 % of short programs).
"""

import atexit
import sys
import time


def _settle() -> None:
    if "torch" in sys.modules:
        time.sleep(0.2)


atexit.register(_settle)  # the first to be registered, and so the last to run
