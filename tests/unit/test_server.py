"""What the composed app does before it serves."""

from __future__ import annotations

import subprocess
import sys

CHECK = """
import sys
from hearth.gateway.server import ABSENT, _remember_what_is_absent
ABSENT["json.nothing"] = "no_such_package"
ABSENT["json.decoder"] = "json"
_remember_what_is_absent()
try:
    import json.nothing
except ModuleNotFoundError:
    print("absent")
import json.decoder
print("present")
"""


def test_what_lacks_a_package_fails_at_once_and_the_rest_is_imported() -> None:
    """A module whose package is not installed can't be imported, any other can."""
    done = subprocess.run([sys.executable, "-c", CHECK], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["absent", "present"]
