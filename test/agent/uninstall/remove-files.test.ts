import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import test from 'ava';
import type { Lease } from '../../../agent/journal/lease.ts';
import { openHostLocalFiles } from '../../../agent/pod-cidr/host-local-files.ts';
import {
  removeConfiguration,
  removeDelegations,
  removeDevicePluginSockets,
  removeReservations,
  removeState,
} from '../../../agent/uninstall/remove-files.ts';
import { Sweep } from '../../../agent/uninstall/sweep.ts';
import { silentLogger } from '../../../runtime/log.ts';
import { run, tryRun } from '../../../sim/support/run.ts';
import { createTempDir } from '../../support/temp-dir.ts';

const JOURNAL_FILES = [
  ...['journal.db', 'journal.db-journal', 'journal.db.new', 'journal.db.damaged-1', 'journal.db.damaged-1-journal'],
  ...['found.json', 'found.json.12.tmp', 'node.json', 'node.json.12.tmp', 'agent.sock', 'agent.sock.new'],
];

const MOVED_ASIDE = ['found.json.aside-1', 'node.json.aside-12', 'deletions.aside-1', 'agent.sock.aside-1'];

test('removeState: takes files of ours and the folder, and leaves a folder that holds those of others', async (t) => {
  const dir = createTempDir('remove-files');
  t.teardown(() => dir.close());
  const places = { socket: dir.join('state', 'agent.sock'), stateDir: dir.join('state'), hostRoot: '/' };
  for (const others of [[], ['journal.db.bak', 'notes.txt']]) {
    mkdirSync(dir.join('state', 'deletions'), { recursive: true });
    writeFileSync(dir.join('state', 'deletions', 'abc.eth0'), '');
    for (const name of [...JOURNAL_FILES, ...MOVED_ASIDE, ...others]) writeFileSync(dir.join('state', name), '');
    const sweep = new Sweep(silentLogger);
    await removeState(places, sweep);
    t.deepEqual(sweep.report(), {
      removed: { file: JOURNAL_FILES.length + MOVED_ASIDE.length + 1 },
      left: [],
      failed: [],
    });
    t.deepEqual(readdirSync(dir.path), others.length === 0 ? [] : ['state']);
    if (others.length > 0) t.deepEqual(readdirSync(dir.join('state')), others);
    await removeState(places, sweep);
    t.false(sweep.hasFailed(), 'a second time finds nothing to do');
  }
});

test('removeReservations: takes what the agent reserved with host-local, and a folder that host-local never used', async (t) => {
  const dir = createTempDir('remove-files');
  t.teardown(() => dir.close());
  const config = { hostRoot: '/', grHostLocalDir: dir.join('tke-bridge') };
  const files = openHostLocalFiles('/', config.grHostLocalDir, silentLogger);
  const lease = {
    containerId: 'ours',
    addresses: [{ ip: '192.168.0.66' }],
    block: { cidr: '192.168.0.64/26', wiring: 'bridge' },
  } as unknown as Lease;
  files.reserve({ ip: '192.168.0.66', containerId: 'ours', ifName: 'eth0' });
  files.reserve({ ip: '192.168.0.67', containerId: 'theirs', ifName: 'eth0' });
  const sweep = new Sweep(silentLogger);
  await removeReservations(config, [lease], silentLogger, sweep);
  t.deepEqual(
    files.list().map(({ ip }) => ip),
    ['192.168.0.67'],
  );
  files.release({ ip: '192.168.0.67', containerId: 'theirs' });
  await removeReservations(config, [], silentLogger, sweep);
  await removeReservations({ ...config, grHostLocalDir: '' }, [lease], silentLogger, sweep);
  t.deepEqual(readdirSync(dir.path), []);
  t.false(sweep.hasFailed());
});

test('removeDelegations: leaves the records of Pods that other plugins connected, and takes an empty folder', async (t) => {
  const dir = createTempDir('remove-files');
  t.teardown(() => dir.close());
  const folder = dir.join('var', 'lib', 'cni', 'tke-eni', 'delegates');
  mkdirSync(folder, { recursive: true });
  const removal = async () => {
    const sweep = new Sweep(silentLogger);
    await removeDelegations(dir.path, sweep);
    return sweep.report();
  };
  writeFileSync(`${folder}/c1@eth0.json`, '{}');
  const left = ['/var/lib/cni/tke-eni/delegates: 1 interfaces of Pods that other plugins made'];
  t.deepEqual(await removal(), { removed: {}, left, failed: [] });
  rmSync(`${folder}/c1@eth0.json`);
  writeFileSync(`${folder}/c2@eth0.json.7.tmp`, '');
  t.deepEqual(await removal(), { removed: { file: 1 }, left: [], failed: [] });
  t.deepEqual(readdirSync(dir.join('var', 'lib', 'cni')), []);
  t.deepEqual((await removal()).failed, [], 'a second time finds nothing to do');
});

test('removeConfiguration, removeDevicePluginSockets: take ours and nothing else, and bear folders that are not there', async (t) => {
  const dir = createTempDir('remove-files');
  t.teardown(() => dir.close());
  const sweep = new Sweep(silentLogger);
  mkdirSync(dir.join('conf'));
  mkdirSync(dir.join('kubelet', 'device-plugins'), { recursive: true });
  const ours = ['10-tke-eni.conflist', '10-tke-eni.conflist.7.tmp', '10-tke-eni.conflist.removed'];
  for (const name of [...ours, '10-tke-eni.conflist.aside-1', '20-others.conf']) {
    writeFileSync(dir.join('conf', name), '');
  }
  for (const name of ['kubelet.sock', 'tke-eni-ip.sock', 'tke-eni-ip.sock.new', 'gpu.sock']) {
    writeFileSync(dir.join('kubelet', 'device-plugins', name), '');
  }
  for (const place of ['', 'none']) {
    await removeConfiguration(dir.join(place, 'conf'), sweep);
    await removeDevicePluginSockets(dir.join(place, 'kubelet'), sweep);
  }
  await removeDevicePluginSockets('', sweep);
  t.deepEqual(sweep.report().failed, []);
  t.deepEqual(readdirSync(dir.join('conf')).sort(), ['10-tke-eni.conflist.aside-1', '20-others.conf']);
  t.deepEqual(sweep.report().left, [
    `${dir.join('conf', '10-tke-eni.conflist.aside-1')}: stood in the place of our file`,
  ]);
  t.deepEqual(readdirSync(dir.join('kubelet', 'device-plugins')).sort(), ['gpu.sock', 'kubelet.sock']);
});

test('removeState: leaves a folder that is a mount point, and says so', async (t) => {
  if ((await tryRun(['id', '-u'])).stdout.trim() !== '0') {
    t.pass('mounting needs root');
    return;
  }
  const dir = createTempDir('remove-files');
  const state = dir.join('state');
  mkdirSync(state);
  await run(['mount', '-t', 'tmpfs', 'tmpfs', state]);
  t.teardown(async () => {
    await run(['umount', state]);
    dir.close();
  });
  writeFileSync(dir.join('state', 'journal.db'), '');
  const sweep = new Sweep(silentLogger);
  await removeState({ socket: dir.join('state', 'agent.sock'), stateDir: state, hostRoot: '/' }, sweep);
  t.deepEqual(sweep.report(), { removed: { file: 1 }, left: [`${state}: an empty folder, mounted here`], failed: [] });
});
