import test from 'ava';
import { customResourceDefinition } from '../../../crd/custom-resource-definition.ts';
import type { ResourceKind } from '../../../crd/resource-kind.ts';
import { VPC_ENI_KIND } from '../../../crd/vpc-eni.ts';
import { VPC_IP_KIND } from '../../../crd/vpc-ip.ts';
import { VPC_IP_CLAIM_KIND } from '../../../crd/vpc-ip-claim.ts';
import type { KubeClient, ResourceType } from '../../../kube/kube-client.ts';
import { isKubeError } from '../../../kube/kube-error.ts';
import { VPC_ENIS, VPC_IP_CLAIMS, VPC_IPS } from '../../../kube/resource-types.ts';
import { DirectCluster } from '../exclusive/exclusive-cluster.ts';
import { StaticCluster } from './static-cluster.ts';

/** The fields of a kind's status, as its definition has them. */
function fieldsOf(kind: ResourceKind): readonly string[] {
  const { openAPIV3Schema: schema } = customResourceDefinition(kind).spec.versions[0].schema;
  const { properties } = schema as { properties: { status: { properties: object } } };
  return Object.keys(properties.status.properties);
}

/** A value of each field that the schema takes and nobody wrote. */
const OTHER: Readonly<Record<string, unknown>> = {
  phase: 'Failed',
  vpcIPs: [],
  ips: ['10.1.9.9'],
  eniID: 'eni-invented',
  nodeName: 'nowhere',
  lastPod: { name: 'nobody', uid: 'none' },
  retainedSince: '2020-01-01T00:00:00Z',
  reservation: {
    ...{ state: 'Reserved', clientToken: 'invented', vpcID: 'vpc-invented', subnetID: 'subnet-invented' },
    ...{ ip: '10.1.9.9', id: 'rsvip-invented' },
  },
  message: 'nonsense',
  conditions: [],
  assignmentID: 'same',
  intent: null,
  mac: '20:90:6f:ff:ff:fe',
  primaryIP: '10.1.9.9',
  primaryIPv6: 'fd00::9',
  gateway: '10.1.0.77',
  subnetCIDR: '10.1.0.0/16',
  instanceID: 'ins-nonsense',
  podNamespace: 'other',
  podName: 'nobody',
  intents: [],
};

/** Each field once left out, which a merge patch does by null, and once with another value. */
function editsOf(kind: ResourceKind): readonly { readonly what: string; readonly status: object }[] {
  return fieldsOf(kind).flatMap((field) => [
    { what: `${kind.kind} ${field} left out`, status: { [field]: null } },
    { what: `${kind.kind} ${field} changed`, status: { [field]: OTHER[field] } },
  ]);
}

async function write(kube: KubeClient, type: ResourceType, ref: { name: string; namespace?: string }, status: object) {
  try {
    await kube.patch(type, ref, { kind: 'merge', body: { status } });
  } catch (error) {
    if (!isKubeError(error, 'INVALID')) throw error;
  }
}

test('status of kept records: each field of each kind has an edit here', (t) => {
  for (const kind of [VPC_IP_CLAIM_KIND, VPC_IP_KIND, VPC_ENI_KIND])
    t.deepEqual(
      fieldsOf(kind).filter((field) => !Object.hasOwn(OTHER, field)),
      [],
      kind.kind,
    );
});

test('status of a VpcIPClaim and of its VpcIP: whatever field is edited, the Pod has its address and it is kept for the name', async (t) => {
  const cluster = await StaticCluster.make({ a: 3, b: 3 });
  await cluster.startIpamd();
  let uid = await cluster.createPod('web-0', 'a');
  await cluster.until(() => cluster.phase('web-0') === 'Bound', 'no address');
  const ip = cluster.ipOf(uid) ?? 'none';
  const edits = [
    ...editsOf(VPC_IP_CLAIM_KIND).map((edit) => ({
      ...edit,
      type: VPC_IP_CLAIMS,
      ref: { name: 'web-0', namespace: 'default' },
    })),
    ...editsOf(VPC_IP_KIND).map((edit) => ({ ...edit, type: VPC_IPS, ref: { name: ip } })),
  ];
  for (const [index, { what, status, type, ref }] of edits.entries()) {
    await cluster.run(write(cluster.scene.kube, type, ref, status));
    await cluster.pass(5_000);
    t.is(cluster.ipOf(uid), ip, what);
    await cluster.until(() => cluster.phase('web-0') === 'Bound', `${what}: not bound`);
    t.deepEqual(cluster.broken(), [], what);
    if (index % 4 > 0) continue;
    await cluster.deletePod('web-0');
    uid = await cluster.createPod('web-0', index % 8 > 0 ? 'a' : 'b');
    await cluster.until(() => cluster.ipOf(uid) !== undefined, `${what}: no address for the next Pod`);
    t.is(cluster.ipOf(uid), ip, `${what}: the next Pod`);
    await cluster.until(() => cluster.phase('web-0') === 'Bound', `${what}: not bound`);
  }
  await cluster.stopIpamd();
});

test('retainedSince of a VpcIPClaim: an earlier one ends nothing early, and is as before within seconds', async (t) => {
  const cluster = await StaticCluster.make({ a: 3 });
  await cluster.startIpamd('--claim-expired-duration=1h');
  const uid = await cluster.createPod('web-0', 'a');
  await cluster.until(() => cluster.phase('web-0') === 'Bound', 'no address');
  const ip = cluster.ipOf(uid) ?? 'none';
  await cluster.deletePod('web-0');
  await cluster.until(() => cluster.phase('web-0') === 'Retained', 'not kept');
  await cluster.pass(60_000);
  const before = cluster.claim('web-0')?.['status'];
  const ref = { namespace: 'default', name: 'web-0' };
  await cluster.run(write(cluster.scene.kube, VPC_IP_CLAIMS, ref, { retainedSince: '2020-01-01T00:00:00Z' }));
  await cluster.pass(5_000);
  t.deepEqual(cluster.claim('web-0')?.['status'], before);
  t.not(cluster.vip(ip), undefined);
  await cluster.pass(3_500_000);
  t.is(cluster.phase('web-0'), 'Retained');
  await cluster.pass(200_000);
  t.is(cluster.claim('web-0'), undefined);
  t.is(cluster.vip(ip), undefined);
  await cluster.stopIpamd();
});

test('claimRef of a VpcIP: left out or changed, under a leader or without one, the address stays with its claim', async (t) => {
  for (const claimRef of [null, { namespace: 'default', name: 'other', uid: 'none' }])
    for (const isLed of [true, false])
      for (const phase of ['Bound', 'Retained']) {
        const what = `${phase}, ${claimRef === null ? 'left out' : 'changed'}, ${isLed ? 'led' : 'not led'}`;
        const cluster = await StaticCluster.make({ a: 3, b: 3 });
        await cluster.startIpamd();
        let uid = await cluster.createPod('web-0', 'a');
        await cluster.until(() => cluster.phase('web-0') === 'Bound', 'no address');
        const ip = cluster.ipOf(uid) ?? 'none';
        if (phase === 'Retained') await cluster.deletePod('web-0');
        await cluster.until(() => cluster.phase('web-0') === phase, phase);
        if (!isLed) await cluster.stopIpamd();
        await cluster.run(
          cluster.scene.kube.patch(VPC_IPS, { name: ip }, { kind: 'merge', body: { spec: { claimRef } } }),
        );
        if (!isLed) await cluster.startIpamd();
        await cluster.pass(10_000);
        t.like(cluster.vip(ip)?.['spec'], { claimRef: { namespace: 'default', name: 'web-0' } }, what);
        if (phase === 'Bound') await cluster.deletePod('web-0');
        uid = await cluster.createPod('web-0', 'b');
        await cluster.until(() => cluster.ipOf(uid) !== undefined, `${what}: no address for the next Pod`);
        t.is(cluster.ipOf(uid), ip, what);
        t.deepEqual(cluster.broken(), [], what);
        await cluster.stopIpamd();
      }
});

test('status of a VpcENI: whatever field is edited, the Pod has its ENI and the next of its name gets it', async (t) => {
  const cluster = await DirectCluster.make({ a: 3 });
  await cluster.startIpamd();
  let uid = await cluster.createKept('web-0', 'a');
  await cluster.until(() => cluster.sandboxes.has(uid), 'an ENI');
  const { eniId = '' } = cluster.sandboxes.get(uid) ?? {};
  const nameOf = () => {
    const found = cluster.objects('vpcenis').find((object) => {
      const { claimRef } = (object['spec'] ?? {}) as { claimRef?: unknown };
      return claimRef !== undefined;
    });
    return found?.metadata.name;
  };
  await cluster.until(() => nameOf() !== undefined, 'its VpcENI');
  for (const [index, { what, status }] of editsOf(VPC_ENI_KIND).entries()) {
    const name = nameOf();
    if (name === undefined) return t.fail(`${what}: no VpcENI`);
    await cluster.run(write(cluster.scene.kube, VPC_ENIS, { name }, status));
    await cluster.pass(5_000);
    t.is(cluster.sandboxes.get(uid)?.eniId, eniId, what);
    t.true(cluster.cloudEnis().includes(eniId), what);
    if (index % 4 > 0) continue;
    await cluster.deletePod('web-0');
    uid = await cluster.createKept('web-0', 'a');
    await cluster.until(() => cluster.sandboxes.has(uid), `${what}: no ENI for the next Pod`);
    t.is(cluster.sandboxes.get(uid)?.eniId, eniId, `${what}: the next Pod`);
  }
  await cluster.stopIpamd();
});
