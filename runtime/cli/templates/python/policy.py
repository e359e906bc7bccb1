"""Refuses a deployment before its review, and commands of agents that push to a repository."""

import json

from wit_world import exports
from componentize_py_types import Err


def fields(text: str) -> dict:
    value = json.loads(text)
    return value if isinstance(value, dict) else {}


class PolicyRules(exports.PolicyRules):
    """The text of an `Err` is the reason of the refusal."""

    def judge_call(self, call: str) -> None:
        asked = fields(call)
        # The arguments are null if the stage can read hold-outs.
        command = (asked.get("arguments") or {}).get("command")
        if asked.get("tool") == "shell" and "git push" in str(command):
            raise Err("an agent must not push to a repository")

    def judge_edge(self, edge: str) -> None:
        asked = fields(edge)
        if asked.get("to") == "deploy" and "review" not in asked.get("succeeded", []):
            raise Err("`deploy` needs a successful `review` before it")
