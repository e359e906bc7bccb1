// Fails while a file in a folder contains a `TODO`, and reports the place.
import { log } from 'glovebox:plugin/control@0.1.0';
import { list, read, write } from 'glovebox:plugin/files@0.1.0';
import { search } from './todo.js';

const BYTES_MAX = 1 << 20;

function text(path) {
  const codes = read(path, 0, BYTES_MAX);
  let found = '';
  for (const code of codes) found += String.fromCharCode(code);
  return found;
}

function bytes(text) {
  return new Uint8Array([...unescape(encodeURIComponent(text))].map((one) => one.charCodeAt(0)));
}

function outcome(status, notes, failure) {
  return {
    status, notes, failure,
    preferredLabel: undefined, suggestedNextIds: [], contextUpdates: [], claims: [], extra: [],
  };
}

function fail(code, reason) {
  return outcome('fail', '', { class: 'deterministic', code, reason });
}

// A function of the host throws its error: an object with `payload`, which has `code` and `message`.
function reason(error) {
  return error.payload?.message ?? error.message ?? String(error);
}

export const stage = {
  execute(input) {
    const attributes = Object.fromEntries(input.attributes);
    // `plugin.toml` declares this attribute with a default, so the host always sets it.
    const folder = attributes.folder.replace(/\/$/, '');
    let found;
    try {
      found = search(folder, list, text);
    } catch (error) {
      return fail('todo/read', `cannot read \`${folder}\`: ${reason(error)}`);
    }
    log('info', 'searched', [['node', input.attempt.nodeId], ['found', String(found.length)]]);
    if (attributes.output !== undefined) {
      try {
        write(attributes.output, bytes(found.join('\n') + '\n'));
      } catch (error) {
        return fail('todo/report', `cannot write \`${attributes.output}\`: ${reason(error)}`);
      }
    }
    return found.length === 0 ? outcome('success', 'no TODO is left', undefined) : fail('todo/found', found[0]);
  },
};
