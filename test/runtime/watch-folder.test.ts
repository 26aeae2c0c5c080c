import { mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import test, { type ExecutionContext } from 'ava';
import { watchFolder } from '../../runtime/watch-folder.ts';
import { createTempDir } from '../support/temp-dir.ts';
import { waitUntil } from '../support/wait-until.ts';

function open(t: ExecutionContext) {
  const dir = createTempDir('watch');
  const path = dir.join('watched');
  const names: (string | null)[] = [];
  const folder = watchFolder(path, (name) => names.push(name));
  t.teardown(() => {
    folder.close();
    dir.close();
  });
  const sees = (name: string) => waitUntil(() => names.includes(name), { what: `a notification of ${name}` });
  return { dir, path, folder, sees };
}

test('watchFolder: waits for a folder that is not there yet', async (t) => {
  const { path, folder, sees } = open(t);
  folder.renew();
  mkdirSync(path);
  folder.renew();
  folder.renew();
  writeFileSync(`${path}/a`, '');
  await t.notThrowsAsync(sees('a'));
});

test('watchFolder: follows the name when another folder gets it, and bears a file in its place', async (t) => {
  const { dir, path, folder, sees } = open(t);
  mkdirSync(path);
  folder.renew();
  renameSync(path, dir.join('old'));
  writeFileSync(path, '');
  folder.renew();
  rmSync(path);
  mkdirSync(path);
  folder.renew();
  writeFileSync(`${path}/b`, '');
  await t.notThrowsAsync(sees('b'));
});
