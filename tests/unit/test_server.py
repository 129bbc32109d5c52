"""What the composed app does before it serves."""

from __future__ import annotations

import subprocess
import sys

from hearth.config.settings import HearthSettings, RecallSettings, SharesSettings
from hearth.gateway.server import recall_policy
from hearth.memory.recall.policy import RecallPolicy, Shares

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


def test_recall_takes_its_policy_from_the_settings() -> None:
    """The settings' defaults are the engine's own; what is set reaches it."""
    assert recall_policy(HearthSettings()) == RecallPolicy()
    given = RecallSettings(budget_tokens=300, floor=0.7, shares=SharesSettings(facts=0.1, conversation=0.6))
    policy = recall_policy(HearthSettings(recall=given))
    assert (policy.budget_tokens, policy.floor) == (300, 0.7)
    assert policy.shares == Shares(facts=0.1, conversation=0.6)
