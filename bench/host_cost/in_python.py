"""malloc_pairs inside a Python process: in_python.py LIBRARY THREADS DEPTH PAIRS KEPT."""

import ctypes
import sys

ctypes.CDLL(sys.argv[1]).malloc_pairs(*(ctypes.c_long(int(word)) for word in sys.argv[2:6]))
