"""Asks the model the prompt of the node, and fails if the answer is empty."""

from wit_world import exports
from wit_world.imports import chat, control, llm, types
from componentize_py_types import Err


def success(notes: str) -> types.Outcome:
    return types.Outcome(types.Status.SUCCESS, None, [], [], notes, None, [], [])


def fail(code: str, reason: str) -> types.Outcome:
    failure = types.Failure("deterministic", code, reason)
    return types.Outcome(types.Status.FAIL, None, [], [], "", failure, [], [])


class Stage(exports.Stage):
    def execute(self, input: types.StageInput) -> types.Outcome:
        if input.prompt is None:
            return fail("ask/prompt", f"the node `{input.attempt.node_id}` has no prompt")
        question = chat.Message("user", [chat.Part("text", input.prompt, [])])
        try:
            response = llm.complete(llm.Request([question], [], []))
        except Err as error:
            return fail("ask/model", error.value.message)
        answer = "".join(part.text for part in response.message.parts if part.kind == "text")
        control.log("info", "answered", [("characters", str(len(answer)))])
        return success(answer) if answer.strip() else fail("ask/empty", "the model gave no answer")
