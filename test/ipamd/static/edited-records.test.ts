import test from 'ava';
import { customResourceDefinition } from '../../../crd/custom-resource-definition.ts';
import { EIP_CLAIM_KIND } from '../../../crd/eip-claim.ts';
import type { ResourceKind } from '../../../crd/resource-kind.ts';
import { VPC_ENI_KIND } from '../../../crd/vpc-eni.ts';
import { VPC_IP_KIND } from '../../../crd/vpc-ip.ts';
import { VPC_IP_CLAIM_KIND } from '../../../crd/vpc-ip-claim.ts';
import type { KubeClient, ResourceType } from '../../../kube/kube-client.ts';
import { isKubeError } from '../../../kube/kube-error.ts';
import { EIP_CLAIMS, VPC_ENIS, VPC_IP_CLAIMS, VPC_IPS } from '../../../kube/resource-types.ts';
import { partOf } from '../../support/suite-part.ts';
import { ATTRIBUTES, EipScene, POLICY } from '../eip/eip-scene.ts';
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
  eipID: 'eip-invented',
  publicIP: '1.2.3.4',
  privateIP: '10.1.9.9',
  allocations: 9,
  isOurs: false,
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
  for (const kind of [EIP_CLAIM_KIND, VPC_IP_CLAIM_KIND, VPC_IP_KIND, VPC_ENI_KIND])
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

const KEPT_EIP = { [ATTRIBUTES]: '', [POLICY]: 'Never' };
const EIP_REF = { namespace: 'default', name: 'web-0' };

/** A Pod with an EIP, or the EIP alone, kept for the next Pod of the name. */
async function openEip(phase: 'Bound' | 'Retained'): Promise<EipScene> {
  const scene = await EipScene.open();
  scene.lead();
  await scene.addPod('web-0', 'n1', scene.ip('n1', 0), KEPT_EIP);
  await scene.until(() => scene.isServed('web-0'));
  if (phase === 'Retained') await scene.deletePod('web-0');
  await scene.until(() => scene.claim('web-0')?.status?.phase === phase);
  await scene.until(() => false, 20_000);
  return scene;
}

/** The status without conditions, its fields in order. */
function eipStatusOf(scene: EipScene): readonly (readonly [string, unknown])[] {
  const fields = Object.entries(scene.claim('web-0')?.status ?? {}).filter(([name]) => name !== 'conditions');
  return fields.sort(([a], [b]) => (a < b ? -1 : 1));
}

for (const phase of ['Bound', 'Retained'] as const) {
  test(`status of an EIPClaim that is ${phase}: whatever field is edited is as before within seconds`, async (t) => {
    const scene = await openEip(phase);
    const before = eipStatusOf(scene);
    const [eip] = scene.madeFor('web-0');
    for (const { what, status } of editsOf(EIP_CLAIM_KIND)) {
      await scene.clock.run(write(scene.kube, EIP_CLAIMS, EIP_REF, status));
      await scene.until(() => false, 5_000);
      t.deepEqual(eipStatusOf(scene), before, what);
      t.deepEqual(scene.madeFor('web-0'), eip === undefined ? [] : [eip], what);
      t.is(scene.publicIpOf('web-0'), phase === 'Bound' ? eip?.publicIp : undefined, what);
    }
    t.true(
      scene.events.some((line) => /^ObjectMended: .*eipID/.test(line)),
      scene.events.join('\n'),
    );
    t.deepEqual(scene.violations, []);
  });

  test(`status of an EIPClaim that is ${phase} and was edited while nobody led: the EIP stays, and no other is made`, async (t) => {
    const edits = editsOf(EIP_CLAIM_KIND);
    for (const { what, status } of partOf(edits, (one) => edits.indexOf(one) % 3 === 0)) {
      const scene = await openEip(phase);
      const [eip] = scene.madeFor('web-0');
      scene.die();
      await scene.clock.run(write(scene.kube, EIP_CLAIMS, EIP_REF, status));
      scene.lead();
      await scene.until(() => false, 420_000);
      if (phase === 'Retained') await scene.addPod('web-0', 'n2', scene.ip('n2', 0), KEPT_EIP);
      t.true(await scene.until(() => scene.isServed('web-0')), what);
      t.is(scene.publicIpOf('web-0'), eip?.publicIp, what);
      t.deepEqual(
        scene.eips().map(({ eipId }) => eipId),
        [eip?.eipId],
        what,
      );
      await scene.deletePod('web-0');
      await scene.until(() => scene.claim('web-0')?.status?.phase === 'Retained');
      await scene.clock.run(scene.deleteClaim('web-0'));
      t.true(await scene.until(() => scene.claimObject('web-0') === undefined), what);
      t.deepEqual(scene.eips(), [], `${what}: released with the claim`);
      t.deepEqual(scene.violations, [], what);
    }
  });
}

test('spec.podUID of an EIPClaim: left out or changed, the Pod has its EIP on', async (t) => {
  for (const policy of ['Never', 'Immediate'])
    for (const podUID of [null, 'none']) {
      const scene = await EipScene.open();
      scene.lead();
      await scene.addPod('web-0', 'n1', scene.ip('n1', 0), { [ATTRIBUTES]: '', [POLICY]: policy });
      await scene.until(() => scene.isServed('web-0'));
      const [eip] = scene.madeFor('web-0');
      await scene.clock.run(scene.kube.patch(EIP_CLAIMS, EIP_REF, { kind: 'merge', body: { spec: { podUID } } }));
      await scene.until(() => false, 60_000);
      t.is(scene.claim('web-0')?.spec?.podUID, scene.pod('web-0')?.metadata.uid, policy);
      t.true(scene.isServed('web-0'), policy);
      t.deepEqual(scene.madeFor('web-0'), eip === undefined ? [] : [eip], policy);
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
