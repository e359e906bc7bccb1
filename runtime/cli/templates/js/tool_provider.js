// Offers agents a tool that finds a text in the files of a folder.
import { list, read } from 'glovebox:plugin/files@0.1.0';

// Maximum length of a file that is searched, in bytes, and maximum number of places in an answer.
const FILE_BYTES_MAX = 1 << 20;
const FOUND_MAX = 100;

const PARAMETERS = {
  type: 'object',
  properties: {
    text: { type: 'string', minLength: 1, description: 'The text to find.' },
    folder: { type: 'string', description: 'The folder to search, such as `src`.' },
  },
  required: ['text', 'folder'],
  additionalProperties: false,
};

// Returns a file as text. A file that is not text, is too large or may not be read is left out.
function content(path) {
  try {
    let bytes = '';
    for (const byte of read(path, 0, FILE_BYTES_MAX)) bytes += String.fromCharCode(byte);
    return decodeURIComponent(escape(bytes));
  } catch {
    return '';
  }
}

function search(folder, text, found) {
  for (const { name, kind } of list(folder)) {
    const path = `${folder}/${name}`;
    if (kind === 'directory') {
      search(path, text, found);
      continue;
    }
    content(path).split('\n').forEach((line, index) => {
      if (line.includes(text)) found.push(`${path}:${index + 1}: ${line.trim()}`);
    });
  }
}

function output(content, isError) {
  return { content, isError, extra: [] };
}

export const tool = {
  definitions() {
    const description = 'Finds a text in the files of a folder, and returns the places.';
    return [{ name: 'find_text', description, parameters: JSON.stringify(PARAMETERS) }];
  },

  // The host has checked that the arguments match the parameters of the tool.
  call(_name, words) {
    const { text = '', folder = '' } = JSON.parse(words) ?? {};
    const found = [];
    try {
      search(String(folder).replace(/\/$/, ''), String(text), found);
    } catch (error) {
      // A function of the host throws its error: an object with `payload`, which has `code` and `message`.
      return output(`cannot read \`${folder}\`: ${error.payload?.message ?? String(error)}`, true);
    }
    return output(found.length === 0 ? 'not found' : found.slice(0, FOUND_MAX).join('\n'), false);
  },
};
