import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { OUTCOME } from '../../../agent/api/messages.ts';
import { run } from '../../../sim/support/run.ts';
import { RUNS } from '../../../sim/support/seed.ts';
import { seededRandom } from '../../../sim/support/seeded-random.ts';
import { COMPILER_FLAGS, compileLauncher, compilerVersion, launcherConstants } from '../../../tools/build/launcher.ts';
import { createTempDir } from '../../support/temp-dir.ts';
import { withSeed } from '../../support/with-seed.ts';
import { damaged, openLaunchPlace, replyFrames, serveBytes } from './launch.ts';

const SOURCE = join(import.meta.dirname, '..', '..', '..', 'cni-plugins', 'launcher', 'launcher.c');
/** With a C library, for the sanitizers. They print to standard error and end with this code. */
const SANITIZED = ['-std=gnu11', '-O1', '-g', '-DHOSTED', '-fsanitize=address,undefined', '-fno-sanitize-recover=all'];
const STREAMS = 300;

const ARM64 = 'aarch64-linux-gnu-gcc';
const [gcc, arm64] = await Promise.all([compilerVersion('gcc'), compilerVersion(ARM64)]);
const withGcc = gcc === undefined ? test.skip : test;
const withArm64 = arm64 === undefined ? test.skip : test;

async function buildSanitized(t: ExecutionContext): Promise<string> {
  const dir = createTempDir('launcher');
  t.teardown(() => dir.close());
  const output = dir.join('sanitized');
  await compileLauncher('gcc', [...SANITIZED, ...launcherConstants()], SOURCE, output);
  return output;
}

withGcc('launcher: reads and writes nothing outside of its buffers, whatever the bytes on the socket', async (t) => {
  const place = openLaunchPlace(await buildSanitized(t));
  t.teardown(place.close);
  await withSeed(t, async (seed) => {
    const random = seededRandom(seed);
    const whole = replyFrames({ outcome: OUTCOME.OUTCOME_PRINT, stdout: Buffer.from('x'.repeat(2_000)) }, 700);
    let sent: Buffer = whole;
    t.teardown(await serveBytes(place.socketPath, (socket) => socket.end(sent)));
    for (let stream = 0; stream < STREAMS * RUNS; stream++) {
      sent = damaged(whole, random).bytes;
      const stdin = random() < 0.1 ? place.conf.padEnd(Math.floor(random() * 120_000)) : place.conf;
      const { code, stderr } = await place.call({ stdin });
      t.true(code === 0 || code === 1 || code === 3, `${code}`);
      t.is(stderr, '');
    }
  });
});

withArm64('launcher: is built for arm64 with a cross compiler, without anything to load', async (t) => {
  const dir = createTempDir('launcher');
  t.teardown(() => dir.close());
  const output = dir.join('arm64');
  await compileLauncher(ARM64, [...COMPILER_FLAGS, ...launcherConstants()], SOURCE, output);
  const headers = await run(['readelf', '-hl', output]);
  t.regex(headers, /Machine: +AArch64/);
  t.notRegex(headers, /INTERP|DYNAMIC/);
});
