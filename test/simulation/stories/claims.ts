import { customResourceDefinition } from '../../../crd/custom-resource-definition.ts';
import { RESOURCE_KINDS } from '../../../crd/kinds.ts';
import { API_GROUP, API_VERSION, POD_ANNOTATION } from '../../../crd/names.ts';
import type { ResourceKind } from '../../../crd/resource-kind.ts';
import { VPC_IP_KIND } from '../../../crd/vpc-ip.ts';
import { VPC_IP_CLAIM_KIND } from '../../../crd/vpc-ip-claim.ts';
import type { KubeObject } from '../../../kube/kube-client.ts';
import {
  CUSTOM_RESOURCE_DEFINITIONS,
  STATIC_IP_CONFIGS,
  VPC_IP_CLAIMS,
  VPC_IPS,
} from '../../../kube/resource-types.ts';
import { recordOf } from '../../../runtime/json.ts';
import {
  claimOf,
  deleteClaim,
  ipOfClaim,
  KEPT,
  keep,
  move,
  objectOf,
  phaseOf,
  REF,
  start,
  takeIp,
  untilPhase,
  untilWhy,
  worldOf,
} from '../kept-stage.ts';
import type { Story } from '../story.ts';

/** The first Pod of a node asks for the address that the cloud gives first: to the ENI that is made for it. */
export const nominatedFirst: Story = {
  title: 'a Pod gets the address that it asks for, though the ENI that is made for it has it first',
  world: worldOf(),
  tell: async (stage) => {
    const node = await stage.node();
    stage.begin();
    const asking = { [POD_ANNOTATION.nominatedVpcIp]: '10.1.0.2' };
    stage.expect('it has it', (await start(stage, 'web-0', node, asking)) === '10.1.0.2');
    await stage.until('one ENI is left', () => stage.enis(node).length === 1);
  },
};

/** A Pod names a subnet that is in no list; then it is gone, and so is the leader. */
export const namedSubnet: Story = {
  title: 'an ENI that is made for a Pod that names its subnet serves no Pod that names none',
  world: worldOf(),
  tell: async (stage) => {
    const node = await stage.node();
    stage.begin();
    const named = { [POD_ANNOTATION.nominatedSubnets]: 'subnet-nodes000' };
    stage.expect('it has its address there', (await start(stage, 'web-0', node, named)).startsWith('10.0.0.'));
    const others = [...(await stage.pods(node, 2))];
    await stage.endPods('web-0');
    await untilPhase(stage, 'Retained');
    others.push(...(await stage.pods(node, 9)));
    stage.killLeader();
    await start(stage, 'web-1', node);
    others.push('web-1', ...(await stage.pods(node, 2)));
    stage.expect(
      'no other has one there',
      others.every((name) => /^10\.[12]\./.test(stage.ipOf(name) ?? '')),
    );
    await deleteClaim(stage);
  },
};

/** A node keeps no addresses until it is told to; then more Pods come than it has addresses. */
export const keepingNode: Story = {
  title: 'a node that keeps no addresses, or is full, says so on the Pod',
  world: worldOf('--enable-static-ip=false'),
  tell: async (stage) => {
    const node = await stage.node({ cores: 1 });
    stage.begin();
    await stage.create('web-0', node, keep());
    await untilWhy(stage, 'StaticIPDisabled');
    await stage.patchNode(node, { metadata: { labels: { 'tke.cloud.tencent.com/static-ip': 'true' } } });
    await stage.until('it has an address', () => stage.ipOf('web-0') !== undefined);
    for (const name of ['web-1', 'web-2', 'web-3', 'web-4']) await start(stage, name, node);
    stage.expect('nobody waits', stage.events('NodeFull').length === 0);
    await stage.create('late', node, keep());
    await untilWhy(stage, 'NodeFull', 'late');
    stage.expect(
      'it says what helps',
      stage.events('NodeFull').some((text) => text.includes('delete this Pod')),
    );
    await stage.endPods('late');
  },
};

/** People delete a claim and a VpcIP in use, take a finalizer off, and delete what nobody uses. */
export const deletedClaims: Story = {
  title: 'a claim in use ends when its Pod does, and one that is forced out comes back',
  world: worldOf(),
  tell: async (stage) => {
    const node = await stage.node();
    const ip = await start(stage, 'web-0', node);
    const uid = () => claimOf(stage)?.metadata.uid;
    stage.begin();
    const before = uid();
    await deleteClaim(stage);
    await stage.people(
      stage.world.admin.patch(VPC_IP_CLAIMS, REF, { kind: 'merge', body: { metadata: { finalizers: null } } }),
    );
    await stage.until('it is another', () => uid() !== undefined && uid() !== before);
    await untilPhase(stage, 'Bound');
    await deleteClaim(stage);
    await stage.people(stage.world.admin.delete(VPC_IPS, { name: ip }));
    await untilWhy(stage, 'ClaimInUse');
    await stage.minutes(1);
    stage.expect('the Pod has it', node.agent.addresses.includes(ip) && stage.events('ClaimInUse').length > 0);
    await stage.endPods('web-0');
    await stage.until('it ends', () => claimOf(stage) === undefined);
    const next = await start(stage, 'web-0', node);
    await stage.people(stage.world.admin.delete(VPC_IPS, { name: next }));
    await stage.minutes(1);
    stage.expect('the Pod has it', node.agent.addresses.includes(next));
    await stage.endPods('web-0');
    await stage.until('it ends with its VpcIP', () => claimOf(stage) === undefined);
  },
};

/** Pods ask for addresses: one that is free, one that another claim has, one that somebody else's ENI has. */
export const nominated: Story = {
  title: 'a Pod gets the address that it asks for, or is told who has it',
  world: worldOf(),
  tell: async (stage) => {
    const [first, second] = [await stage.node(), await stage.node()];
    const asking = (ip: string) => ({ [POD_ANNOTATION.nominatedVpcIp]: ip });
    stage.begin();
    stage.expect('it has it', (await start(stage, 'web-0', first, asking('10.1.0.77'))) === '10.1.0.77');
    await stage.create('web-1', second, keep(asking('10.1.0.77')));
    await untilWhy(stage, 'AddressTaken: 10.1.0.77, which the Pod asks for, is of VpcIPClaim default/web-0', 'web-1');
    await stage.endPods('web-0');
    await stage.seconds(30);
    await deleteClaim(stage);
    await stage.until('the other has it', () => stage.ipOf('web-1') === '10.1.0.77');
    await stage.endPods('web-1');
    await stage.pod('web-1', second, keep(asking('10.1.0.78')));
    stage.expect('what is kept comes first', stage.ipOf('web-1') === '10.1.0.77');
    stage.expect('and that is said', stage.events('NominationIgnored').length === 1);
    const free = takeIp(stage, '10.1.0.99');
    await stage.create('web-2', first, keep(asking('10.1.0.99')));
    await untilWhy(stage, 'AddressTaken: 10.1.0.99 is of ENI eni-', 'web-2');
    free();
    await stage.until('it is taken again', () => stage.ipOf('web-2') === '10.1.0.99', 1_200_000);
    takeIp(stage, '10.1.0.100');
    await stage.create('web-3', first, keep(asking('10.1.0.100')));
    await untilWhy(stage, 'AddressTaken', 'web-3');
    await stage.endPods('web-3');
    await deleteClaim(stage, 'web-3').catch(() => {});
    await stage.until('the claim ends', () => claimOf(stage, 'web-3') === undefined);
    await stage.create('web-3', first, keep());
    await stage.seconds(20);
    stage.expect('the refusal is no word about the next one', stage.ipOf('web-3') !== undefined);
  },
};

/** A StaticIPConfig with three addresses, one of which is of another zone; and annotations of all kinds. */
export const staticRules: Story = {
  title: 'rules say which address and for how long, and what is wrong is told once',
  world: worldOf('--claim-expired-duration=1h', '--only-nominated-eni-subnets=subnet-nodes000'),
  tell: async (stage) => {
    const node = await stage.node();
    const { admin } = stage.world;
    stage.begin();
    const spec = {
      podLabels: { app: 'web' },
      ips: ['10.2.0.9', '10.1.0.31', '10.1.0.32'],
      claimExpiredDuration: '10m',
    };
    const metadata = { name: 'web', namespace: 'default' };
    await stage.people(
      admin.create(STATIC_IP_CONFIGS, { apiVersion: API_VERSION, kind: 'StaticIPConfig', metadata, spec }),
    );
    await stage.seconds(5);
    const ips = [await start(stage, 'web-0', node), await start(stage, 'web-1', node)];
    stage.expect('they are of the list', ips.toSorted().join() === '10.1.0.31,10.1.0.32');
    await stage.create('web-2', node, keep());
    const text = 'none of the 3 addresses of its StaticIPConfig is free in zone ap-guangzhou-3';
    await untilWhy(stage, `AddressPoolExhausted: ${text}`, 'web-2');
    // The annotation of the VpcIP goes before all others.
    const annotate = async (value: string): Promise<void> => {
      const body = { metadata: { annotations: { [POD_ANNOTATION.claimExpiredDuration]: value } } };
      await stage.people(admin.patch(VPC_IPS, { name: ips[0] ?? '' }, { kind: 'merge', body }));
    };
    const told = () => stage.events('AnnotationInvalid').length;
    await annotate('soon');
    await stage.until('it is told', () => told() === 1);
    await annotate('5m');
    await stage.endPods('web-0');
    await stage.minutes(4);
    stage.expect('it is kept', phaseOf(stage) === 'Retained');
    await stage.until('the next has it', () => stage.ipOf('web-2') === ips[0], 120_000);
    const named = { [POD_ANNOTATION.nominatedSubnets]: 'subnet-nodes000' };
    await stage.pod('other', node, { annotations: { ...KEPT, ...named } });
    stage.expect('it is of the subnet that it names', stage.ipOf('other')?.startsWith('10.0.0.') === true);
    const wrong = { [POD_ANNOTATION.networks]: 'tke-route-enni', [POD_ANNOTATION.deletePolicy]: 'Immediate' };
    await stage.create('wrong', node, { annotations: wrong });
    await stage.minutes(1);
    stage.expect('it is told once', told() === 2);
    await stage.endPods('wrong');
  },
};

/** The definitions of claims are deleted; then all of them, and people bring claims back from a backup. */
export const lostClaims: Story = {
  title: 'kept addresses outlive the definitions of their claims, and come back with a backup',
  world: worldOf(),
  tell: async (stage) => {
    const [first, second] = [await stage.node(), await stage.node()];
    const ip = await start(stage, 'web-0', first);
    const other = await start(stage, 'web-1', first);
    await stage.endPods('web-1');
    await untilPhase(stage, 'Retained', 'web-1');
    const { admin } = stage.world;
    const saved = [objectOf(stage, 'vpcips', ip), claimOf(stage), claimOf(stage, 'web-1')].map(backupOf);
    const lose = async (plurals: readonly string[]): Promise<void> => {
      for (const plural of plurals)
        await stage.people(admin.delete(CUSTOM_RESOURCE_DEFINITIONS, { name: `${plural}.${API_GROUP}` }));
    };
    const restore = async (...objects: readonly KubeObject[]): Promise<void> => {
      for (const object of objects)
        await stage.people(admin.create(object.kind === 'VpcIP' ? VPC_IPS : VPC_IP_CLAIMS, object).catch(() => {}));
    };
    stage.begin();
    await lose(['vpcipclaims', 'vpcips']);
    await stage.minutes(20);
    await untilPhase(stage, 'Bound');
    stage.expect(
      'the cloud has the other',
      stage.enis(first).some(({ ips }) => ips.has(other)),
    );
    await restore(...saved.slice(2));
    await stage.minutes(60);
    stage.expect('the other has its own', (await start(stage, 'web-1', second)) === other);
    await stage.endPods('web-1');
    await lose(RESOURCE_KINDS.map(({ plural }) => plural));
    await stage.minutes(20);
    // First the VpcIP: a claim without one would get another address.
    await restore(...saved.slice(0, 2));
    await stage.minutes(1);
    await move(stage, 'web-0', second);
  },
};

/** All definitions are deleted, and nothing is brought back for longer than ipamd waits for that; then a VpcIP of another address. */
export const lostForGood: Story = {
  title: 'a Pod that runs keeps its address when its claim is lost for good',
  world: worldOf(),
  tell: async (stage) => {
    const [first, second] = [await stage.node(), await stage.node()];
    const ip = await start(stage, 'web-0', first);
    const { admin } = stage.world;
    const saved = backupOf(objectOf(stage, 'vpcips', ip));
    const other = '10.1.0.200';
    const wrong = {
      ...{ ...saved, metadata: { ...saved.metadata, name: other } },
      spec: { ...recordOf(saved['spec']), ip: other },
    };
    stage.begin();
    for (const isWrong of [false, true]) {
      for (const { plural } of RESOURCE_KINDS)
        await stage.people(admin.delete(CUSTOM_RESOURCE_DEFINITIONS, { name: `${plural}.${API_GROUP}` }));
      await stage.minutes(20);
      if (isWrong) {
        await stage.people(admin.create(VPC_IPS, wrong));
        await stage.minutes(60);
        await untilWhy(stage, `AddressElsewhere: the Pod runs with ${ip}, and its claim is of ${other}`);
        stage.expect('the Pod says so', stage.events('AddressElsewhere').length > 0);
        await deleteClaim(stage);
      } else await stage.minutes(60);
      await untilPhase(stage, 'Bound');
      stage.expect(`its claim is of ${ip}`, ipOfClaim(stage) === ip);
      await move(stage, 'web-0', isWrong ? first : second);
    }
  },
};

/** What `kubectl get -o yaml` saved and `kubectl create` makes again. */
function backupOf(object: KubeObject | undefined): KubeObject {
  if (object === undefined) throw new Error('there is nothing to save');
  const { name, namespace, labels = {}, annotations = {}, finalizers = [] } = object.metadata;
  const metadata = { name, ...(namespace === undefined ? {} : { namespace }), labels, annotations, finalizers };
  return { ...object, metadata };
}

/** A value of each field of a status that the schema takes and nobody wrote. */
const OTHER: Readonly<Record<string, unknown>> = {
  ...{
    phase: 'Failed',
    vpcIPs: [],
    ips: ['10.1.9.9'],
    eniID: 'eni-invented',
    nodeName: 'nowhere',
    message: 'nonsense',
  },
  ...{ lastPod: { name: 'nobody', uid: 'none' }, retainedSince: '2020-01-01T00:00:00Z', conditions: [] },
  ...{ assignmentID: 'same', intent: null, mac: '20:90:6f:ff:ff:fe', gateway: '10.1.0.77', subnetCIDR: '10.1.0.0/16' },
  reservation: {
    ...{ state: 'Reserved', clientToken: 'invented', vpcID: 'vpc-invented', subnetID: 'subnet-invented' },
    ...{ ip: '10.1.9.9', id: 'rsvip-invented' },
  },
};

/** Each field once left out, which a merge patch does by null, and once with another value. */
function editsOf(kind: ResourceKind): readonly object[] {
  const { openAPIV3Schema } = customResourceDefinition(kind).spec.versions[0].schema;
  const status = recordOf(recordOf(recordOf(openAPIV3Schema)['properties'])['status']);
  return Object.keys(recordOf(status['properties'])).flatMap((field) => {
    if (!Object.hasOwn(OTHER, field)) throw new Error(`${field} has no edit here`);
    return [{ [field]: null }, { [field]: OTHER[field] }];
  });
}

/** People edit each field of the status of a claim and of its VpcIP, and whose that is, with a leader and without one. */
export const editedClaims: Story = {
  title: 'whatever is edited in a claim or its VpcIP, the address stays with the Pod and its name',
  world: worldOf('--claim-expired-duration=1h'),
  tell: async (stage) => {
    const [first, second] = [await stage.node(), await stage.node()];
    const ip = await start(stage, 'web-0', first);
    const { admin } = stage.world;
    stage.begin();
    const edits = [
      ...editsOf(VPC_IP_CLAIM_KIND).map((status) => ({ body: { status }, type: VPC_IP_CLAIMS, ref: REF })),
      ...editsOf(VPC_IP_KIND).map((status) => ({ body: { status }, type: VPC_IPS, ref: { name: ip } })),
    ];
    for (const [at, { body, type, ref }] of edits.entries()) {
      await stage.people(admin.patch(type, ref, { kind: 'merge', body }).catch(() => {}));
      await stage.seconds(5);
      await untilPhase(stage, 'Bound');
      if (at % 4 === 0) await move(stage, 'web-0', at % 8 > 0 ? first : second);
    }
    for (const claimRef of [null, { namespace: 'default', name: 'other', uid: 'none' }])
      for (const isLed of [true, false]) {
        if (!isLed) stage.killAll();
        const patch = { kind: 'merge', body: { spec: { claimRef } } } as const;
        await stage.people(admin.patch(VPC_IPS, { name: ip }, patch).catch(() => {}));
        await stage.seconds(40);
        await move(stage, 'web-0', isLed ? first : second);
      }
    await stage.endPods('web-0');
    await untilPhase(stage, 'Retained');
    await stage.minutes(1);
    const body = { status: { retainedSince: '2020-01-01T00:00:00Z' } };
    await stage.people(admin.patch(VPC_IP_CLAIMS, REF, { kind: 'merge', body }));
    await stage.minutes(57);
    stage.expect('nothing ends early', phaseOf(stage) === 'Retained');
    await stage.until('it ends', () => claimOf(stage) === undefined, 300_000);
  },
};
