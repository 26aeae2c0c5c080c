import { join } from 'node:path';
import test from 'ava';
import { MAX_FAULTS } from '../../runtime/decode.ts';
import { tryRun } from '../../sim/support/run.ts';
import { partOf } from '../support/suite-part.ts';
import { findDecoders } from './find-decoders.ts';

const ROOT = join(import.meta.dirname, '..', '..');
/** Heap of the process that tries them, in MiB: the inputs take 50 of it. */
const HEAP_MIB = 128;
/** Longest message of an error, a fault or a problem. */
const MESSAGE_CHARS = 4_000;
const FOLDERS = [...new Set(findDecoders(ROOT).map(({ file }) => file.split('/')[0] ?? ''))];

test('findDecoders: finds decoders of every form', (t) => {
  const names = findDecoders(ROOT).map(({ name }) => name);
  t.true(names.length >= 70, `${names.length}`);
  for (const name of [
    'answerReview',
    'admittedPod',
    'decodeNodesArgs',
    'staticIpConfig',
    'decodeConf',
    'nodeEniConfig',
    'readNodeEniConfig',
  ])
    t.true(names.includes(name), name);
});

// One after the other: each process has a processor for itself, and its time is its own.
for (const folder of partOf(FOLDERS, (name) => name === 'webhook')) {
  test.serial(
    `${folder}: 1 MiB of wrong items costs each decoder little memory, and gives short messages`,
    async (t) => {
      t.timeout(300_000);
      const program = join(import.meta.dirname, 'try-decoders.ts');
      const argv = [process.execPath, `--max-old-space-size=${HEAP_MIB}`, program, folder];
      const { code, stdout } = await tryRun(argv, { timeoutMs: 290_000 });
      const lines = stdout.trim().split('\n');
      t.is(code, 0, `the last one: ${lines.at(-1)}`);
      const tried = lines.filter((line) => line.startsWith('{'));
      t.is(tried.length * 2, lines.length);
      for (const line of tried) {
        const { decoder, messageChars, faults } = JSON.parse(line);
        t.true(
          messageChars <= MESSAGE_CHARS && faults <= 2 * MAX_FAULTS,
          `${decoder}: ${messageChars} characters, ${faults}`,
        );
      }
    },
  );
}
