// A child process that writes to a journal until it is killed (see journal-kill.test.ts). Before each transaction it
// prints what it is about to do, after it that it is done: `begin <n>`, `end <n>`.
import { writeSync } from 'node:fs';
import { sampleEni, sampleLease, sampleSupply } from '../pool/supply-sample.ts';
import { cooldownsOf, keyOf, open } from './journal-fixture.ts';

const [path = ''] = process.argv.slice(2);
const SANDBOXES = 20;
/** Long enough that rows spill over several pages. */
const NETNS = `/run/netns/${'n'.repeat(2_000)}`;

const journal = open(path);
let step = 0;

function tell(run: () => void): void {
  step++;
  writeSync(1, `begin ${step}\n`);
  run();
  writeSync(1, `end ${step}\n`);
}

for (let round = 0; ; round++) {
  const slot = round % SANDBOXES;
  const lease = sampleLease(`c${slot}`, 'eni-a', [`10.0.0.${slot}`, `fd00::${slot}`], {
    netns: NETNS,
    createdAtMs: round,
  });
  tell(() => journal.putLease(lease));
  tell(() => journal.activateLease(keyOf(lease), { podMac: '02:00:00:00:00:01' }));
  if (round % 3 === 0) tell(() => journal.putSupply(sampleSupply([sampleEni('eni-a', [`10.1.0.${slot}`])], round)));
  tell(() => journal.markReleasing(keyOf(lease)));
  if (round % 2 === 0) tell(() => journal.eraseLease(keyOf(lease), cooldownsOf(lease, { freedAtMs: round })));
}
