import { existsSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { tryRun } from '../support/run.ts';
import { listNetnsNames } from '../support/run-names.ts';

const DEMO = join(import.meta.dirname, 'demo.ts');

test('demo: shows four Pods on four ENIs, every ping answered, and leaves nothing behind', async (t) => {
  const hadCniFolder = existsSync('/etc/cni');
  const { code, stdout, stderr } = await tryRun([process.execPath, DEMO], { timeoutMs: 120_000 });
  t.is(code, 0, stderr);
  for (const eni of ['eni-n1-a', 'eni-n1-b', 'eni-n2-a', 'eni-n2-b']) {
    t.regex(stdout, new RegExp(`^ .* 3 by ${eni} +3 by ${eni}$`, 'm'), 'out and back by the ENI of the address');
  }
  t.notRegex(stdout, /LOST/);
  t.regex(stdout, /answers "hello from web-0"/);
  t.regex(stdout, /limits its link to 10Mbit/);
  t.regex(stdout, /refused as spoofed: 0/);
  t.regex(stdout, /between kernel, journal and runtime: 0/);
  const tooWide = `${stdout}\n${stderr}`.split('\n').filter((line) => line.length > 80);
  t.deepEqual(tooWide, []);
  t.deepEqual(
    (await listNetnsNames()).filter((name) => name.startsWith('tke-demo-')),
    [],
  );
  t.is(existsSync('/etc/cni'), hadCniFolder);
});
