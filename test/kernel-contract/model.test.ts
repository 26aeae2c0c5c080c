import test from 'ava';
import { CONTRACT_CASES } from './cases.ts';
import { withModelMachine } from './model-machine.ts';

for (const { what, run, sees } of CONTRACT_CASES)
  test(`the model of the kernel: ${what}`, async (t) => {
    await withModelMachine(async (machine) => {
      t.deepEqual(await run(machine), sees);
    });
  });
