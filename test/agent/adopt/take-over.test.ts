import test, { type ExecutionContext } from 'ava';
import { UNLISTED_RESERVATION_GRACE_MS } from '../../../agent/adopt/decide-stale-reservations.ts';
import { openTakeOver } from '../../../agent/adopt/take-over.ts';
import { attach } from '../../../agent/attachment/attach.ts';
import { detach } from '../../../agent/attachment/detach.ts';
import { usePodCidrs } from '../../../agent/bridge/accept-pod-cidr.ts';
import type { SandboxView } from '../../../agent/cri/sandbox-view.ts';
import type { PodInterface, PortEvidence } from '../../../agent/node/bridge-evidence.ts';
import { openHostLocalFiles } from '../../../agent/pod-cidr/host-local-files.ts';
import { silentLogger } from '../../../runtime/log.ts';
import { createTempDir } from '../../support/temp-dir.ts';
import { addOf, createTestNode, PATIENT } from '../use-cases/fixtures.ts';

const BLOCK = '172.20.0.0/29';
const NEVER = new AbortController().signal;
const PORT: PortEvidence = { ifindex: 20, name: 'veth1', mac: '02:00:00:00:00:20', mtu: 1500 };
const INSIDE: PodInterface = {
  ...{ netns: '/run/netns/old', ifName: 'eth0', ifindex: 3, mac: '02:00:00:00:00:03', peerIfindex: 20 },
  ...{ addresses: [{ ip: '172.20.0.2', prefixLength: 29 }], gateway: '172.20.0.1' },
};

/** A node whose bridge is used, with files of host-local and a runtime that lists no sandbox. */
function openNode(t: ExecutionContext) {
  const node = createTestNode(3);
  const dir = createTempDir('take-over');
  t.teardown(() => {
    node.close();
    dir.close();
  });
  const { state, clock } = node;
  state.isBridgeDefault = true;
  state.isBridgeUsed = true;
  const files = openHostLocalFiles('/', dir.join('tke-bridge'), silentLogger);
  const deps = { ...node.deps, reservations: files };
  const found: { ports: PortEvidence[]; interfaces: PodInterface[]; isMarkable: boolean } = {
    ...{ ports: [], interfaces: [], isMarkable: true },
  };
  const asked = { count: 0 };
  const list = async () => {
    asked.count += 1;
    return [];
  };
  const view: SandboxView = { list, network: async () => undefined, close: () => {} };
  const changes: string[] = [];
  const takeOver = openTakeOver({
    ...{ clock, log: silentLogger, state, journal: deps.journal, reservations: files, view },
    readPorts: () => found.ports,
    readInterfaces: () => ({ interfaces: found.interfaces, isComplete: true }),
    isNetnsAbsent: () => false,
    mark: () => {
      if (!found.isMarkable) throw new Error('the namespace is gone');
    },
    changed: (cause) => void changes.push(cause),
  });
  const ips = () => [...state.leases.values()].flatMap(({ addresses }) => addresses.map(({ ip }) => ip)).sort();
  return { state, clock, deps, files, found, takeOver, changes, ips, asked };
}

test('openTakeOver: a Pod on the bridge gets a lease, which a DEL ends with its file', async (t) => {
  const { state, deps, files, found, takeOver, changes, ips } = openNode(t);
  usePodCidrs(state, [BLOCK]);
  files.reserve({ ip: '172.20.0.2', containerId: 'old', ifName: 'eth0' });
  Object.assign(found, { ports: [PORT], interfaces: [INSIDE] });
  await takeOver.run(NEVER);
  await takeOver.run(NEVER);
  t.deepEqual(ips(), ['172.20.0.2']);
  t.deepEqual(changes, ['taken over'], 'once');
  t.is(deps.journal.load().leases[0]?.containerId, 'old');
  await attach(deps, addOf(1), PATIENT);
  t.deepEqual(ips(), ['172.20.0.2', '172.20.0.3']);
  t.is(files.list().length, 2, 'ours is reserved too');
  t.is(await detach(deps, { containerId: 'old', ifName: 'eth0' }), undefined);
  t.deepEqual(ips(), ['172.20.0.3']);
  t.deepEqual(
    files.list().map(({ ip }) => ip),
    ['172.20.0.3'],
  );
});

test('openTakeOver: an address that only a file names is held until it is proven free, also when the block comes later', async (t) => {
  const { state, clock, deps, files, takeOver, ips } = openNode(t);
  files.reserve({ ip: '172.20.0.2', containerId: 'gone', ifName: 'eth0' });
  await takeOver.run(NEVER);
  usePodCidrs(state, [BLOCK]);
  await attach(deps, addOf(1), PATIENT);
  t.deepEqual(ips(), ['172.20.0.3']);
  await clock.advance(UNLISTED_RESERVATION_GRACE_MS - 1);
  await takeOver.run(NEVER);
  t.is(state.bridgePool.state.addresses.get('172.20.0.2')?.state, 'withdrawn');
  await clock.advance(60_000);
  await takeOver.run(NEVER);
  t.is(state.bridgePool.state.addresses.get('172.20.0.2')?.state, 'free');
  await attach(deps, addOf(2), PATIENT);
  t.true(ips().includes('172.20.0.2'));
});

test('openTakeOver: the list of another runtime takes no address from a Pod whose namespace was not found', async (t) => {
  const { state, clock, files, found, takeOver } = openNode(t);
  usePodCidrs(state, [BLOCK]);
  files.reserve({ ip: '172.20.0.2', containerId: 'of-another-runtime', ifName: 'eth0' });
  Object.assign(found, { ports: [PORT] });
  await takeOver.run(NEVER);
  await clock.advance(2 * UNLISTED_RESERVATION_GRACE_MS);
  await takeOver.run(NEVER);
  t.is(files.list().length, 1);
  t.is(state.bridgePool.state.addresses.get('172.20.0.2')?.state, 'withdrawn');
  Object.assign(found, { ports: [] });
  await takeOver.run(NEVER);
  t.deepEqual(files.list(), []);
  t.is(state.bridgePool.state.addresses.get('172.20.0.2')?.state, 'free');
});

test('attach: an address that host-local gave since is passed over', async (t) => {
  const { state, deps, files, ips } = openNode(t);
  usePodCidrs(state, [BLOCK]);
  for (const ip of ['172.20.0.2', '172.20.0.3']) files.reserve({ ip, containerId: 'theirs', ifName: 'eth0' });
  await attach(deps, addOf(1), PATIENT);
  t.deepEqual(ips(), ['172.20.0.4']);
  for (const ip of ['172.20.0.5', '172.20.0.6']) files.reserve({ ip, containerId: 'theirs', ifName: 'eth0' });
  const outcome = await attach(deps, addOf(2), PATIENT);
  t.is(outcome.kind, 'failed');
  t.regex(outcome.kind === 'failed' ? outcome.failure.msg : '', /1 of them by Pods, and 4 reserved by host-local/);
});

test('openTakeOver: a Pod that cannot be taken over keeps its address, and is taken by a later run', async (t) => {
  const { state, files, found, takeOver, ips } = openNode(t);
  usePodCidrs(state, [BLOCK]);
  files.reserve({ ip: '172.20.0.2', containerId: 'old', ifName: 'eth0' });
  Object.assign(found, { ports: [PORT], interfaces: [INSIDE], isMarkable: false });
  await takeOver.run(NEVER);
  t.deepEqual(ips(), []);
  t.deepEqual([...state.heldIps], ['172.20.0.2']);
  found.isMarkable = true;
  await takeOver.run(NEVER);
  t.deepEqual(ips(), ['172.20.0.2']);
  t.deepEqual([...state.heldIps], []);
});

test('openTakeOver: what stays unexplained is looked at twice, then once a minute, and at once when something comes', async (t) => {
  const { state, clock, files, found, takeOver, asked, ips } = openNode(t);
  usePodCidrs(state, [BLOCK]);
  files.reserve({ ip: '172.20.0.3', containerId: 'making', ifName: 'eth0' });
  for (let seconds = 0; seconds < 50; seconds += 10) {
    await takeOver.run(NEVER);
    await clock.advance(10_000);
  }
  t.is(asked.count, 2);
  await clock.advance(60_000);
  await takeOver.run(NEVER);
  files.reserve({ ip: '172.20.0.4', containerId: 'making', ifName: 'eth0' });
  await takeOver.run(NEVER);
  t.is(asked.count, 4);
  files.reserve({ ip: '172.20.0.2', containerId: 'old', ifName: 'eth0' });
  Object.assign(found, { ports: [PORT], interfaces: [INSIDE] });
  await takeOver.run(NEVER);
  t.deepEqual(ips(), ['172.20.0.2']);
});

test('openTakeOver: nothing is looked at while the bridge is that of another program', async (t) => {
  const { state, files, found, takeOver, ips } = openNode(t);
  state.isBridgeUsed = false;
  files.reserve({ ip: '172.20.0.2', containerId: 'old', ifName: 'eth0' });
  Object.assign(found, { ports: [PORT], interfaces: [INSIDE] });
  await takeOver.run(NEVER);
  t.deepEqual(ips(), []);
});

test('openTakeOver: a file that another program removed is written again while its Pod lives', async (t) => {
  const { state, deps, files, takeOver } = openNode(t);
  usePodCidrs(state, [BLOCK]);
  await attach(deps, addOf(1), PATIENT);
  const [mine] = files.list();
  if (mine === undefined) return t.fail();
  files.release(mine);
  await takeOver.run(NEVER);
  t.deepEqual(files.list(), [mine]);
});
