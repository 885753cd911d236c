"""The version, one line, kept equal to the one in CMakeLists.txt (a test compares them)."""

__version__ = "0.1.0"
