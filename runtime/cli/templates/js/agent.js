// Asks the model the prompt of the node, and fails if the answer is empty.
import { log } from 'glovebox:plugin/control@0.1.0';
import { complete } from 'glovebox:plugin/llm@0.1.0';

function outcome(status, notes, failure) {
  return {
    status, notes, failure,
    preferredLabel: undefined, suggestedNextIds: [], contextUpdates: [], claims: [], extra: [],
  };
}

function fail(code, reason) {
  return outcome('fail', '', { class: 'deterministic', code, reason });
}

export const stage = {
  execute(input) {
    if (input.prompt == null) {
      return fail('ask/prompt', `the node \`${input.attempt.nodeId}\` has no prompt`);
    }
    const parts = [{ kind: 'text', text: input.prompt, fields: [] }];
    let answer;
    try {
      const response = complete({ messages: [{ role: 'user', parts }], tools: [], options: [] });
      answer = response.message.parts.filter((part) => part.kind === 'text').map((part) => part.text).join('');
    } catch (error) {
      // A function of the host throws its error: an object with `payload`, which has `kind` and `message`.
      return fail('ask/model', error.payload?.message ?? String(error));
    }
    log('info', 'answered', [['characters', String(answer.length)]]);
    return answer.trim() === '' ? fail('ask/empty', 'the model gave no answer') : outcome('success', answer, undefined);
  },
};
