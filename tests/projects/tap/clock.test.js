import tap from 'tap';
import { duration } from './index.js';

tap.equal(duration(65), '1m 5s');
