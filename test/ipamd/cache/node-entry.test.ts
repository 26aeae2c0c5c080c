import test from 'ava';
import { decodeMachine, findInstanceId, type MachineEntry } from '../../../ipamd/cache/machine-entry.ts';
import { decodeNode, isSameNode } from '../../../ipamd/cache/node-entry.ts';
import type { KubeObject } from '../../../kube/kube-client.ts';

const NODE: KubeObject = {
  apiVersion: 'v1',
  kind: 'Node',
  metadata: {
    name: '10.0.0.1',
    uid: 'u1',
    resourceVersion: '7',
    labels: {
      'cloud.tencent.com/node-instance-id': 'ins-label001',
      'tke.cloud.tencent.com/route-eni-subnet-ids': 'subnet-aaaa',
    },
    annotations: { 'tke.cloud.tencent.com/disable-node-eni': 'true', 'volumes.kubernetes.io/controller': 'true' },
  },
  spec: {
    providerID: 'qcloud:///100003/ins-provider',
    taints: [{ key: 'a', effect: 'NoSchedule', timeAdded: 'then' }],
  },
  status: {
    addresses: [{ type: 'InternalIP', address: '10.0.0.1' }],
    conditions: [
      { type: 'Ready', status: 'True', lastHeartbeatTime: '1' },
      { type: 'ENIIPUnavailable', status: 'False', reason: 'Serving', lastTransitionTime: 'then' },
    ],
    images: [{ names: ['x'] }],
  },
};

test('decodeNode: knows the node of a hybrid cluster by its network for Pods', (t) => {
  const read = (spec: Readonly<Record<string, unknown>>) => decodeNode({ ...NODE, spec }).podCidrs;
  t.deepEqual(
    [{ podCIDR: '172.16.0.0/24' }, { podCIDRs: ['172.16.0.0/24'] }, { podCIDR: '' }, { podCIDRs: [] }, {}].map(read),
    [['172.16.0.0/24'], ['172.16.0.0/24'], [], [], []],
  );
});

test('decodeNode: keeps what decisions need, whole taints among it', (t) => {
  t.deepEqual(decodeNode(NODE), {
    name: '10.0.0.1',
    uid: 'u1',
    createdAt: '',
    resourceVersion: '7',
    instanceId: 'ins-provider',
    isInstance: true,
    isReady: true,
    isLeaving: false,
    addresses: ['10.0.0.1'],
    taints: [{ key: 'a', effect: 'NoSchedule', timeAdded: 'then' }],
    eniIpCondition: { status: 'False', reason: 'Serving', lastTransitionTime: 'then' },
    annotations: { 'tke.cloud.tencent.com/disable-node-eni': 'true' },
    internalIp: '10.0.0.1',
    offeredResources: [],
    podCidrs: [],
    subnetsLabel: 'subnet-aaaa',
  });
});
test('decodeNode: takes the label where there is no providerID', (t) => {
  t.is(decodeNode({ ...NODE, spec: {} }).instanceId, 'ins-label001');
});
test('decodeNode: reads any shape', (t) => {
  const odd = { ...NODE, metadata: { name: 'n' }, spec: 7, status: { conditions: 'x', addresses: [7] } };
  t.like(decodeNode(odd), { name: 'n', isReady: false, addresses: [], taints: [] });
});
test('isSameNode: does not see heartbeats, and sees annotations', (t) => {
  const heartbeat = { ...NODE, metadata: { ...NODE.metadata, resourceVersion: '8' } };
  t.true(isSameNode(decodeNode(NODE), decodeNode(heartbeat)));
  const enabled = { ...NODE, metadata: { ...NODE.metadata, annotations: {} } };
  t.false(isSameNode(decodeNode(NODE), decodeNode(enabled)));
});

function machine(parts: object, metadata: object = {}): KubeObject {
  return { apiVersion: 'x/v1', kind: 'Machine', metadata: { name: 'np-1-abc', ...metadata }, ...parts };
}
const machines = test.macro((t, object: KubeObject, want: MachineEntry | undefined) =>
  t.deepEqual(decodeMachine(object), want),
);
test(
  'decodeMachine: reads the providerID',
  machines,
  machine({ spec: { providerID: 'qcloud:///100003/ins-aaaa0001' } }),
  {
    instanceId: 'ins-aaaa0001',
    nodeNames: ['np-1-abc'],
  },
);
test(
  'decodeMachine: reads what its status says of instance and node',
  machines,
  machine({
    status: { instanceId: 'ins-aaaa0002', nodeRef: { name: 'n2' }, addresses: [{ address: '10.0.0.2' }, '10.0.0.3'] },
  }),
  { instanceId: 'ins-aaaa0002', nodeNames: ['n2', 'np-1-abc', '10.0.0.2', '10.0.0.3'] },
);
test('decodeMachine: keeps none that has no instance yet', machines, machine({ spec: null, status: 'x' }), undefined);

test('findInstanceId: asks Machines for a Node that does not tell, and believes no two', (t) => {
  const node = { ...decodeNode({ ...NODE, spec: {}, metadata: { name: 'n2' } }), addresses: ['10.0.0.2'] };
  const view = (...known: readonly MachineEntry[]) => ({
    byIndex: (_: string, value: string) => known.filter(({ nodeNames }) => nodeNames.includes(value)),
  });
  const first = { instanceId: 'ins-aaaa0001', nodeNames: ['10.0.0.2', 'n2'] };
  t.is(findInstanceId(node, view(first)), 'ins-aaaa0001');
  t.is(findInstanceId(node, view(first, { instanceId: 'ins-aaaa0002', nodeNames: ['n2'] })), undefined);
  t.is(findInstanceId(node, view()), undefined);
  t.is(findInstanceId(decodeNode(NODE), view(first)), 'ins-provider');
});
