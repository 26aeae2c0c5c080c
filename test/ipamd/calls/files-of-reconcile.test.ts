import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import test from 'ava';

/** Who follows a reconcile through ipamd reads at most so many files. A change that needs more raises it, and says why. */
const MAX_FILES = 60;
const ROOT = join(import.meta.dirname, '..', '..', '..');

test('reconcileNode: runs code of few files', async (t) => {
  const tool = join(ROOT, 'tools/files-of-reconcile.ts');
  const { stdout } = await promisify(execFile)(process.execPath, [tool], { cwd: ROOT });
  const [way = ''] = stdout.split('figure: ');
  const files = [...way.matchAll(/^ *\d+ (ipamd\S*): (.*)$/gm)].flatMap(([, folder, names = '']) =>
    names.split(' ').map((name) => `${folder}/${name}`),
  );
  t.log(stdout);
  t.true(files.includes('ipamd/decide/decide-node.ts') && files.includes('ipamd/calls/send-call.ts'), stdout);
  const page = readFileSync(join(ROOT, 'docs/start-here.md'), 'utf8');
  const tables = page.slice(page.indexOf('**Observe and decide**'), page.indexOf('**The shapes on this way**'));
  const followed = [...tables.matchAll(/^\| \d+ \| `(ipamd\/[^`]+)`/gm)].map(([, path = '']) => path);
  t.true(followed.length > 10);
  t.deepEqual(
    followed.filter((path) => !files.includes(path)),
    [],
    'docs/start-here.md follows a reconcile through what runs',
  );
  t.true(files.length <= MAX_FILES, `${files.length} files`);
});
