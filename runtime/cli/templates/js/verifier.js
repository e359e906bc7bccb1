// Runs the command in the attribute `program`, and fails if it ends with another code than 0.
import { run } from 'glovebox:plugin/exec@0.1.0';

function outcome(status, notes, failure, claims) {
  return { status, notes, failure, claims, preferredLabel: undefined, suggestedNextIds: [], contextUpdates: [], extra: [] };
}

function fail(code, reason) {
  return outcome('fail', '', { class: 'deterministic', code, reason }, []);
}

export const stage = {
  execute(input) {
    const argv = (Object.fromEntries(input.attributes).program ?? '').split(' ').filter((word) => word !== '');
    if (argv.length === 0) return fail('run/program', '`program` is not a command without a shell');
    try {
      const exit = run({ argv, shell: undefined, cwd: '', env: [], stdin: undefined, timeoutMs: undefined, extra: [] });
      if (exit.how === 'exited' && exit.code === 0) {
        return outcome('success', 'the program passed', undefined, [['command-passed', exit.receipt]]);
      }
      return fail('run/exit', `the program ended with ${exit.code ?? exit.how}`);
    } catch (error) {
      // A function of the host throws its error: an object with `payload`, which has `code` and `message`.
      return fail('run/command', error.payload?.message ?? String(error));
    }
  },
};
