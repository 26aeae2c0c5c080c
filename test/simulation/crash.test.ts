import test from 'ava';
import { crashAtEach, loseEach } from './crash.ts';
import { keptAddress, podCidrs } from './stories/pods.ts';
import { warmAndBack } from './stories/supply.ts';

test.serial('addresses come and go also when the leader dies anywhere', crashAtEach(warmAndBack, { every: 41 }));
test.serial('addresses come and go also when a request is lost, late or astray', loseEach(warmAndBack, { every: 41 }));
test.serial(
  'an address that is kept moves also when the leader dies anywhere',
  crashAtEach(keptAddress, { every: 127 }),
);
test.serial('blocks and routes are right also when the leader dies anywhere', crashAtEach(podCidrs, { every: 53 }));
