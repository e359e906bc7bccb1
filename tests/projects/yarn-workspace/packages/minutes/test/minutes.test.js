const test = require('node:test');
const assert = require('node:assert');
const { duration } = require('../index.js');

test('minutes come first', () => assert.strictEqual(duration(65), '1m 5s'));
