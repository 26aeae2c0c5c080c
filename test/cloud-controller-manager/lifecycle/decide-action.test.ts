import test from 'ava';
import type { Instance } from '../../../cloud/cloud.ts';
import { readProviderId } from '../../../cloud/provider-id.ts';
import {
  decideAction,
  type NodeAction,
  SHUTDOWN_TAINT,
} from '../../../cloud-controller-manager/lifecycle/decide-action.ts';

type Facts = Parameters<typeof decideAction>[0];

const ID = 'ins-a1b2c3d4';
const VPC = 'vpc-00000001';
const SEEN = 'tke.cloud.tencent.com/seen-instance';
const OLD = { 'vpc-00000001': { [SEEN]: `${VPC}/${ID}` }, 'vpc-00000002': { [SEEN]: `vpc-00000002/${ID}` } };
const INSTANCE: Instance = {
  ...{ instanceId: ID, instanceType: '', cores: 4, zone: '', vpcId: VPC, subnetId: '', state: 'RUNNING' },
  ...{ privateIps: [], securityGroupIds: [] },
};
const NODE = { isReady: false, isOurs: true, isLeaving: false, taints: [], annotations: {} };
const UNDESCRIBED = { misses: 2, unproven: 0, missedAtMs: 0, askedAtMs: 0 };
const GONE = { ...UNDESCRIBED, instance: INSTANCE };
const THERE = { ...GONE, misses: 0 };
const TAINTS = [{ ...SHUTDOWN_TAINT }];

/** What differs from a Node that is not ready, and old, and whose instance two answers lack. */
type Change = Partial<Omit<Facts, 'node'>> & { readonly node?: Partial<Facts['node']> };

const CASES: readonly (readonly [title: string, change: Change, kind: NodeAction['kind'], why?: RegExp])[] = [
  ['its instance is gone', {}, 'delete'],
  ['one answer lacks its instance', { observation: { ...GONE, misses: 1 } }, 'none'],
  ['it is young', { ageMs: 119_999 }, 'none'],
  ['it is ready', { node: { isReady: true } }, 'none'],
  ['it is of others', { node: { isOurs: false } }, 'none'],
  ['it is being deleted', { node: { isLeaving: true } }, 'none'],
  ['it names no instance', { node: { providerId: readProviderId('qcloud:///100003/ins-') } }, 'none'],
  [
    'no answer has any instance',
    { observation: { ...GONE, misses: 0, unproven: 2 } },
    'kept',
    /no answer of the cloud/,
  ],
  ['the VPC is not known', { vpcId: undefined }, 'kept', /VPC of the cluster is not known/],
  ['another Node names its instance', { rival: 'n2' }, 'kept', /^Node n2 names the same instance$/],
  ['its instance was never described', { observation: UNDESCRIBED }, 'kept', /never described in this VPC/],
  ['a former process described it', { observation: UNDESCRIBED, node: { annotations: OLD[VPC] } }, 'delete'],
  [
    'it was in another VPC',
    { observation: UNDESCRIBED, node: { annotations: OLD['vpc-00000002'] } },
    'kept',
    /^its instance was in vpc-00000002, the cluster is in vpc-00000001$/,
  ],
  [
    'it was described without its VPC, which the annotation has',
    { observation: { ...GONE, instance: { ...INSTANCE, vpcId: '' } }, node: { annotations: OLD[VPC] } },
    'delete',
  ],
  ['its instance runs', { observation: THERE }, 'none'],
  ...(
    [
      { state: 'STOPPED' },
      { state: 'SHUTDOWN' },
      { restrictState: 'EXPIRED' },
      { restrictState: 'PROTECTIVELY_ISOLATED' },
    ] as const
  ).map((state) => {
    const observation = { ...THERE, instance: { ...INSTANCE, ...state } };
    return [`its instance is ${Object.values(state).join()}`, { observation }, 'taint'] as const;
  }),
  [
    'its instance is stopped, and it is tainted',
    { observation: { ...THERE, instance: { ...INSTANCE, state: 'STOPPED' } }, node: { taints: TAINTS } },
    'none',
  ],
  ['it is ready again', { node: { isReady: true, taints: TAINTS } }, 'untaint'],
];

for (const [title, { node = {}, ...change }, kind, why] of CASES)
  test(`decideAction: ${kind}, when ${title}`, (t) => {
    const providerId = readProviderId(`qcloud:///100003/${ID}`);
    const facts = { observation: GONE, vpcId: VPC, ageMs: 120_000, rival: undefined, ...change };
    const action = decideAction({ ...facts, node: { ...NODE, providerId, ...node } });
    t.is(action.kind, kind);
    if (why !== undefined) t.regex(action.kind === 'kept' ? action.why : '', why);
  });
