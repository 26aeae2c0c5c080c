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

for (const seed of seedList(2))
  for (const isWhole of [false, true])
    test.serial(
      `all comes to rest whatever is drawn, ${isWhole ? 'whole agents' : 'stand-ins'}, seed ${seed}`,
      async (t) => {
        t.timeout(LIMIT_MS);
        await tellingSeed(t, async () => t.deepEqual((await playScript(drawScript(seed, { isWhole }))).violations, []));
      },
    );

test.serial('one seed is one run, in every process, and another seed another', async (t) => {
  t.timeout(LIMIT_MS);
  const args = [MAIN, '--agents=stand-in', '--seed=7'];
  const [, there] = /"hash":"([0-9a-f]+)"/.exec(execFileSync(process.execPath, args, { encoding: 'utf8' })) ?? [];
  const draw = (seed: number) => drawScript(seed, { isWhole: false });
  t.is((await playScript(draw(7))).hash, there ?? '');
  t.not((await playScript(draw(8))).hash, there ?? '');
});
