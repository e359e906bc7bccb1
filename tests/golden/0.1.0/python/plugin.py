"""Fails while a file in a folder contains a `TODO`, and reports the place."""

from wit_world import exports
from wit_world.imports import control, files, types
from componentize_py_types import Err

from todo import search

BYTES_MAX = 1 << 20


def text(path: str) -> str:
    return files.read(path, 0, BYTES_MAX).decode(errors="replace")


def success(notes: str) -> types.Outcome:
    return types.Outcome(types.Status.SUCCESS, None, [], [], notes, None, [], [])


def fail(code: str, reason: str) -> types.Outcome:
    failure = types.Failure("deterministic", code, reason)
    return types.Outcome(types.Status.FAIL, None, [], [], "", failure, [], [])


class Stage(exports.Stage):
    def execute(self, input: types.StageInput) -> types.Outcome:
        attributes = dict(input.attributes)
        # `plugin.toml` declares this attribute with a default, so the host always sets it.
        folder = attributes["folder"].rstrip("/")
        try:
            found = search(folder, files.list, text)
        except Err as error:
            return fail("todo/read", f"cannot read `{folder}`: {error.value.message}")
        control.log("info", "searched", [("node", input.attempt.node_id), ("found", str(len(found)))])
        report = attributes.get("output")
        if report is not None:
            try:
                files.write(report, ("\n".join(found) + "\n").encode())
            except Err as error:
                return fail("todo/report", f"cannot write `{report}`: {error.value.message}")
        return fail("todo/found", found[0]) if found else success("no TODO is left")
