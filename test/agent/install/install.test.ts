import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import test from 'ava';
import { CONFLIST_FILE, installConflist, removeConflist, renderConflist } from '../../../agent/install/conflist.ts';
import { installExecutables, installReferencePlugins, PLUGIN_NAMES } from '../../../agent/install/executables.ts';
import { openInstallation } from '../../../agent/installation.ts';
import { silentLogger } from '../../../runtime/log.ts';
import { createTempDir, type TempDir } from '../../support/temp-dir.ts';

function folders(t: { teardown(run: () => void): void }): TempDir {
  const dir = createTempDir('install');
  t.teardown(() => dir.close());
  for (const name of ['plugins', 'reference']) mkdirSync(dir.join(name));
  writeFileSync(dir.join('plugins', 'tke-route-eni'), 'release 1', { mode: 0o755 });
  return dir;
}

test('installExecutables: installs one file under all its names, executable, and nothing else', async (t) => {
  const dir = folders(t);
  const report = await installExecutables(dir.join('plugins'), dir.join('bin'));
  t.deepEqual(report, { installed: [...PLUGIN_NAMES], kept: [] });
  t.deepEqual(readdirSync(dir.join('bin')).sort(), [...PLUGIN_NAMES].sort());
  const stats = PLUGIN_NAMES.map((name) => statSync(dir.join('bin', name)));
  t.is(new Set(stats.map(({ ino }) => ino)).size, 1);
  t.is((stats[0]?.mode ?? 0) & 0o777, 0o755);
});

test('installExecutables: leaves equal files alone and replaces others under every name', async (t) => {
  const dir = folders(t);
  await installExecutables(dir.join('plugins'), dir.join('bin'));
  const before = statSync(dir.join('bin', 'tke-route-eni')).ino;
  t.deepEqual(await installExecutables(dir.join('plugins'), dir.join('bin')), {
    installed: [],
    kept: [...PLUGIN_NAMES],
  });
  t.is(statSync(dir.join('bin', 'tke-route-eni')).ino, before);
  writeFileSync(dir.join('plugins', 'tke-route-eni'), 'release 2');
  await installExecutables(dir.join('plugins'), dir.join('bin'));
  for (const name of PLUGIN_NAMES) t.is(readFileSync(dir.join('bin', name), 'utf8'), 'release 2');
});

test('installExecutables: fails by name when the executable is missing, and leaves no temporary file', async (t) => {
  const dir = folders(t);
  await t.throwsAsync(installExecutables(dir.join('reference'), dir.join('bin')), { code: 'ENOENT' });
  t.deepEqual(readdirSync(dir.join('bin')), []);
});

test('installReferencePlugins: copies what is missing and never overwrites', async (t) => {
  const dir = folders(t);
  mkdirSync(dir.join('bin'));
  writeFileSync(dir.join('bin', 'portmap'), 'theirs');
  for (const name of ['portmap', 'bandwidth', 'dhcp']) writeFileSync(dir.join('reference', name), `reference ${name}`);
  const report = await installReferencePlugins(dir.join('reference'), dir.join('bin'));
  t.deepEqual(report, { installed: ['bandwidth'], kept: ['portmap'] });
  t.is(readFileSync(dir.join('bin', 'portmap'), 'utf8'), 'theirs');
  t.deepEqual(readdirSync(dir.join('bin')).sort(), ['bandwidth', 'portmap']);
});

test('renderConflist: chains what is asked for, after our plugin', (t) => {
  const typesOf = (portMapping: boolean, bandwidth: boolean): readonly string[] => {
    const conf = JSON.parse(renderConflist({ socket: '/run/a.sock', mtu: 0, portMapping, bandwidth }));
    return (conf.plugins as { type: string }[]).map(({ type }) => type);
  };
  t.deepEqual(typesOf(false, false), ['tke-route-eni']);
  t.deepEqual(typesOf(true, true), ['tke-route-eni', 'bandwidth', 'portmap']);
});

test('installConflist: writes once, leaves an equal file alone, and removal is idempotent', (t) => {
  const dir = folders(t);
  const content = renderConflist({ socket: '/run/a.sock', mtu: 1400, portMapping: false, bandwidth: false });
  t.is(installConflist(dir.join('conf'), content), 'written');
  t.is(installConflist(dir.join('conf'), content), 'unchanged');
  t.deepEqual(readdirSync(dir.join('conf')), [CONFLIST_FILE]);
  removeConflist(dir.join('conf'));
  removeConflist(dir.join('conf'));
  t.deepEqual(readdirSync(dir.join('conf')), []);
});

test('openInstallation: has no conflist without executables, and nothing at all without a plugin folder', async (t) => {
  const dir = folders(t);
  const settings = {
    pluginDir: dir.join('plugins'),
    referencePluginDir: '',
    cniBinDir: dir.join('bin'),
    cniConfDir: dir.join('conf'),
    ...{ socket: '/run/a.sock', mtu: 0, portMapping: false, bandwidth: false },
  };
  const installation = openInstallation(settings, silentLogger);
  installation.putConflist();
  t.false(readdirSync(dir.path).includes('conf'));
  await installation.putExecutables();
  installation.putConflist();
  t.deepEqual(readdirSync(dir.join('conf')), [CONFLIST_FILE]);

  const none = openInstallation({ ...settings, pluginDir: '', cniBinDir: dir.join('none') }, silentLogger);
  await none.putExecutables();
  none.putConflist();
  t.false(readdirSync(dir.path).includes('none'));
});
