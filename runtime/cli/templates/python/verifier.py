"""Runs the command in the attribute `program`, and fails if it ends with another code than 0."""

from wit_world import exports
from wit_world.imports import exec as programs
from wit_world.imports import types
from componentize_py_types import Err


def fail(code: str, reason: str) -> types.Outcome:
    failure = types.Failure("deterministic", code, reason)
    return types.Outcome(types.Status.FAIL, None, [], [], "", failure, [], [])


class Stage(exports.Stage):
    def execute(self, input: types.StageInput) -> types.Outcome:
        argv = dict(input.attributes).get("program", "").split()
        if not argv:
            return fail("run/program", "`program` is not a command without a shell")
        try:
            exit = programs.run(programs.Command(argv, None, "", [], None, None, []))
        except Err as error:
            return fail("run/command", error.value.message)
        if exit.how != "exited" or exit.code != 0:
            return fail("run/exit", f"the program ended with {exit.code}")
        claims = [("command-passed", exit.receipt)]
        return types.Outcome(types.Status.SUCCESS, None, [], [], "the program passed", None, claims, [])
