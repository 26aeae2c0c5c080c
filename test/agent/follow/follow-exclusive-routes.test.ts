import test from 'ava';
import { followExclusiveRoutes } from '../../../agent/follow/follow-exclusive-routes.ts';
import type { Lease } from '../../../agent/journal/lease.ts';
import { leaseKey } from '../../../agent/journal/lease.ts';
import { NodeState } from '../../../agent/state/node-state.ts';
import type { NodeNetwork } from '../../../dataplane/network.ts';
import { KeyedMutex } from '../../../runtime/keyed-mutex.ts';
import { silentLogger } from '../../../runtime/log.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';
import { sampleLease } from '../pool/supply-sample.ts';

const NODE: NodeNetwork = {
  ...{ ruleMode: 'compact', eniMarkMask: 0xff, rpFilterMode: 'loose', egress: 'eni', families: [4], nodePort: false },
  ...{ primary: { ifindex: 2, ifname: 'eth0', addresses: ['10.0.0.2'] }, podCidrs: [], vpcCidrs: [] },
};

const direct = (containerId: string, state: Lease['state']): Lease =>
  sampleLease(containerId, 'eni-9', ['10.0.1.5'], {
    ...{ state, plugin: 'direct-eni' },
    nic: { mac: '02:00:00:00:00:09', hostName: 'eth9', mtu: 1500, primary: [], sideMac: '02:00:00:00:00:0a' },
  });

test('followExclusiveRoutes: each living Pod follows each change once, and one that fails is tried again', async (t) => {
  const clock = new VirtualClock();
  const state = new NodeState(clock);
  for (const lease of [direct('a', 'active'), direct('b', 'active'), direct('c', 'pending'), direct('d', 'releasing')])
    state.leases.set(leaseKey(lease), lease);
  let node: NodeNetwork | undefined;
  let failing = '';
  const updated: string[] = [];
  const warned: string[] = [];
  const ending = new AbortController();
  const running = followExclusiveRoutes(
    {
      ...{ state, clock, log: { ...silentLogger, warn: (text: string) => void warned.push(text) } },
      ...{ mutex: new KeyedMutex(), nodeNetwork: () => node },
      wiring: {
        updateRoutes: async (pod, netns) => {
          updated.push(netns);
          if (pod.key.containerId === failing) throw new Error('ENETDOWN');
          return [];
        },
      },
    },
    ending.signal,
  );
  const step = async (ms: number): Promise<readonly string[]> => {
    state.changed.notify();
    await clock.advance(ms);
    return updated.splice(0).map((path) => path.slice('/run/netns/'.length));
  };
  t.deepEqual(await step(60_000), [], 'there is no plan yet');
  node = NODE;
  t.deepEqual(await step(60_000), ['a', 'b'], 'what an earlier agent left undone');
  t.deepEqual(await step(60_000), []);
  node = { ...NODE, serviceCidrs: ['10.96.0.0/12'] };
  t.deepEqual(await step(0), ['a', 'b']);
  failing = 'a';
  node = { ...NODE, primary: { ...NODE.primary, addresses: ['10.0.0.3'] } };
  t.deepEqual(await step(0), ['a', 'b'], 'the failure of one is not that of the others');
  t.deepEqual(await step(5_000), [], 'however often something changes');
  t.deepEqual(await step(10_000), ['a'], 'the one that failed is tried again, alone');
  t.deepEqual(await step(10_000), [], 'each time later');
  t.deepEqual(await step(10_000), ['a']);
  t.deepEqual(warned, ['the routes of a Pod do not follow the node yet'], 'the same reason is logged once');
  failing = '';
  t.deepEqual(await step(40_000), ['a']);
  t.deepEqual(await step(60_000), []);
  ending.abort();
  await running;
});
