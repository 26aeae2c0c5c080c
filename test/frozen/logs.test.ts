import test from 'ava';
import { isObject } from '../../sim/support/netns.ts';
import { findDifferences } from './find-differences.ts';
import { readFrozen } from './frozen.ts';
import { logsOf } from './record/logs.ts';

test('logs.json: the product has the messages that runbooks search for, and the fields beside them', (t) => {
  const recorded = readFrozen('logs');
  const messages = Object.keys(isObject(recorded['messages']) ? recorded['messages'] : {});
  t.true(messages.length > 20);
  t.deepEqual(findDifferences(recorded, logsOf(messages)), []);
});
