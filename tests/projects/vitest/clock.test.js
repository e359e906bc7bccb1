import { expect, test } from 'vitest';
import { duration } from './index.js';

test('minutes come first', () => expect(duration(65)).toBe('1m 5s'));
