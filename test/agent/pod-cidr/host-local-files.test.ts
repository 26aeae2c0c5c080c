import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { openHostLocalFiles, removeUnusedFolder } from '../../../agent/pod-cidr/host-local-files.ts';
import { silentLogger } from '../../../runtime/log.ts';
import { createTempDir } from '../../support/temp-dir.ts';

function open(t: ExecutionContext) {
  const temp = createTempDir('host-local');
  t.teardown(() => temp.close());
  const dir = temp.join('tke-bridge');
  return { dir, files: openHostLocalFiles('/', dir, silentLogger) };
}

test('openHostLocalFiles: reserves as host-local does, and removes its own alone', (t) => {
  const { dir, files } = open(t);
  t.deepEqual(files.list(), []);
  const mine = { ip: '192.168.0.66', containerId: 'c1', ifName: 'eth0' };
  t.is(files.reserve(mine), 'reserved');
  t.is(readFileSync(join(dir, mine.ip), 'utf8'), 'c1\r\neth0');
  t.is(readFileSync(join(dir, 'last_reserved_ip.0'), 'utf8'), mine.ip);
  t.is(files.reserve(mine), 'reserved', 'the same owner');
  t.is(files.reserve({ ...mine, containerId: 'c2' }), 'taken');
  t.deepEqual(files.list(), [mine]);
  files.release({ ip: mine.ip, containerId: 'c2' });
  t.deepEqual(files.list(), [mine]);
  files.release(mine);
  files.release(mine);
  t.deepEqual(files.list(), []);
});

test('openHostLocalFiles: what is no file of an address is passed over, and an empty file has no owner', (t) => {
  const { dir, files } = open(t);
  mkdirSync(dir);
  for (const name of ['lock', 'last_reserved_ip.0', '192.168.0.7']) writeFileSync(join(dir, name), '');
  mkdirSync(join(dir, '192.168.0.8'));
  t.deepEqual(files.list(), [
    { ip: '192.168.0.7', containerId: '', ifName: '' },
    { ip: '192.168.0.8', containerId: '', ifName: '' },
  ]);
  t.is(files.reserve({ ip: '192.168.0.7', containerId: 'c1', ifName: 'eth0' }), 'taken');
});

test('openHostLocalFiles: a folder that cannot be made stops no ADD', (t) => {
  const { dir } = open(t);
  writeFileSync(dir, 'a file');
  chmodSync(dir, 0o444);
  const files = openHostLocalFiles('/', join(dir, 'below'), silentLogger);
  t.is(files.reserve({ ip: '192.168.0.66', containerId: 'c1', ifName: 'eth0' }), 'reserved');
  t.deepEqual(files.list(), []);
  t.deepEqual(openHostLocalFiles('/', '', silentLogger).list(), []);
});

test('removeUnusedFolder: only a folder that host-local never used', (t) => {
  const { dir, files } = open(t);
  const mine = { ip: '192.168.0.66', containerId: 'c1', ifName: 'eth0' };
  t.false(removeUnusedFolder('/', dir));
  files.reserve(mine);
  t.false(removeUnusedFolder('/', dir));
  files.release(mine);
  t.true(removeUnusedFolder('/', dir));
  t.false(existsSync(dir));
  files.reserve(mine);
  files.release(mine);
  writeFileSync(join(dir, 'lock'), '');
  t.false(removeUnusedFolder('/', dir));
  t.deepEqual(readdirSync(dir).sort(), ['last_reserved_ip.0', 'lock']);
});
