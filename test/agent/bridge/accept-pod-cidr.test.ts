import test, { type ExecutionContext } from 'ava';
import { acceptPodCidrs, type PodCidrDeps } from '../../../agent/bridge/accept-pod-cidr.ts';
import { createTestNode } from '../use-cases/fixtures.ts';

function openNode(t: ExecutionContext) {
  const node = createTestNode(1);
  t.teardown(() => node.close());
  const events: string[] = [];
  const kicks: string[] = [];
  const deps: PodCidrDeps = {
    ...node.deps,
    events: { report: (_type, reason, message) => void events.push(`${reason}: ${message}`) },
    changed: (cause) => void kicks.push(cause),
  };
  return { ...node, events, kicks, accept: (cidrs: readonly string[]) => acceptPodCidrs(deps, cidrs) };
}

test('acceptPodCidrs: gives the addresses to the pool, records the block, and asks for a pass', (t) => {
  const { state, deps, accept, events, kicks } = openNode(t);
  accept(['172.20.0.0/26']);
  t.is(state.bridgePool.counts().total, 61);
  t.deepEqual(deps.journal.load().podCidrs, ['172.20.0.0/26']);
  t.deepEqual(kicks, ['podCIDR']);
  t.deepEqual(events, [], 'the first block is no change');
  accept(['172.20.0.0/26']);
  t.is(kicks.length, 1);
});

test('acceptPodCidrs: another block serves new Pods, and the former one stays with its Pods', (t) => {
  const { state, accept, events } = openNode(t);
  accept(['172.20.0.0/26']);
  const leased = state.bridgePool.lease({ key: 'c1/eth0', families: [4], nowMs: 0 });
  t.like(leased, { kind: 'leased', addresses: [{ ip: '172.20.0.2' }] });
  const block = { cidr: '172.20.0.0/26', wiring: 'bridge' } as const;
  const address = { ip: '172.20.0.2', family: 4, eniId: 'pod-cidr:172.20.0.0/26', assignmentId: '' } as const;
  state.leases.set('c1/eth0', {
    ...{
      containerId: 'c1',
      ifName: 'eth0',
      network: '',
      plugin: 'bridge',
      netns: '',
      mtu: 1500,
      createdAtMs: 0,
      block,
    },
    ...{ podNamespace: '', podName: '', podUid: '', addresses: [address], eniId: address.eniId, state: 'active' },
  });
  accept(['172.20.9.0/26']);
  t.deepEqual(state.formerBlocks(), ['172.20.0.0/26']);
  t.like(state.bridgePool.lease({ key: 'c2/eth0', families: [4], nowMs: 0 }), { addresses: [{ ip: '172.20.9.2' }] });
  t.is(events.length, 1);
  t.regex(events[0] ?? '', /^PodCIDRChanged: podCIDR is 172\.20\.9\.0\/26, was 172\.20\.0\.0\/26; 1 Pods keep/);
});

test('acceptPodCidrs: a block in a network that is in use serves no Pod, and is recorded', (t) => {
  const { state, deps, accept, events } = openNode(t);
  state.occupied = [{ cidr: '10.0.0.0/16', what: 'the subnet of eni-1' }];
  accept(['10.0.3.0/26']);
  t.is(state.bridgePool.counts().total, 0);
  t.is(state.blockProblem(), 'podCIDR 10.0.3.0/26 overlaps the subnet of eni-1, 10.0.0.0/16');
  t.deepEqual(events, [
    'PodCIDRRefused: podCIDR 10.0.3.0/26 overlaps the subnet of eni-1, 10.0.0.0/16: no new Pod gets an address of it, those that have one keep it',
  ]);
  t.deepEqual(deps.journal.load().podCidrs, ['10.0.3.0/26'], 'what the Node says: it may be taken later');
  accept(['172.20.0.0/26']);
  t.is(state.bridgePool.counts().total, 61);
  t.is(state.blockProblem(), undefined);
});

test('acceptPodCidrs: a Node without a block gives no new addresses', (t) => {
  const { state, accept, events } = openNode(t);
  accept(['172.20.0.0/26']);
  accept([]);
  t.is(state.bridgePool.lease({ key: 'c1/eth0', families: [4], nowMs: 0 }).kind, 'exhausted');
  t.regex(events[0] ?? '', /podCIDR is none/);
});
