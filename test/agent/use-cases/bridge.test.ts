import test, { type ExecutionContext } from 'ava';
import { type AttachOutcome, attach } from '../../../agent/attachment/attach.ts';
import { collectInvalid, collectOrphans } from '../../../agent/attachment/collect.ts';
import { COLLECT_GRACE_MS } from '../../../agent/attachment/decide-collect.ts';
import { detach, recover } from '../../../agent/attachment/detach.ts';
import { noteOccupied, usePodCidrs } from '../../../agent/bridge/accept-pod-cidr.ts';
import type { CriSandbox, SandboxView } from '../../../agent/cri/sandbox-view.ts';
import type { Lease } from '../../../agent/journal/lease.ts';
import { kubePodOf } from '../../../agent/pods/kube-pod.ts';
import { NO_NETWORK_MODE_LOOKUP, openNetworkModeLookup } from '../../../agent/pods/network-mode-lookup.ts';
import { attachmentOf } from '../../../agent/server/attachment.ts';
import { WireError } from '../../../dataplane/wire-error.ts';
import type { KubeObject } from '../../../kube/kube-client.ts';
import { addOf, createTestNode, PATIENT, TEST_BRIDGE } from './fixtures.ts';

const BLOCK = '172.20.0.0/29';

function openNode(t: ExecutionContext, cidrs: readonly string[] = [BLOCK]) {
  const node = createTestNode(3);
  t.teardown(() => node.close());
  node.state.isBridgeDefault = true;
  usePodCidrs(node.state, cidrs);
  const events: string[] = [];
  const prepared: string[] = [];
  const deps = {
    ...node.deps,
    events: { report: (_type: string, reason: string) => void events.push(reason) },
    prepareBridge: async (cidr: string, again = '') => {
      prepared.push(`${cidr}${again}`);
      return TEST_BRIDGE;
    },
  };
  return { ...node, deps, events, prepared };
}

function leaseOf(outcome: AttachOutcome): Lease {
  if (outcome.kind !== 'attached') throw new Error(`${outcome.failure.code} ${outcome.failure.msg}`);
  return outcome.lease;
}

test('attach: a bridge Pod gets an address of the block, and the answer names its gateway', async (t) => {
  const { deps, state, wiring, prepared } = openNode(t);
  const lease = leaseOf(await attach(deps, addOf(1), PATIENT));
  t.like(lease, {
    ...{ plugin: 'bridge', eniId: `pod-cidr:${BLOCK}`, state: 'active', mtu: 1500 },
    ...{ block: { cidr: BLOCK, wiring: 'bridge' }, addresses: [{ ip: '172.20.0.2' }] },
  });
  t.deepEqual(prepared, [BLOCK]);
  const [pod] = wiring.pods.values();
  t.like(pod, { kind: 'bridge', wiring: 'bridge', block: { gateway: '172.20.0.1', prefixLength: 29 } });
  t.like(attachmentOf(lease, []), {
    ips: [{ address: '172.20.0.2/29', gateway: '172.20.0.1', interfaceIndex: 1 }],
    routes: [{ dst: '0.0.0.0/0', gw: '172.20.0.1' }],
  });
  t.deepEqual(deps.journal.load().leases, [lease]);
  t.is(state.pool.counts().leased, 0, 'no address of an ENI');
  t.deepEqual(leaseOf(await attach(deps, addOf(1), PATIENT)), lease, 'a repeated ADD');

  t.is(await detach(deps, addOf(1)), undefined);
  t.deepEqual([...wiring.pods.keys()], []);
  t.like(deps.journal.load().cooldowns[0], { ip: '172.20.0.2', eniId: `pod-cidr:${BLOCK}` });
});

test('attach: a routed Pod is answered as a Pod of a shared ENI', async (t) => {
  const { deps } = openNode(t);
  const lease = leaseOf(
    await attach({ ...deps, prepareBridge: async () => ({ ...TEST_BRIDGE, wiring: 'routed' }) }, addOf(1), PATIENT),
  );
  t.is(lease.block?.wiring, 'routed');
  t.like(attachmentOf(lease, []), { ips: [{ address: '172.20.0.2/32', gateway: '169.254.1.1' }] });
});

test('attach: of a full block the address that cooled longest is taken, and then none', async (t) => {
  const { deps, clock, flushed, events } = openNode(t);
  let failures = 0;
  deps.metrics.podCidrFull.inc = () => {
    failures += 1;
  };
  for (const number of [1, 2, 3, 4, 5]) leaseOf(await attach(deps, addOf(number), PATIENT));
  const full = await attach(deps, addOf(6), PATIENT);
  t.like(full, { kind: 'failed', failure: { code: 11 } });
  t.regex(full.kind === 'failed' ? full.failure.msg : '', /all 5 addresses of podCIDR 172\.20\.0\.0\/29 are in use/);
  await attach(deps, addOf(6), PATIENT);
  t.deepEqual(events, ['PodCIDRFull'], 'kubelet repeats the ADD, and nothing changed');
  t.is(failures, 2);
  await detach(deps, addOf(3));
  clock.advance(1_000);
  const lease = leaseOf(await attach(deps, addOf(6), PATIENT));
  t.is(lease.addresses[0]?.ip, '172.20.0.4');
  t.deepEqual(flushed, ['172.20.0.4']);
  await attach(deps, addOf(7), PATIENT);
  t.deepEqual(events, ['PodCIDRFull', 'PodCIDRFull'], 'it was not full in between');
});

test('attach: of a block that overlaps the VPC no Pod gets an address, and Pods that have one keep it', async (t) => {
  const { deps, state, events } = openNode(t);
  const lease = leaseOf(await attach(deps, addOf(1), PATIENT));
  const log = deps.log;
  const subnet = { cidr: '172.20.0.0/20', what: 'the subnet of eni-1' };
  noteOccupied({ state, events: deps.events, log }, [subnet]);
  noteOccupied({ state, events: deps.events, log }, [subnet, { cidr: '10.96.0.0/12', what: 'the range of Services' }]);
  t.deepEqual(events, ['PodCIDRRefused'], 'once');
  const refused = await attach(deps, addOf(2), PATIENT);
  t.like(refused, {
    kind: 'failed',
    failure: {
      code: 11,
      msg: 'podCIDR 172.20.0.0/29 overlaps the subnet of eni-1, 172.20.0.0/20, so no new Pod can be on the bridge',
    },
  });
  t.deepEqual(state.formerBlocks(), [BLOCK], 'its gateway and rule stay for the Pod');
  t.deepEqual(leaseOf(await attach(deps, addOf(1), PATIENT)), lease, 'a repeated ADD');
  noteOccupied({ state, events: deps.events, log }, []);
  t.is(leaseOf(await attach(deps, addOf(2), PATIENT)).addresses[0]?.ip, '172.20.0.3');
});

test('attach: without a podCIDR a bridge Pod waits, and an ENI Pod does not', async (t) => {
  const { deps, state } = openNode(t, []);
  const missing = await attach(deps, addOf(1), PATIENT);
  t.like(missing, { kind: 'failed', failure: { code: 11 } });
  t.regex(missing.kind === 'failed' ? missing.failure.msg : '', /this node has no podCIDR yet/);
  state.isBridgeDefault = false;
  t.is(leaseOf(await attach(deps, addOf(2), PATIENT)).plugin, 'route-eni');
});

test('attach: a bridge that another program deleted is made again, once', async (t) => {
  const { deps, wiring, prepared } = openNode(t);
  const missing = new WireError('BRIDGE_MISSING', 'the bridge cbr0 is missing');
  wiring.refusal = missing;
  const again = async (cidr: string, why = '') => {
    prepared.push(`${cidr}${why}`);
    if (why === 'again') wiring.refusal = undefined;
    return TEST_BRIDGE;
  };
  t.is(leaseOf(await attach({ ...deps, prepareBridge: again }, addOf(1), PATIENT)).state, 'active');
  t.deepEqual(prepared, [BLOCK, `${BLOCK}again`]);
  wiring.refusal = missing;
  const failed = await attach(deps, addOf(2), PATIENT);
  t.like(failed, { kind: 'failed', failure: { code: 11 } });
  t.is(deps.journal.load().leases.length, 1, 'nothing is left of it');
});

test('recover: a bridge Pod whose ADD was cut off is undone', async (t) => {
  const { deps, state } = openNode(t);
  const lease = leaseOf(await attach(deps, addOf(1), PATIENT));
  const pending: Lease = { ...lease, state: 'pending' };
  deps.journal.putLease(pending);
  state.leases.set('c1/eth0', pending);
  await recover(deps);
  t.deepEqual(deps.journal.load().leases, []);
  t.is(state.bridgePool.counts().leased, 0);
});

test('NodeState.restore: leases and cooldowns of the block come back after a restart', async (t) => {
  const { deps } = openNode(t);
  for (const number of [1, 2]) leaseOf(await attach(deps, addOf(number), PATIENT));
  await detach(deps, addOf(1));
  const after = openNode(t);
  after.state.restore(deps.journal.load());
  t.true(after.state.isBridgeUsed);
  const next = after.state.bridgePool.lease({ key: 'c9/eth0', families: [4], nowMs: 0 });
  t.like(next, { kind: 'leased', addresses: [{ ip: '172.20.0.4' }] });
});

test('attach: a burst of 30 Pods that the watch delivered makes no call to the API server', async (t) => {
  const { deps, state } = openNode(t, ['172.20.0.0/26']);
  const podOf = (name: string, networks?: string): KubeObject => ({
    ...{ apiVersion: 'v1', kind: 'Pod' },
    metadata: {
      ...{ name, namespace: 'default', uid: '' },
      annotations: networks === undefined ? {} : { 'tke.cloud.tencent.com/networks': networks },
    },
  });
  let calls = 0;
  const kube = {
    get: async () => {
      calls += 1;
      return undefined;
    },
  };
  const view = {
    find: (_namespace: string, name: string) => kubePodOf(podOf(name, name === 'p30' ? 'tke-route-eni' : undefined)),
  };
  state.networkModeLookup = openNetworkModeLookup(kube, view, { findUnanswered: () => undefined }, deps.clock);
  const outcomes = await Promise.all(Array.from({ length: 30 }, (_, index) => attach(deps, addOf(index + 1), PATIENT)));
  t.is(calls, 0);
  const plugins = outcomes.map((outcome) => leaseOf(outcome).plugin);
  t.is(plugins.filter((plugin) => plugin === 'bridge').length, 29);
  t.is(plugins[29], 'route-eni', 'the annotation goes before the default');
  state.networkModeLookup = NO_NETWORK_MODE_LOOKUP;
});

test('collectInvalid: ends dead bridge Pods that the runtime does not list, whatever the default is now; their addresses rest', async (t) => {
  const { deps, state, wiring, clock, absent } = openNode(t);
  for (const n of [1, 2]) leaseOf(await attach(deps, addOf(n), PATIENT));
  state.isBridgeDefault = false;
  leaseOf(await attach(deps, addOf(3), PATIENT));
  clock.advance(1);
  const { network } = addOf(1);
  const listed = [addOf(2), addOf(3)].map(({ containerId, ifName }) => ({ containerId, ifName }));
  t.deepEqual(await collectInvalid(deps, 'another', []), { released: 0, failed: 0 });
  t.deepEqual(await collectInvalid(deps, network, listed), { released: 0, failed: 0 }, 'it lives');
  absent.add(addOf(1).netns);
  t.deepEqual(await collectInvalid(deps, network, listed), { released: 1, failed: 0 });
  t.deepEqual(
    [...state.leases.values()].map(({ plugin, addresses }) => `${plugin} ${addresses[0]?.ip}`),
    ['bridge 172.20.0.3', 'route-eni 10.0.0.10'],
  );
  t.is(wiring.pods.size, 2);
  t.like(deps.journal.load().cooldowns, [{ ip: '172.20.0.2', eniId: `pod-cidr:${BLOCK}` }]);
});

test('collectOrphans: ends a bridge Pod whose sandbox is gone, and its former block with it', async (t) => {
  const { deps, state, clock } = openNode(t);
  for (const n of [1, 2]) leaseOf(await attach(deps, addOf(n), PATIENT));
  usePodCidrs(state, ['172.20.1.0/29']);
  t.deepEqual(state.formerBlocks(), [BLOCK]);
  clock.advance(COLLECT_GRACE_MS);
  const list = async (): Promise<readonly CriSandbox[]> => [];
  const view: SandboxView = { list, network: async () => undefined, close: () => {} };
  const gone = new Set(['/run/netns/n1']);
  const sandboxes = { ...deps.sandboxes, isAbsent: (path: string) => gone.has(path) };
  const collect = () => collectOrphans({ ...deps, sandboxes }, view, PATIENT);
  t.is(await collect(), 1);
  t.deepEqual([[...state.leases.keys()], state.formerBlocks()], [['c2/eth0'], [BLOCK]]);
  gone.add('/run/netns/n2');
  t.is(await collect(), 1);
  t.deepEqual([[...state.leases.keys()], state.formerBlocks()], [[], []]);
});
