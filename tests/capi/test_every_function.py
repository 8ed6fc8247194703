"""every_function.c, which must call all of the C API, calls all of it: compared with the committed list of symbols."""

import os
import re

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def test_every_exported_function_is_called():
    with open(os.path.join(SOURCE, "capi", "abi", "symbols.txt"), encoding="ascii") as file:
        symbols = set(file.read().split())
    with open(os.path.join(SOURCE, "tests", "capi", "every_function.c"), encoding="utf-8") as file:
        program = file.read()
    called = set(re.findall(r"\b(inlaid_\w+)\s*\(", program))
    assert symbols - called == set()
