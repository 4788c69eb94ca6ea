import sys
from pathlib import Path

# The decoder and the helpers for running programs are those of the other Python tests.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "python"))
