import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import {
  findEgressExempt,
  followEgressExempt,
  restoreEgressExempt,
} from '../../../agent/follow/follow-egress-exempt.ts';
import type { Lease } from '../../../agent/journal/lease.ts';
import { findNodeRecord, writeNodeRecord } from '../../../agent/journal/node-file.ts';
import { type KubePod, kubePodOf } from '../../../agent/pods/kube-pod.ts';
import { NodeState } from '../../../agent/state/node-state.ts';
import { systemClock } from '../../../runtime/clock.ts';
import { silentLogger } from '../../../runtime/log.ts';
import { waitUntil } from '../../support/wait-until.ts';

function lease(name: string, ip: string, change: Partial<Lease> = {}): Lease {
  return {
    containerId: `c-${name}`,
    ifName: 'eth0',
    network: 'tke-route-eni',
    plugin: 'route-eni',
    netns: '/run/netns/x',
    podNamespace: 'default',
    podName: name,
    podUid: `uid-${name}`,
    addresses: [{ ip, family: 4, eniId: 'eni-a', assignmentId: 'a-1' }],
    eniId: 'eni-a',
    state: 'active',
    mtu: 1500,
    createdAtMs: 0,
    ...change,
  };
}

function pod(name: string, annotations: Readonly<Record<string, string>>): KubePod | undefined {
  const metadata = { name, namespace: 'default', uid: `uid-${name}`, annotations };
  return kubePodOf({ apiVersion: 'v1', kind: 'Pod', metadata, spec: { nodeName: 'n1' }, status: {} });
}

const WISH = { 'tke.cloud.tencent.com/eip-attributes': '' };
const PODS = new Map([
  ['with', pod('with', WISH)],
  ['without', pod('without', {})],
  ['wrong', pod('wrong', { 'tke.cloud.tencent.com/eip-attributes': '{' })],
]);
const podOf = (_namespace: string, name: string): KubePod | undefined => PODS.get(name);

for (const [title, leases, before, wanted] of [
  ['a Pod that asks for one', [lease('with', '10.0.0.1')], [], ['10.0.0.1']],
  ['no Pod that asks for none', [lease('without', '10.0.0.2')], ['10.0.0.2'], []],
  ['no Pod whose wish cannot be read', [lease('wrong', '10.0.0.3')], [], []],
  ['a Pod of which nobody says anything, as it was', [lease('silent', '10.0.0.4')], ['10.0.0.4'], ['10.0.0.4']],
  ['no Pod of which nobody ever said anything', [lease('silent', '10.0.0.4')], [], []],
  ['a namesake whose Pod is not seen yet, as it was', [lease('with', '10.0.0.5', { podUid: 'new' })], [], []],
  ['no address that is being taken down', [lease('with', '10.0.0.1', { state: 'releasing' })], ['10.0.0.1'], []],
  ['no address without a Pod', [], ['10.0.0.9'], []],
] as const) {
  test(`findEgressExempt: exempts ${title}`, (t) => {
    t.deepEqual(findEgressExempt({ leases, podOf, before: new Set(before) }), [...wanted]);
  });
}

function openEgress(pass: (exempt: string) => Promise<{ isStale: boolean }>) {
  const state = new NodeState(systemClock);
  const flushed: string[] = [];
  const kicks: string[] = [];
  const end = new AbortController();
  const conntrack = {
    flush: async (ips: readonly string[]) => void flushed.push(...ips),
    flushOrThrow: async () => undefined,
  };
  const report = { done: [], failed: [], paused: [], conflicts: [] };
  const loop = {
    pass: async () => ({ ...report, ...(await pass(state.egressExempt.join())) }),
    kick: (cause: string) => void kicks.push(cause),
  };
  const deps = { state, pods: { find: podOf }, conntrack, log: silentLogger, loop };
  const following = followEgressExempt(deps, end.signal);
  const turn = async (): Promise<void> => {
    state.demandChanged.notify();
    await new Promise((resolve) => setImmediate(resolve));
  };
  const close = async (): Promise<void> => {
    end.abort();
    await following;
  };
  return { state, flushed, kicks, turn, close };
}

test('followEgressExempt: has the kernel changed and old connections forgotten once for each change', async (t) => {
  const passes: string[] = [];
  const { state, flushed, kicks, turn, close } = openEgress(async (exempt) => {
    passes.push(exempt);
    return { isStale: false };
  });
  state.leases.set('a', lease('with', '10.0.0.1'));
  await turn();
  await turn();
  state.leases.set('b', lease('without', '10.0.0.2'));
  await turn();
  state.leases.delete('a');
  await turn();
  await close();
  t.deepEqual(passes, ['10.0.0.1', '']);
  t.deepEqual(flushed, ['10.0.0.1']);
  t.deepEqual(kicks, []);
});

test('followEgressExempt: forgets connections only once the kernel begins no other like them, and sees what came meanwhile', async (t) => {
  const passed = Promise.withResolvers<{ isStale: boolean }>();
  const { state, flushed, turn, close } = openEgress(() => passed.promise);
  state.leases.set('a', lease('with', '10.0.0.1'));
  await turn();
  t.deepEqual(flushed, []);
  state.leases.set('b', lease('with', '10.0.0.9'));
  await turn();
  passed.resolve({ isStale: false });
  await waitUntil(() => flushed.length === 2, { what: 'both' });
  t.deepEqual(flushed, ['10.0.0.1', '10.0.0.9']);
  await close();
});

test('followEgressExempt: has the kernel looked at again when it did not follow', async (t) => {
  const { state, flushed, kicks, turn, close } = openEgress(async () => {
    throw new Error('nft is busy');
  });
  state.leases.set('a', lease('with', '10.0.0.1'));
  await turn();
  await close();
  t.deepEqual([kicks, flushed], [['EIP'], ['10.0.0.1']]);
});

test('restoreEgressExempt: takes up what held in this boot, and nothing of another', (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'tke-test-'));
  try {
    const node = {
      ruleMode: 'compact',
      eniMarkMask: 0xff0000,
      rpFilterMode: 'loose',
      egress: 'node',
      primary: { ifindex: 2, ifname: 'eth0', addresses: [] },
      podCidrs: [],
      families: [4],
      nodePort: true,
      vpcCidrs: ['10.0.0.0/16'],
      egressExempt: ['10.0.0.4'],
    } as const;
    writeNodeRecord(dir, { bootId: 'boot-1', agentRelease: 'test', nodeName: 'n1', node, enis: [] });
    const [same, other, none] = [new NodeState(systemClock), new NodeState(systemClock), new NodeState(systemClock)];
    restoreEgressExempt(same, findNodeRecord(dir), 'boot-1');
    restoreEgressExempt(other, findNodeRecord(dir), 'boot-2');
    restoreEgressExempt(none, findNodeRecord(join(dir, 'absent')), 'boot-1');
    t.deepEqual(
      [same, other, none].map((state) => state.egressExempt),
      [['10.0.0.4'], [], []],
    );
  } finally {
    rmSync(dir, { recursive: true });
  }
});
