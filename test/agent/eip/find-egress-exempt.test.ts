import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import { findEgressExempt } from '../../../agent/eip/find-egress-exempt.ts';
import { followEgressExempt, restoreEgressExempt } from '../../../agent/eip/follow-egress-exempt.ts';
import type { Lease } from '../../../agent/journal/lease.ts';
import { writeNodeRecord } from '../../../agent/journal/node-file.ts';
import { NodeState } from '../../../agent/node-state.ts';
import { type PodRecord, podRecordOf } from '../../../agent/pods/pod-record.ts';
import { silentLogger } from '../../../runtime/log.ts';

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

function pod(name: string, annotations: Readonly<Record<string, string>>): PodRecord | undefined {
  const metadata = { name, namespace: 'default', uid: `uid-${name}`, annotations };
  return podRecordOf({ apiVersion: 'v1', kind: 'Pod', metadata, spec: { nodeName: 'n1' }, status: {} });
}

const WISH = { 'tke.cloud.tencent.com/eip-attributes': '' };
const PODS = new Map([
  ['with', pod('with', WISH)],
  ['without', pod('without', {})],
  ['wrong', pod('wrong', { 'tke.cloud.tencent.com/eip-attributes': '{' })],
]);
const podOf = (_namespace: string, name: string): PodRecord | undefined => PODS.get(name);

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

test('followEgressExempt: has the kernel changed and old connections forgotten once for each change', async (t) => {
  const state = new NodeState();
  const kicks: string[] = [];
  const flushed: string[] = [];
  const end = new AbortController();
  const conntrack = {
    flush: async (ips: readonly string[]) => void flushed.push(...ips),
    flushSurely: async () => undefined,
  };
  const kick = (): void => void kicks.push(state.egressExempt.join());
  const following = followEgressExempt(
    { state, pods: { find: podOf }, conntrack, log: silentLogger, kick },
    end.signal,
  );
  const turn = async (): Promise<void> => {
    state.demandChanged.notify();
    await new Promise((resolve) => setImmediate(resolve));
  };
  state.leases.set('a', lease('with', '10.0.0.1'));
  await turn();
  await turn();
  state.leases.set('b', lease('without', '10.0.0.2'));
  await turn();
  state.leases.delete('a');
  await turn();
  end.abort();
  await following;
  t.deepEqual(kicks, ['10.0.0.1', '']);
  t.deepEqual(flushed, ['10.0.0.1']);
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
    const [same, other, none] = [new NodeState(), new NodeState(), new NodeState()];
    restoreEgressExempt(same, dir, 'boot-1');
    restoreEgressExempt(other, dir, 'boot-2');
    restoreEgressExempt(none, join(dir, 'absent'), 'boot-1');
    t.deepEqual(
      [same, other, none].map((state) => state.egressExempt),
      [['10.0.0.4'], [], []],
    );
  } finally {
    rmSync(dir, { recursive: true });
  }
});
