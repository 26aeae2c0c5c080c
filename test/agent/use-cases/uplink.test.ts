import test, { type ExecutionContext } from 'ava';
import { type AttachOutcome, attach } from '../../../agent/attachment/attach.ts';
import { detach } from '../../../agent/attachment/detach.ts';
import type { Lease } from '../../../agent/journal/lease.ts';
import { podNetworkOf } from '../../../agent/journal/pod-network.ts';
import { attachmentOf, type EniAddressing } from '../../../agent/server/attachment.ts';
import { planPod } from '../../../dataplane/plan-pod.ts';
import { planRemoval } from '../../../dataplane/plan-removal.ts';
import { node } from '../../dataplane/fixtures.ts';
import { addOf, createTestNode, PATIENT } from './fixtures.ts';

const IPAM = { plugin: 'ipam', netns: '' } as const;

function leaseOf(t: ExecutionContext, outcome: AttachOutcome): Lease {
  if (outcome.kind === 'attached') return outcome.lease;
  t.fail('the ADD failed');
  throw new Error('the ADD failed');
}

test('attach: an uplink is recorded with the lease, and stays what it was', async (t) => {
  const n = createTestNode(3);
  t.teardown(() => n.close());
  const lease = leaseOf(t, await attach(n.deps, addOf(1, { ...IPAM, uplink: true }), PATIENT));
  t.true(lease.uplink);
  t.deepEqual(n.deps.journal.load().leases, [lease]);
  t.deepEqual(leaseOf(t, await attach(n.deps, addOf(1, { ...IPAM, uplink: true }), PATIENT)), lease);
  const plain = leaseOf(t, await attach(n.deps, addOf(2, IPAM), PATIENT));
  t.is(plain.uplink, undefined);
  t.is(await detach(n.deps, { containerId: 'c1', ifName: 'eth0' }), undefined);
  t.deepEqual(n.deps.journal.load().leases, [plain]);
});

test('attach: one that comes again for another use of the address makes the attachment again', async (t) => {
  const n = createTestNode(3);
  t.teardown(() => n.close());
  await attach(n.deps, addOf(1, IPAM), PATIENT);
  const lease = leaseOf(t, await attach(n.deps, addOf(1, { ...IPAM, uplink: true }), PATIENT));
  t.true(lease.uplink);
  t.is(n.state.leases.size, 1);
});

const PRIMARY: EniAddressing = {
  ...{ family: 4, ip: '10.0.0.2', gateway: '10.0.0.1', subnetCidr: '10.0.0.0/24' },
  link: { name: 'eth1', mac: '02:00:00:00:00:01' },
};

test('podNetworkOf: an uplink has no rule of ours in either rule mode; without one both rules stand', async (t) => {
  const n = createTestNode(3);
  t.teardown(() => n.close());
  for (const [uplink, rules] of [
    [true, 0],
    [false, 2],
  ] as const) {
    const lease = leaseOf(t, await attach(n.deps, addOf(uplink ? 1 : 2, { ...IPAM, uplink }), PATIENT));
    const pod = podNetworkOf(lease, { table: 4007 });
    for (const ruleMode of ['compact', 'per-pod'] as const) {
      t.is(planPod({ ...node, ruleMode }, pod).host.rules.length, rules);
    }
    t.is(planRemoval(node, pod, []).rules.length, rules);
  }
});

test('attachmentOf: an uplink is the ENI, with the gateway of the VPC for each address; never one without a gateway', async (t) => {
  const n = createTestNode(3);
  t.teardown(() => n.close());
  const lease = leaseOf(t, await attach(n.deps, addOf(1, { ...IPAM, uplink: true }), PATIENT));
  t.deepEqual<unknown, unknown>(attachmentOf(lease, [PRIMARY]), {
    interfaces: [{ name: 'eth1', mac: '02:00:00:00:00:01', mtu: 0, sandbox: '' }],
    ips: [{ address: '10.0.0.10/24', gateway: '10.0.0.1', interfaceIndex: -1, eniId: 'eni-1' }],
    routes: [{ dst: '0.0.0.0/0', gw: '10.0.0.1' }],
  });
  const { link: _gone, ...withoutLink } = PRIMARY;
  for (const [enis, message] of [
    [[withoutLink], /ENI eni-1 of 10\.0\.0\.10 has no interface on this node/],
    [[{ ...PRIMARY, gateway: '' }], /has no IPv4 gateway/],
    [[], /has no interface on this node/],
  ] as const) {
    t.throws(() => attachmentOf(lease, enis), { name: 'CniFailureError', message });
  }
});
