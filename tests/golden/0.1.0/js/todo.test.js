import assert from 'node:assert';
import test from 'node:test';
import { search } from './todo.js';

const tree = { src: [{ name: 'deep', kind: 'directory' }], 'src/deep': [{ name: 'a.js', kind: 'file' }] };

test('a TODO is found with its place', () => {
  const found = (text) => search('src', (folder) => tree[folder], () => text);
  assert.deepEqual(found('one\n// TODO: two\n'), ['src/deep/a.js:2 has a TODO']);
  assert.deepEqual(found('one\n'), []);
});
