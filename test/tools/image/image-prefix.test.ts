import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import test from 'ava';

const TOOL = join(import.meta.dirname, '../../../tools/image.ts');

const refuses = test.macro(async (t, prefix: string) => {
  const failure = await t.throwsAsync<Error & { readonly code: number; readonly stderr: string }>(
    promisify(execFile)(process.execPath, [TOOL, `--prefix=${prefix}`, 'tke-eni-ipamd']),
  );
  t.is(failure.code, 2);
  t.regex(failure.stderr, /a path in lower case, with a slash at the end/);
});
test('tools/image.ts: refuses a prefix that would run into the name', refuses, 'registry.example.com/team');
test('tools/image.ts: refuses a prefix that no registry takes', refuses, 'Registry.example.com/Team/');
