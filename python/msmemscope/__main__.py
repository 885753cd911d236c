"""`python -m msmemscope` and the `msmemscope` script: hands over to the command's binary."""

from __future__ import annotations

import os
import sys
from typing import NoReturn

from . import _locate


def main() -> NoReturn:
    binary = _locate.command()
    if binary is None:
        sys.stderr.write(
            f"msmemscope: the command {_locate.COMMAND} is not in the package: reinstall "
            "msmemscope, or set MSMEMSCOPE_BUILD_DIR to a build directory\n"
        )
        sys.exit(2)
    os.execv(binary, [binary, *sys.argv[1:]])  # our own binary


if __name__ == "__main__":
    main()
