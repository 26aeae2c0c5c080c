import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import test from 'ava';
import type { ChainedPlugin } from '../../../agent/config/chained-plugins.ts';
import { decideVersions, readSupportedVersions } from '../../../agent/install/chain-versions.ts';
import { CONFLIST_FILE, renderConflist } from '../../../agent/install/conflist.ts';
import { installExecutables } from '../../../agent/install/install-executables.ts';
import { type InstallationListener, openInstallation } from '../../../agent/install/installation.ts';
import { PLUGIN_NAMES } from '../../../agent/install/planned-file.ts';
import { systemClock } from '../../../runtime/clock.ts';
import { silentLogger } from '../../../runtime/log.ts';
import { createTempDir, type TempDir } from '../../support/temp-dir.ts';

function folders(t: { teardown(run: () => void): void }): TempDir {
  const dir = createTempDir('install');
  t.teardown(() => dir.close());
  for (const name of ['plugins', 'reference']) mkdirSync(dir.join(name));
  writeFileSync(dir.join('plugins', 'tke-route-eni'), 'release 1', { mode: 0o755 });
  return dir;
}

type Settings = Parameters<typeof openInstallation>[0];

/** An installation in the folders of a test, whose clock goes ten seconds further with each look. */
function open(dir: TempDir, change: Partial<Settings> = {}, listener: Partial<InstallationListener> = {}) {
  let nowMs = 0;
  const settings: Settings = {
    ...{ pluginDir: dir.join('plugins'), referencePluginDir: '', hostRoot: '/', cniLauncher: 'auto' },
    ...{ cniBinDir: dir.join('bin'), cniConfDir: dir.join('conf') },
    ...{ socket: '/run/a.sock', mtu: 0, portMapping: false, bandwidth: false, chainedPlugins: [] },
    ...change,
  };
  const monotonicMs = (): number => {
    nowMs += 10_000;
    return nowMs;
  };
  return openInstallation(settings, {
    ...{ log: silentLogger, release: '0.2.0' },
    clock: { ...systemClock, monotonicMs },
    listener: {
      ...{ loaderProblemChanged: () => {}, filesProblemChanged: () => {} },
      ...{ missingPluginsChanged: () => {}, contested: () => {}, ...listener },
    },
  });
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

test('installExecutables: puts libraries below the executables, whole and before them, and leaves equal ones alone', async (t) => {
  const dir = folders(t);
  mkdirSync(dir.join('plugins', 'tke-eni-lib'));
  writeFileSync(dir.join('plugins', 'tke-eni-lib', 'libatomic.so.1'), 'library 1');
  const names = ['tke-eni-lib/libatomic.so.1', ...PLUGIN_NAMES];
  t.deepEqual(await installExecutables(dir.join('plugins'), dir.join('bin')), { installed: names, kept: [] });
  t.deepEqual(readdirSync(dir.join('bin', 'tke-eni-lib')), ['libatomic.so.1']);
  t.deepEqual(await installExecutables(dir.join('plugins'), dir.join('bin')), { installed: [], kept: names });

  writeFileSync(dir.join('plugins', 'tke-eni-lib', 'libatomic.so.1'), 'library 2');
  rmSync(dir.join('plugins', 'tke-route-eni'));
  await t.throwsAsync(installExecutables(dir.join('plugins'), dir.join('bin')), { code: 'ENOENT' });
  t.is(readFileSync(dir.join('bin', 'tke-eni-lib', 'libatomic.so.1'), 'utf8'), 'library 2');
  t.is(readFileSync(dir.join('bin', 'tke-route-eni'), 'utf8'), 'release 1');
});

const VERSIONS = { cniVersion: '1.0.0', cniVersions: ['1.0.0'] };

test('renderConflist: chains bandwidth when it is asked for, and asks the runtime for the ports of Pods', (t) => {
  const pluginsOf = (portMapping: boolean, bandwidth: boolean) => {
    const conf = JSON.parse(
      renderConflist({ socket: '/run/a.sock', mtu: 0, portMapping, bandwidth, chainedPlugins: [] }, VERSIONS),
    );
    return (conf.plugins as { type: string; capabilities?: object }[]).map(({ type, capabilities }) => [
      type,
      ...Object.keys(capabilities ?? {}),
    ]);
  };
  t.deepEqual(pluginsOf(false, false), [['tke-route-eni']]);
  t.deepEqual(pluginsOf(true, false), [['tke-route-eni', 'portMappings']]);
  t.deepEqual(pluginsOf(true, true), [
    ['tke-route-eni', 'portMappings'],
    ['bandwidth', 'bandwidth'],
  ]);
});

test('renderConflist: with the programs of the fast path ours may take the place of filters, unless the user chains a plugin', (t) => {
  const alone = { socket: '/run/a.sock', mtu: 0, portMapping: false };
  const ours = (
    fastPath: 'off' | 'flowtable' | 'bpf' | 'auto',
    bandwidth: boolean,
    ...chainedPlugins: ChainedPlugin[]
  ) => {
    const conf = JSON.parse(renderConflist({ ...alone, bandwidth, chainedPlugins, fastPath }, VERSIONS));
    const { type: _type, backend: _backend, ...more } = conf.plugins[0];
    return more;
  };
  const place = { capabilities: { bandwidth: true }, filterPlace: true };
  t.deepEqual(ours('bpf', false), place);
  t.deepEqual(ours('auto', true), place);
  t.deepEqual(ours('auto', false, { type: 'tuning' }), {});
  t.deepEqual([ours('off', true), ours('flowtable', true)], [{}, {}]);
});

test('renderConflist: plugins of the user come last, with their configuration; cilium-cni gets its mode and the name that it knows', (t) => {
  const alone = { socket: '/run/a.sock', mtu: 0, portMapping: false, bandwidth: true };
  const confOf = (...chainedPlugins: ChainedPlugin[]) =>
    JSON.parse(renderConflist({ ...alone, chainedPlugins }, VERSIONS));
  const { name, plugins } = confOf({ type: 'tuning', sysctl: { 'net.core.somaxconn': '512' } }, { type: 'cilium-cni' });
  t.is(name, 'generic-veth');
  t.deepEqual(plugins.slice(1), [
    { type: 'bandwidth', capabilities: { bandwidth: true } },
    { type: 'tuning', sysctl: { 'net.core.somaxconn': '512' } },
    { type: 'cilium-cni', 'chaining-mode': 'generic-veth' },
  ]);
  t.is(confOf({ type: 'tuning' }).name, 'tke-route-eni');
  const ofUser = { type: 'cilium-cni', 'chaining-mode': 'aws-cni', 'log-file': '/run/c.log' };
  t.deepEqual(confOf(ofUser).plugins.at(-1), ofUser);
});

test('openInstallation: has no conflist without executables, and nothing at all without a plugin folder', async (t) => {
  const dir = folders(t);
  const installation = open(dir);
  await installation.ensureConflist(true);
  t.false(readdirSync(dir.path).includes('conf'));
  await installation.ensureExecutables();
  await installation.ensureConflist(true);
  t.deepEqual(readdirSync(dir.join('conf')), [CONFLIST_FILE]);
  t.like(readConflist(dir), { cniVersion: '1.0.0', cniVersions: ['0.4.0', '1.0.0', '1.1.0'] });

  const none = open(dir, { pluginDir: '', cniBinDir: dir.join('none') });
  await none.ensureExecutables();
  await none.ensureConflist(true);
  t.false(readdirSync(dir.path).includes('none'));
});

test('openInstallation: asks the chained plugins which versions they speak, and assumes the oldest of a dumb one', async (t) => {
  for (const [answer, cniVersions] of [
    ['{"cniVersion":"1.0.0","supportedVersions":["0.3.1","0.4.0","1.0.0","1.1.0"]}', ['0.4.0', '1.0.0', '1.1.0']],
    ['{"cniVersion":"1.0.0","supportedVersions":["0.3.1","0.4.0","1.0.0"]}', ['0.4.0', '1.0.0']],
    ['{"cniVersion":"0.4.0"}', ['0.4.0']],
    ['usage: bandwidth', ['0.4.0']],
  ] as const) {
    const dir = folders(t);
    writeFileSync(dir.join('reference', 'bandwidth'), `#!/bin/sh\necho '${answer}'\n`);
    const installation = open(dir, { referencePluginDir: dir.join('reference'), portMapping: true, bandwidth: true });
    await installation.ensureExecutables();
    await installation.ensureConflist(true);
    t.like(readConflist(dir), { cniVersion: cniVersions.at(-1) === '0.4.0' ? '0.4.0' : '1.0.0', cniVersions });
  }
});

test('openInstallation: an old portmap, which is not in the chain, costs no CNI version', async (t) => {
  const dir = folders(t);
  writeFileSync(dir.join('reference', 'portmap'), '#!/bin/sh\necho \'{"supportedVersions":["0.4.0","1.0.0"]}\'\n');
  const installation = open(dir, { referencePluginDir: dir.join('reference'), portMapping: true });
  await installation.ensureExecutables();
  await installation.ensureConflist(true);
  t.like(readConflist(dir), { cniVersions: ['0.4.0', '1.0.0', '1.1.0'] });
});

test('openInstallation: puts no conflist while a plugin of the user is missing, says which, and leaves one of before', async (t) => {
  const dir = folders(t);
  const missing: string[] = [];
  const listener = {
    missingPluginsChanged: (names: readonly string[]) => void missing.push(names.join()),
  };
  const installation = open(dir, { chainedPlugins: [{ type: 'tuning' }, { type: 'cilium-cni' }] }, listener);
  mkdirSync(dir.join('conf'));
  writeFileSync(dir.join('conf', CONFLIST_FILE), 'of before');
  await installation.ensureExecutables();
  const put = async (name: string): Promise<void> => {
    writeFileSync(dir.join('bin', name), '#!/bin/sh\necho \'{"supportedVersions":["0.4.0","1.0.0"]}\'\n', {
      mode: 0o755,
    });
  };
  for (let turn = 0; turn < 2; turn++) await installation.ensureConflist(true);
  await put('tuning');
  for (let turn = 0; turn < 2; turn++) await installation.ensureConflist(true);
  t.is(readFileSync(dir.join('conf', CONFLIST_FILE), 'utf8'), 'of before');
  await put('cilium-cni');
  await installation.ensureConflist(true);
  t.deepEqual(missing, ['tuning,cilium-cni', 'cilium-cni', '']);
  t.like(readConflist(dir), { name: 'generic-veth', cniVersions: ['0.4.0', '1.0.0'] });
});

test('openInstallation: puts no conflist while the loader refuses the executable, says why once, and does when it runs', async (t) => {
  const dir = folders(t);
  const refused = 'x: error while loading shared libraries: libstdc++.so.6: cannot open shared object file';
  writeFileSync(
    dir.join('plugins', 'tke-route-eni'),
    `#!/bin/sh\n[ -e ${dir.join('mended')} ] && exit 0\necho '${refused}' >&2\nexit 127\n`,
  );
  const told: (string | undefined)[] = [];
  const installation = open(dir, {}, { loaderProblemChanged: (why) => void told.push(why) });
  for (let turn = 0; turn < 2; turn++) {
    await installation.ensureExecutables();
    await installation.ensureConflist(true);
  }
  t.deepEqual(told, ['the CNI executables do not run on this node: libstdc++.so.6: cannot open shared object file']);
  t.false(readdirSync(dir.path).includes('conf'));

  writeFileSync(dir.join('mended'), '');
  await installation.ensureExecutables();
  await installation.ensureConflist(true);
  t.is(told.length, 2);
  t.is(told[1], undefined);
  t.deepEqual(readdirSync(dir.join('conf')), [CONFLIST_FILE]);
});

test('readSupportedVersions: names the plugin and its answer when there are no versions in it', async (t) => {
  const dir = folders(t);
  writeFileSync(dir.join('plugins', 'odd'), '#!/bin/sh\necho "[1]"\n', { mode: 0o755 });
  await t.throwsAsync(readSupportedVersions(dir.join('plugins'), 'odd'), {
    message: /odd answers VERSION without .*\[1\]/,
  });
  await t.throwsAsync(readSupportedVersions(dir.join('plugins'), 'none'), { code: 'ENOENT' });
});

const decides = test.macro((t, spoken: readonly string[][], cniVersion: string, cniVersions: readonly string[]) => {
  t.deepEqual(decideVersions(spoken), { cniVersion, cniVersions });
});
test('decideVersions: 1.1.0 is for runtimes that know the list', decides, [], '1.0.0', ['0.4.0', '1.0.0', '1.1.0']);
test(
  'decideVersions: what one plugin lacks, the chain lacks',
  decides,
  [
    ['0.4.0', '1.0.0', '1.1.0'],
    ['0.4.0', '1.0.0'],
  ],
  '1.0.0',
  ['0.4.0', '1.0.0'],
);
test('decideVersions: an old plugin keeps the chain old', decides, [['0.2.0', '0.3.1', '0.4.0']], '0.4.0', ['0.4.0']);
test('decideVersions: with nothing in common the oldest is tried', decides, [['0.2.0']], '0.4.0', ['0.4.0']);
test(
  'decideVersions: a chain that speaks only 1.1.0 says so to those who know the list',
  decides,
  [['1.1.0']],
  '1.0.0',
  ['1.1.0'],
);

function readConflist(dir: TempDir): Record<string, unknown> {
  return JSON.parse(readFileSync(dir.join('conf', CONFLIST_FILE), 'utf8')) as Record<string, unknown>;
}
