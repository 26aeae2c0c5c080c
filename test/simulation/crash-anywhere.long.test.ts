// Long: of a third of all stories, a point of each program and a request of each. Each seed has others.
import test from 'ava';
import { SEED, seedOf } from '../../sim/support/seed.ts';
import { withSeed } from '../support/with-seed.ts';
import { driveCrashes, driveLosses, programsOf } from './crash.ts';
import { STORIES } from './stories/all.ts';
import { Streams } from './streams.ts';

const TURNS = 3;
const LIMIT_MS = 1_800_000;

for (const [at, [name, story]] of Object.entries(STORIES).entries())
  if (at % TURNS === seedOf('stories', SEED) % TURNS)
    test.serial(`${name}: also when one of its programs dies, or one of its requests is lost`, async (t) => {
      t.timeout(LIMIT_MS);
      await withSeed(t, async (seed) => {
        for (const program of programsOf(story))
          for (const drive of [driveCrashes, driveLosses]) {
            const draw = new Streams(seed).of(`${program} ${drive.name}`);
            t.deepEqual((await drive(story, { program, draw })).failures, [], program);
          }
      });
    });
