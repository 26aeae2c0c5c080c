import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import test from 'ava';
import { seedList } from '../../sim/support/seed.ts';
import { tellingSeed } from '../support/with-seed.ts';
import { drawScript } from './script/draw-script.ts';
import { playScript } from './script/play-script.ts';

/** Real time that a script may take beside others, milliseconds: alone it takes ten seconds. */
const LIMIT_MS = 600_000;
const MAIN = fileURLToPath(new URL('main.ts', import.meta.url));
const [ofStandIns = 1, ofAgents = 2] = seedList(2);

test.serial(`all comes to rest whatever is drawn, stand-ins, seed ${ofStandIns}`, async (t) => {
  t.timeout(LIMIT_MS);
  await tellingSeed(t, async () => {
    const { violations } = await playScript(drawScript(ofStandIns, { isWhole: false }));
    t.deepEqual(violations, []);
  });
});

test.serial(`the same with whole agents, and one seed is one run in every process, seed ${ofAgents}`, async (t) => {
  t.timeout(LIMIT_MS);
  await tellingSeed(t, async () => {
    const { violations, hash } = await playScript(drawScript(ofAgents, { isWhole: true }));
    t.deepEqual(violations, []);
    const args = [MAIN, '--agents=whole', `--seed=${ofAgents}`];
    const there = execFileSync(process.execPath, args, { encoding: 'utf8' });
    t.true(there.includes(`"hash":"${hash}"`), there);
  });
});

test('drawScript: another seed is another script', (t) => {
  t.notDeepEqual(drawScript(7).actions, drawScript(8).actions);
});
