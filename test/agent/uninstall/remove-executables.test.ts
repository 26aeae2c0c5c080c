import { copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, watch, writeFileSync } from 'node:fs';
import test, { type ExecutionContext } from 'ava';
import { RECORD_FILE } from '../../../agent/install/install-record.ts';
import { openInstallation } from '../../../agent/install/installation.ts';
import { removeExecutables } from '../../../agent/uninstall/remove-executables.ts';
import { Sweep } from '../../../agent/uninstall/sweep.ts';
import { systemClock } from '../../../runtime/clock.ts';
import { silentLogger } from '../../../runtime/log.ts';
import { createTempDir, type TempDir } from '../../support/temp-dir.ts';

function folders(t: ExecutionContext): TempDir {
  const dir = createTempDir('remove-executables');
  t.teardown(() => dir.close());
  for (const name of ['plugins', 'reference', 'bin', 'conf']) mkdirSync(dir.join(name));
  writeFileSync(dir.join('plugins', 'tke-route-eni'), 'release 1', { mode: 0o755 });
  for (const name of ['portmap', 'bridge']) writeFileSync(dir.join('reference', name), `reference ${name}`);
  return dir;
}

async function install(dir: TempDir): Promise<void> {
  await openInstallation(
    {
      ...placesOf(dir),
      ...{ socket: '/run/a.sock', mtu: 0, portMapping: false, bandwidth: false, chainedPlugins: [] },
    },
    { log: silentLogger, release: '0.2.0', clock: systemClock },
  ).ensureExecutables();
}

function placesOf(dir: TempDir) {
  return {
    pluginDir: dir.join('plugins'),
    referencePluginDir: dir.join('reference'),
    cniLauncher: 'auto' as const,
    cniBinDir: dir.join('bin'),
    cniConfDir: dir.join('conf'),
    hostRoot: '/',
  };
}

async function remove(dir: TempDir, places: object = {}): Promise<Sweep> {
  const sweep = new Sweep(silentLogger);
  await removeExecutables({ ...placesOf(dir), ...places }, sweep);
  return sweep;
}

test('removeExecutables: takes all that was installed, the record with it, and finds nothing the next time', async (t) => {
  const dir = folders(t);
  await install(dir);
  t.is(readdirSync(dir.join('bin')).length, 6);
  t.deepEqual((await remove(dir)).report(), { removed: { executable: 5 }, left: [], failed: [] });
  t.deepEqual(readdirSync(dir.join('bin')), []);
  t.deepEqual((await remove(dir)).report(), { removed: {}, left: [], failed: [] });
});

test('removeExecutables: gives an executable that ours replaced its name back, unless others took its place', async (t) => {
  const dir = folders(t);
  const path = dir.join('bin', 'tke-route-eni');
  const kept = dir.join('bin', '.tke-route-eni.replaced');
  await install(dir);
  writeFileSync(kept, "the product's", { mode: 0o755 });
  t.deepEqual((await remove(dir)).report().removed, { executable: 5, 'executable given back': 1 });
  t.deepEqual(readdirSync(dir.join('bin')), ['tke-route-eni']);
  t.is(readFileSync(path, 'utf8'), "the product's");
  t.deepEqual((await remove(dir)).report().left, [`${path}: not the file that we installed`]);
  t.deepEqual(readdirSync(dir.join('bin')), ['tke-route-eni'], 'a second time changes nothing');

  writeFileSync(kept, 'an older one');
  const { left } = (await remove(dir)).report();
  t.is(readFileSync(path, 'utf8'), "the product's");
  t.deepEqual(left, [
    `${path}: not the file that we installed`,
    `${kept}: an executable of the closed product that ours replaced; another file has its name`,
  ]);
  t.is(readFileSync(kept, 'utf8'), 'an older one');
});

test('removeExecutables: gives the name back in one step, so that a runtime always finds a plugin of it', async (t) => {
  const dir = folders(t);
  await install(dir);
  writeFileSync(dir.join('bin', '.tke-route-eni.replaced'), "the product's", { mode: 0o755 });
  const changes: string[] = [];
  const watcher = watch(dir.join('bin'));
  t.teardown(() => watcher.close());
  const hasSeenAll = new Promise<void>((resolve) => {
    watcher.on('change', (kind, name) => {
      if (name === 'last') resolve();
      else if (kind === 'rename') changes.push(String(name));
    });
  });
  await remove(dir);
  writeFileSync(dir.join('bin', 'last'), '');
  await hasSeenAll;
  t.deepEqual(
    changes.filter((name) => name === 'tke-route-eni' || name === 'tke-eni-ipamc'),
    ['tke-route-eni', 'tke-eni-ipamc'],
    'one change each: a rename over ours; a removal',
  );
});

test('removeExecutables: names what it kept of a shared plugin that stays', async (t) => {
  const dir = folders(t);
  await install(dir);
  const kept = dir.join('bin', '.portmap.replaced');
  writeFileSync(kept, "the product's");
  writeFileSync(dir.join('conf', '20-other.conflist'), '{"plugins": [{"type": "ptp"}, {"type" : "portmap"}]}');
  t.deepEqual((await remove(dir)).report().left, [
    `${dir.join('bin', 'portmap')}: ${dir.join('conf', '20-other.conflist')} names it`,
    `${kept}: an executable of the closed product that ours replaced; another file has its name`,
  ]);
  await install(dir);
  writeFileSync(dir.join('bin', 'portmap'), 'of others');
  t.deepEqual((await remove(dir)).report().left, [
    `${kept}: an executable of the closed product that ours replaced; another file has its name`,
  ]);
});

test('removeExecutables: gives the name back also where the first run was cut short after our file was gone', async (t) => {
  const dir = folders(t);
  writeFileSync(dir.join('bin', '.tke-eni-ipamc.replaced'), "the product's", { mode: 0o755 });
  await remove(dir);
  t.deepEqual(readdirSync(dir.join('bin')), ['tke-eni-ipamc']);
});

test('removeExecutables: takes our libraries and their folder, and leaves what somebody put into it', async (t) => {
  const dir = folders(t);
  mkdirSync(dir.join('plugins', 'tke-eni-lib'));
  writeFileSync(dir.join('plugins', 'tke-eni-lib', 'libatomic.so.1'), 'library');
  await install(dir);
  t.deepEqual((await remove(dir)).report().removed, { executable: 5, library: 1 });
  t.deepEqual(readdirSync(dir.join('bin')), []);

  await install(dir);
  rmSync(dir.join('bin', 'tke-eni-lib', 'libatomic.so.1'));
  writeFileSync(dir.join('bin', 'tke-eni-lib', 'libatomic.so.1'), 'theirs');
  const { left } = (await remove(dir)).report();
  t.deepEqual(left, [`${dir.join('bin', 'tke-eni-lib', 'libatomic.so.1')}: not the file that we installed`]);
  t.deepEqual(readdirSync(dir.join('bin', 'tke-eni-lib')), ['libatomic.so.1']);
});

test('removeExecutables: knows what an older release installed, whose files are not those of this one', async (t) => {
  const dir = folders(t);
  await install(dir);
  writeFileSync(dir.join('plugins', 'tke-route-eni'), 'release 2 is larger');
  await remove(dir);
  t.deepEqual(readdirSync(dir.join('bin')), []);
});

test('removeExecutables: leaves a file that somebody put in the place of ours, and says so', async (t) => {
  const dir = folders(t);
  await install(dir);
  rmSync(dir.join('bin', 'tke-route-eni'));
  writeFileSync(dir.join('bin', 'tke-route-eni'), "the product's");
  rmSync(dir.join('bin', 'bridge'));
  writeFileSync(dir.join('bin', 'bridge'), 'newer bridge');
  const { left } = (await remove(dir)).report();
  t.deepEqual(left, [`${dir.join('bin', 'tke-route-eni')}: not the file that we installed`]);
  t.deepEqual(readdirSync(dir.join('bin')).sort(), ['bridge', 'tke-route-eni']);
});

test('removeExecutables: leaves reference plugins that were there before, equal ones too', async (t) => {
  const dir = folders(t);
  copyFileSync(dir.join('reference', 'portmap'), dir.join('bin', 'portmap'));
  await install(dir);
  await remove(dir);
  t.deepEqual(readdirSync(dir.join('bin')), ['portmap']);
});

test('removeExecutables: leaves a reference plugin that another configuration names', async (t) => {
  const dir = folders(t);
  await install(dir);
  writeFileSync(dir.join('conf', '20-other.conflist'), '{"plugins": [{"type": "ptp"}, {"type" : "portmap"}]}');
  writeFileSync(dir.join('conf', '10-tke-eni.conflist'), '{"plugins": [{"type": "bridge"}]}');
  const { left } = (await remove(dir)).report();
  t.deepEqual(left, [`${dir.join('bin', 'portmap')}: ${dir.join('conf', '20-other.conflist')} names it`]);
  t.deepEqual(readdirSync(dir.join('bin')), ['portmap']);
});

test('removeExecutables: leaves reference plugins that another plugin may call without naming them', async (t) => {
  const dir = folders(t);
  await install(dir);
  const flannel = dir.join('conf', '20-flannel.conflist');
  writeFileSync(flannel, '{"plugins": [{"type": "flannel", "delegate": {"isDefaultGateway": true}}]}');
  const { left } = (await remove(dir)).report();
  t.deepEqual(left, [
    `${dir.join('bin', 'portmap')}: a plugin of ${flannel} may call it`,
    `${dir.join('bin', 'bridge')}: a plugin of ${flannel} may call it`,
  ]);
  t.deepEqual(readdirSync(dir.join('bin')).sort(), ['bridge', 'portmap']);
});

test('removeExecutables: leaves loopback, which no configuration names, to the runtime of another network', async (t) => {
  const dir = folders(t);
  writeFileSync(dir.join('reference', 'loopback'), 'reference loopback');
  await install(dir);
  writeFileSync(dir.join('conf', '20-other.conflist'), '{"plugins": [{"type": "ptp", "ipam": {"type": "static"}}]}');
  await remove(dir);
  t.deepEqual(readdirSync(dir.join('bin')), ['loopback']);
});

test('removeExecutables: takes what an installation that was cut short had put, and its half-written file', async (t) => {
  const dir = folders(t);
  await install(dir);
  // As it was recorded before the first copy.
  const record = { files: [], intended: ['portmap', 'bridge'] };
  writeFileSync(dir.join('bin', RECORD_FILE), JSON.stringify(record));
  writeFileSync(dir.join('bin', 'bridge'), 'somebody else was quicker');
  writeFileSync(dir.join('bin', 'portmap.tke-eni-new'), 'refer');
  writeFileSync(dir.join('bin', `${RECORD_FILE}.4711.tmp`), '{"files"');
  await remove(dir);
  t.deepEqual(readdirSync(dir.join('bin')), ['bridge']);
});

test('removeExecutables: takes what equals ours where nothing was recorded, but no reference plugin', async (t) => {
  const dir = folders(t);
  await install(dir);
  writeFileSync(dir.join('bin', RECORD_FILE), 'damaged');
  await remove(dir);
  t.deepEqual(readdirSync(dir.join('bin')).sort(), ['bridge', 'portmap']);
});

test('openInstallation: does not write the record again where nothing was installed', async (t) => {
  const dir = folders(t);
  await install(dir);
  const before = statSync(dir.join('bin', RECORD_FILE)).ino;
  await install(dir);
  t.is(statSync(dir.join('bin', RECORD_FILE)).ino, before);
});
