import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import test, { type ExecutionContext } from 'ava';
import { openFoundState, readFoundState } from '../../../agent/node/found-state.ts';
import { BRIDGE_IFINDEX } from '../../../dataplane/numbers.ts';
import type { Operation } from '../../../dataplane/operation.ts';
import { silentLogger } from '../../../runtime/log.ts';
import { rpFilter } from '../../../sysctl/sysctl-key.ts';
import { createTempDir } from '../../support/temp-dir.ts';

function fileIn(t: ExecutionContext): string {
  const dir = createTempDir('found-state');
  t.teardown(() => dir.close());
  return dir.join('found.json');
}

function sysctl(ifname: string, before: string, value: string): Operation {
  return { kind: 'set-sysctl', key: rpFilter(ifname), value, before };
}

const SET_UP: Operation = {
  kind: 'set-link',
  ...{ ifindex: 7, ifname: 'eth1', change: { up: true, mtu: 1400 }, before: { up: false, mtu: 1500 } },
};

test('openFoundState: keeps the first finding through restarts, and the last value that was set', (t) => {
  const path = fileIn(t);
  const first = openFoundState(path, 'boot-1', silentLogger);
  first.record(sysctl('eth0', '1', '2'));
  first.record(SET_UP);
  const second = openFoundState(path, 'boot-1', silentLogger);
  second.record(sysctl('eth0', '2', '0'));
  second.record({ ...SET_UP, change: { mtu: 1300 }, before: { mtu: 1400 } });
  t.deepEqual(readFoundState(path, 'boot-1'), {
    bootId: 'boot-1',
    sysctls: [{ path: ['net', 'ipv4', 'conf', 'eth0', 'rp_filter'], found: '1', set: '0' }],
    links: [{ ifindex: 7, ifname: 'eth1', found: { up: false, mtu: 1500 }, set: { up: true, mtu: 1300 } }],
  });
});

test("openFoundState: notes nothing of Pods' links, and nothing that is no setting", (t) => {
  const path = fileIn(t);
  const keeper = openFoundState(path, 'boot-1', silentLogger);
  keeper.record(sysctl('eni0123456789a', '0', '1'));
  keeper.record({ ...SET_UP, ifname: 'eni0123456789a' });
  keeper.record({ kind: 'delete-address', address: { ifindex: 7, ifname: 'eth1', prefix: '10.0.2.2/32' } });
  t.throws(() => readFileSync(path), { code: 'ENOENT' });
});

test('openFoundState: notes settings of a bridge of others, and none of the bridge that we made, which an uninstallation deletes', (t) => {
  const path = fileIn(t);
  const ours = openFoundState(path, 'boot-1', silentLogger, () => 'cbr0');
  ours.record(sysctl('cbr0', '0', '1'));
  ours.record({ ...SET_UP, ifindex: BRIDGE_IFINDEX, ifname: 'cbr0' });
  t.throws(() => readFileSync(path), { code: 'ENOENT' });
  ours.record(sysctl('cbr0x', '0', '1'));
  openFoundState(path, 'boot-1', silentLogger).record(sysctl('cbr0', '0', '1'));
  t.deepEqual(
    readFoundState(path, 'boot-1').sysctls.map(({ path: [, , , ifname] }) => ifname),
    ['cbr0x', 'cbr0'],
  );
});

test('readFoundState: believes neither another boot nor a damaged file', (t) => {
  const path = fileIn(t);
  openFoundState(path, 'boot-1', silentLogger).record(SET_UP);
  t.is(readFoundState(path, 'boot-1').links.length, 1);
  t.is(readFoundState(path, 'boot-2').links.length, 0);
  writeFileSync(path, '{"bootId": "boot-1", "sysctls": 3}');
  t.deepEqual(readFoundState(path, 'boot-1'), { bootId: 'boot-1', sysctls: [], links: [] });
  // It begins again over it.
  openFoundState(path, 'boot-1', silentLogger).record(SET_UP);
  t.is(readFoundState(path, 'boot-1').links.length, 1);
});

test('openFoundState: a full disk keeps nobody from work', (t) => {
  const keeper = openFoundState('/proc/no/found.json', 'boot-1', silentLogger);
  t.notThrows(() => keeper.record(SET_UP));
});

for (const [what, make] of [
  ['a FIFO', (path: string) => execFileSync('mkfifo', [path])],
  ['a link to a device', (path: string) => symlinkSync('/dev/zero', path)],
  ['a link to itself', (path: string) => symlinkSync(path, path)],
] as const) {
  test(`readFoundState: counts ${what} as empty at once, and the next finding replaces it`, (t) => {
    const path = fileIn(t);
    make(path);
    t.deepEqual(readFoundState(path, 'boot-1'), { bootId: 'boot-1', sysctls: [], links: [] });
    openFoundState(path, 'boot-1', silentLogger).record(SET_UP);
    t.is(readFoundState(path, 'boot-1').links.length, 1);
  });
}

test('openFoundState: keeps addresses that were added and what is being restored, until that is forgotten', (t) => {
  const path = fileIn(t);
  const keeper = openFoundState(path, 'boot-1', silentLogger);
  const address = { ifindex: 7, ifname: 'eth1', prefix: '10.0.2.2/32' };
  keeper.record(sysctl('eth1', '1', '2'));
  keeper.record(SET_UP);
  keeper.record({ kind: 'add-address', address });
  keeper.record({ kind: 'add-address', address });
  const before = readFoundState(path, 'boot-1');
  t.deepEqual(before.addresses, [address]);
  keeper.record(sysctl('eth1', '2', '1'));
  keeper.record({ ...SET_UP, change: { up: false, mtu: 1500 }, before: { up: true, mtu: 1400 } });
  t.deepEqual(readFoundState(path, 'boot-1'), before, 'restoring changes no record');
  const { sysctls, links, addresses = [] } = keeper.current();
  keeper.forget([...sysctls, ...links, ...addresses]);
  t.deepEqual(readFoundState(path, 'boot-1'), { bootId: 'boot-1', sysctls: [], links: [] });
});

test('restore: writes a file again that is gone, damaged or a folder, and nothing where nothing was recorded', (t) => {
  const path = fileIn(t);
  const recorder = openFoundState(path, 'boot-1', silentLogger);
  recorder.restore();
  t.false(existsSync(path));
  recorder.record(SET_UP);
  const recorded = readFoundState(path, 'boot-1');
  for (const harm of [() => {}, () => writeFileSync(path, '{'), () => mkdirSync(path)]) {
    rmSync(path);
    harm();
    recorder.restore();
    t.deepEqual(readFoundState(path, 'boot-1'), recorded);
  }
});
