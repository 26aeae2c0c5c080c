import test from 'ava';
import { CONTRACT_CASES } from '../../kernel-contract/cases.ts';
import { withRealMachine } from '../../kernel-contract/real-machine.ts';

for (const { what, run, sees } of CONTRACT_CASES)
  test.serial(`the kernel: ${what}`, async (t) => {
    await withRealMachine(async (machine) => {
      t.deepEqual(await run(machine), sees);
    });
  });
