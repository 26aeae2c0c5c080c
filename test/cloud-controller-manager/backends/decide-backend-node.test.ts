import test from 'ava';
import { decideBackendNode } from '../../../cloud-controller-manager/backends/decide-backend-node.ts';
import { readCloudNode } from '../../../cloud-controller-manager/nodes/cloud-node.ts';

const ADDRESSES = [
  { type: 'Hostname', address: 'n1' },
  { type: 'InternalIP', address: 'fd00::1' },
  { type: 'InternalIP', address: '10.0.0.1' },
];

type Parts = {
  readonly metadata?: object;
  readonly spec?: object;
  readonly status?: object;
  readonly instance?: { readonly vpcId: string; readonly privateIps: readonly string[] };
};

function roleOf({ metadata = {}, spec = {}, status = {}, instance }: Parts): string {
  const node = readCloudNode({
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name: 'n1', ...metadata },
    spec: { providerID: 'qcloud:///100003/ins-a1b2c3d4', ...spec },
    status: { addresses: ADDRESSES, ...status },
  });
  const role = decideBackendNode(node, 'vpc-a', instance);
  if (role.kind === 'excluded') return role.why;
  const { ip, instanceId = 'by address', isLeaving } = role.backend;
  return `${ip} ${instanceId}${isLeaving ? ' leaves' : ''}`;
}

const EXCLUDE = 'node.kubernetes.io/exclude-from-external-load-balancers';
const OURS = 'tke.cloud.tencent.com/load-balancer-backend';
const SEEN = 'tke.cloud.tencent.com/seen-instance';
const BACKEND = '10.0.0.1 ins-a1b2c3d4';
const labelled = (value: string): Parts => ({ metadata: { labels: { [EXCLUDE]: value } } });
const annotated = (name: string, value: string): Parts => ({ metadata: { annotations: { [name]: value } } });

const ROWS: readonly (readonly [title: string, parts: Parts, role: string])[] = [
  ['a Node of an instance', {}, BACKEND],
  ['one that is not ready', { status: { conditions: [{ type: 'Ready', status: 'False' }] } }, BACKEND],
  ['one that is cordoned', { spec: { unschedulable: true } }, BACKEND],
  ['the label of exclusion', labelled(''), `label ${EXCLUDE}`],
  ['the label of exclusion, true', labelled('true'), `label ${EXCLUDE}`],
  ['the label of exclusion, unparsable', labelled('no'), `label ${EXCLUDE}`],
  ['the label of exclusion, false', labelled('false'), BACKEND],
  ['the label of exclusion, F', labelled('F'), BACKEND],
  ['our annotation, false', annotated(OURS, 'false'), `annotation ${OURS}`],
  ['our annotation, nonsense', annotated(OURS, 'never'), `annotation ${OURS}`],
  ['our annotation, true', annotated(OURS, 'true'), BACKEND],
  [
    'the taint of the autoscaler',
    { spec: { taints: [{ key: 'ToBeDeletedByClusterAutoscaler' }] } },
    `${BACKEND} leaves`,
  ],
  ['one that is being deleted', { metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } }, `${BACKEND} leaves`],
  ['a native node', { spec: { providerID: 'tencentcloud://kn-a1b2c3d4' } }, '10.0.0.1 by address'],
  ['a native node on CVM', { spec: { providerID: 'tencentcloud://ins-a1b2c3d4' } }, BACKEND],
  [
    'a super node',
    { metadata: { labels: { 'node.kubernetes.io/instance-type': 'eklet' } } },
    'a super node has no node ports',
  ],
  ['another provider', { spec: { providerID: 'kind://a/b' } }, 'its providerID names no instance of this cloud'],
  ['no providerID', { spec: { providerID: '' } }, 'its providerID names no instance of this cloud'],
  ['another VPC', { instance: { vpcId: 'vpc-b', privateIps: ['10.0.0.1'] } }, 'its instance is in vpc-b'],
  ['the same VPC', { instance: { vpcId: 'vpc-a', privateIps: ['10.0.0.1'] } }, BACKEND],
  ['another VPC by its own word', annotated(SEEN, 'vpc-b/ins-a1b2c3d4'), BACKEND],
  [
    'an address that its instance has not',
    { instance: { vpcId: 'vpc-a', privateIps: ['10.0.0.8', '10.0.0.9'] } },
    '10.0.0.8 ins-a1b2c3d4',
  ],
  [
    'the second address of its instance',
    { instance: { vpcId: 'vpc-a', privateIps: ['10.0.0.8', '10.0.0.1'] } },
    BACKEND,
  ],
  ['no IPv4 address', { status: { addresses: ADDRESSES.slice(0, 2) } }, 'it has no IPv4 InternalIP'],
];

for (const [title, parts, role] of ROWS) {
  test(`${title}: ${role}`, (t) => {
    t.is(roleOf(parts), role);
  });
}
