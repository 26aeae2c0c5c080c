import test from 'ava';
import { customResourceDefinition } from '../../../../crd/custom-resource-definition.ts';
import type { ResourceKind } from '../../../../crd/resource-kind.ts';
import { VPC_ENI_KIND } from '../../../../crd/vpc-eni.ts';
import type { KubeClient, ResourceType } from '../../../../kube/kube-client.ts';
import { isKubeError } from '../../../../kube/kube-error.ts';
import { VPC_ENIS } from '../../../../kube/resource-types.ts';
import { DirectCluster } from '../../exclusive/exclusive-cluster.ts';

/** The fields of a kind's status, as its definition has them. */
function fieldsOf(kind: ResourceKind): readonly string[] {
  const { openAPIV3Schema: schema } = customResourceDefinition(kind).spec.versions[0].schema;
  const { properties } = schema as { properties: { status: { properties: object } } };
  return Object.keys(properties.status.properties);
}

/** A value of each field that the schema takes and nobody wrote. */
const OTHER: Readonly<Record<string, unknown>> = {
  phase: 'Failed',
  eniID: 'eni-invented',
  nodeName: 'nowhere',
  lastPod: { name: 'nobody', uid: 'none' },
  retainedSince: '2020-01-01T00:00:00Z',
  message: 'nonsense',
  conditions: [],
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

test('status of a VpcENI: each field has an edit here', (t) => {
  const lacking = fieldsOf(VPC_ENI_KIND).filter((field) => !Object.hasOwn(OTHER, field));
  t.deepEqual(lacking, []);
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
