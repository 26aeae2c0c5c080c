import test from 'ava';
import { FOREIGN_SUBNET, GOOD, inScene, PODS_SUBNET, ZONE4_SUBNET } from './wrong-scene.ts';

const PREFIX = 'tke.cloud.tencent.com/';
const LABEL = `${PREFIX}route-eni-subnet-ids`;

/** What the message says, as none of them can be used. */
const NOTHING = 'no subnet is left: name subnets of zone ap-guangzhou-3, or none';

/** Subnets named for one node. */
const SUBNETS: readonly (readonly [string, readonly string[], string, RegExp])[] = [
  [
    'that is not',
    ['subnet-nowhere1'],
    'SubnetUnknown',
    new RegExp(`not known to the cloud: subnet-nowhere1; ${NOTHING}`),
  ],
  ['of another VPC', [FOREIGN_SUBNET], 'SubnetUnknown', new RegExp(`${FOREIGN_SUBNET}.*; ${NOTHING}`)],
  [
    'of another zone',
    [ZONE4_SUBNET],
    'SubnetUnknown',
    new RegExp(`${ZONE4_SUBNET} is in zone ap-guangzhou-4.*; ${NOTHING}`),
  ],
];

for (const [what, ids, reason, says] of SUBNETS) {
  test(`spec.subnetIDs with a subnet ${what}: condition, event and metric name it`, async (t) => {
    await inScene(GOOD, async (scene) => {
      await scene.join('n1');
      await scene.until('it is there', () => scene.nec('n1') !== undefined);
      await scene.patch('nec', 'n1', { spec: { subnetIDs: ids, desiredRouteENIIP: 40 } });
      await scene.assertNamed(t, { reason, says, name: 'n1', on: 'n1' });
      await scene.assertOthersGoOn(t);
      await scene.patch('nec', 'n1', { spec: { subnetIDs: null } });
      await scene.until('it gets what it wants', () => scene.assigned('n1').length >= 40);
      await scene.assertOver(t, 'n1');
    });
  });

  test(`label with a subnet ${what}: condition, event and metric name it`, async (t) => {
    await inScene(GOOD, async (scene) => {
      await scene.join('n1', { labels: { [LABEL]: ids.join('_') } });
      await scene.assertNamed(t, { reason, says, name: 'n1', on: 'n1' });
      await scene.assertNamed(t, { reason: 'NoSubnetInZone', says: /ap-guangzhou-3/, name: 'n1', on: 'n1' });
      await scene.assertOthersGoOn(t);
      await scene.patch('node', 'n1', { metadata: { labels: { [LABEL]: PODS_SUBNET } } });
      await scene.awaitWarm('n1');
      await scene.assertOver(t, 'n1');
    });
  });
}

test('label that names no subnets at all: condition, event and metric name it, and the cluster’s are used', async (t) => {
  await inScene(GOOD, async (scene) => {
    await scene.join('n1', { labels: { [LABEL]: 'what-is-this' } });
    await scene.assertNamed(t, { reason: 'SubnetUnknown', says: /what-is-this/, name: 'n1', on: 'n1' });
    await scene.awaitWarm('n1');
  });
});

test('subnets of several zones named for nodes: those of other zones are no fault while one is left', async (t) => {
  await inScene(GOOD, async (scene) => {
    await scene.join('n1', { labels: { [LABEL]: `${ZONE4_SUBNET}_${PODS_SUBNET}` } });
    await scene.awaitWarm('n1');
    await scene.assertOver(t, 'n1');
  });
});

/** Annotations of a NodeENIConfig, and the one that has to be named. */
const NEC_ANNOTATIONS: readonly (readonly [Readonly<Record<string, string>>, RegExp])[] = [
  [{ 'route-eni-ip-min-warm-target': '5' }, /route-eni-ip-max-warm-target: expected a value/],
  [{ 'route-eni-ip-max-warm-target': '5' }, /route-eni-ip-min-warm-target: expected a value/],
  [
    { 'route-eni-ip-min-warm-target': '9', 'route-eni-ip-max-warm-target': '3' },
    /max-warm-target: expected a number not below/,
  ],
  [{ 'route-eni-ip-min-warm-target': 'many', 'route-eni-ip-max-warm-target': '3' }, /min-warm-target: .*"many"/],
  [{ 'route-eni-ip-min-warm-target': '-1', 'route-eni-ip-max-warm-target': '3' }, /min-warm-target: .*"-1"/],
  [{ 'route-eni-ip-min-warm-target': '1', 'route-eni-ip-max-warm-target': '99999999' }, /max-warm-target: .*99999999/],
  [{ 'direct-eni-min-warm-target': '1' }, /direct-eni-max-warm-target: expected a value/],
  [{ 'direct-eni-min-warm-target': '2', 'direct-eni-max-warm-target': '1.5' }, /direct-eni-max-warm-target: .*1\.5/],
  [{ 'route-eni-max-attach': '0' }, /route-eni-max-attach: expected a number not below what is in use, 1/],
  [{ 'route-eni-max-attach': '65' }, /route-eni-max-attach: .*"65"/],
  [{ 'route-eni-max-attach': '' }, /route-eni-max-attach: .*""/],
  [{ 'max-ip-per-route-eni': '1' }, /max-ip-per-route-eni: expected a number not below what is in use, 2/],
  [{ 'max-ip-per-route-eni': '5000' }, /max-ip-per-route-eni: .*"5000"/],
  [{ 'direct-eni-max-attach': 'none' }, /direct-eni-max-attach: .*"none"/],
];

test('annotations of a NodeENIConfig that are not good: each is named, none has an effect', async (t) => {
  await inScene(GOOD, async (scene) => {
    for (const [index, [wrong, says]] of NEC_ANNOTATIONS.entries()) {
      const node = `n${index}`;
      await scene.join(node);
      await scene.awaitWarm(node);
      for (const { ip } of scene.assigned(node).slice(0, 2)) await scene.runPod(`p-${ip}`, node, ip);
      const named = (value: (text: string) => string | null) =>
        Object.fromEntries(Object.entries(wrong).map(([key, text]) => [`${PREFIX}${key}`, value(text)]));
      await scene.patch('nec', node, { metadata: { annotations: named((text) => text) } });
      await scene.assertNamed(t, { reason: 'AnnotationInvalid', says, name: node, on: node });
      t.true(scene.assigned(node).length >= 5, JSON.stringify(wrong));
      await scene.patch('nec', node, { metadata: { annotations: named(() => null) } });
      await scene.assertOver(t, node);
    }
    await scene.assertOthersGoOn(t);
  });
});

const NODE_ANNOTATIONS: readonly (readonly [string, string])[] = [
  ['desired-route-eni-pod-num', 'ten'],
  ['desired-route-eni-pod-num', '-1'],
  ['desired-route-eni-pod-num', '999999999'],
  ['disable-node-eni', 'yes'],
  ['disable-node-eni-security-groups', 'true'],
  ['need-sync-security-groups', '1'],
];

test('annotations of a Node that are not good: each is named, none has an effect', async (t) => {
  await inScene(GOOD, async (scene) => {
    await scene.join('n1');
    await scene.awaitWarm('n1');
    for (const [name, text] of NODE_ANNOTATIONS) {
      await scene.patch('node', 'n1', { metadata: { annotations: { [`${PREFIX}${name}`]: text } } });
      const says = new RegExp(`${name} of the Node: .*"${text}"`);
      await scene.assertNamed(t, { reason: 'AnnotationInvalid', says, name: 'n1', on: 'n1' });
      t.true(scene.assigned('n1').length >= 5, name);
      await scene.patch('node', 'n1', { metadata: { annotations: { [`${PREFIX}${name}`]: null } } });
    }
    await scene.assertOthersGoOn(t);
    await scene.assertOver(t, 'n1');
  });
});

test('instance type that nobody knows: limits are taken by its cores, and that is said', async (t) => {
  await inScene(GOOD, async (scene) => {
    await scene.join('n1', { instanceType: 'Q9.NOBODY' });
    await scene.awaitWarm('n1');
    await scene.assertOthersGoOn(t);
  });
});

test('instance type that nobody knows, and a cloud that does not tell its limits: condition, event and metric name it', async (t) => {
  await inScene(GOOD, async (scene) => {
    const fault = { kind: 'error', code: 'InvalidParameterValue' } as const;
    const end = scene.host.faults.add({ fault, actions: ['DescribeNetworkInterfaceLimit'] });
    await scene.join('n1', { instanceType: 'Q9.NOBODY' });
    await scene.awaitWarm('n1');
    await scene.assertNamed(t, { reason: 'InstanceTypeUnknown', says: /Q9\.NOBODY/, name: 'n1', on: 'n1' });
    end();
    await scene.assertOthersGoOn(t);
  });
});

const NO_INSTANCE: readonly (readonly [
  string,
  { readonly instanceId?: string; readonly providerId?: string },
  RegExp,
])[] = [
  [
    'instance that the cloud does not have, or that is another account’s',
    { instanceId: 'ins-nobody01' },
    /no instance ins-nobody01/,
  ],
  [
    'malformed providerID',
    { instanceId: '', providerId: 'aws:///eu-west-1/i-0123' },
    /providerID .*aws:\/\/\/eu-west-1\/i-0123/,
  ],
  ['providerID of nothing', { instanceId: '', providerId: '' }, /neither spec\.providerID/],
];

for (const [what, options, says] of NO_INSTANCE) {
  test(`${what}: event and metric name it; there is no NodeENIConfig to say so`, async (t) => {
    await inScene(GOOD, async (scene) => {
      await scene.join('n1', options);
      await scene.assertNamed(t, { reason: 'InstanceUnknown', says, name: 'n1' });
      t.is(scene.nec('n1'), undefined);
      await scene.assertOthersGoOn(t);
    });
  });
}

test('two Nodes with one instance that come at once: exactly one is served', async (t) => {
  await inScene(GOOD, async (scene) => {
    scene.host.model.state.addInstance({ instanceId: 'ins-both0001', cores: 8, subnetId: 'subnet-node0001' });
    await Promise.all(['b2', 'b1'].map((name) => scene.join(name, { instanceId: 'ins-both0001' })));
    await scene.awaitWarm('b1');
    await scene.assertNamed(t, { reason: 'InstanceTaken', says: /ins-both0001 is Node b1/, name: 'b2' });
    t.is(scene.nec('b2'), undefined);
  });
});

for (const [what, groups] of [
  ['of nobody', ['sg-nobody01']],
  ['that are no ids', ['not a group', '']],
] as const) {
  test(`security groups ${what} in a NodeENIConfig: condition, event and metric carry the cloud’s words`, async (t) => {
    await inScene(GOOD, async (scene) => {
      await scene.join('n1');
      await scene.awaitWarm('n1');
      const before = scene.assigned('n1');
      const write = scene.patch('nec', 'n1', { spec: { securityGroups: groups } });
      if (groups.some((group) => group === '')) {
        await t.throwsAsync(write, { code: 'INVALID' });
        return;
      }
      await write;
      await scene.assertNamed(t, {
        reason: 'CloudRefused',
        says: /security groups|SecurityGroup|sg-nobody01/,
        name: 'n1',
        on: 'n1',
      });
      t.deepEqual(scene.assigned('n1'), before);
      await scene.assertOthersGoOn(t);
      await scene.patch('nec', 'n1', { spec: { securityGroups: null } });
      await scene.assertOver(t, 'n1');
    });
  });
}
