import test from 'ava';
import { crashAtEach, loseEach } from './crash.ts';
import { warmAndBack } from './stories/supply.ts';

test('addresses come and go also when the leader dies anywhere', crashAtEach(warmAndBack, { every: 61 }));
test('addresses come and go also when a request is lost or late', loseEach(warmAndBack, { every: 41 }));
