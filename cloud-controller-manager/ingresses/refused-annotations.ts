import type { RefusedRow } from '../services/annotation-row.ts';

/** An annotation of an Ingress that is not obeyed, and is reported. */
type RefusedIngressRow = Omit<RefusedRow, 'place'>;

const CLOUD = 'ingress.cloud.tencent.com';
const REMOVE = 'remove it';
const ONE_VPC = 'load balancer and backends are in the VPC of the cluster';

/** What TKE's controller of Ingresses obeys and this one does not. */
export const REFUSED_ANNOTATIONS: readonly RefusedIngressRow[] = [
  refused({
    name: `${CLOUD}/mix-target-prefer`,
    means: 'backends are Pods where they have addresses of the VPC, and else Nodes',
    form: '`"true"`',
    why: 'the backends of an Ingress are all Pods or all Nodes',
    instead: `set ${CLOUD}/direct-access`,
  }),
  refused({
    name: `${CLOUD}/enable-grace-deletion`,
    means: 'the deletion of a Pod waits for weight 0',
    form: '`"true"` or `"false"`',
    why: "it needs TKE's kubelet: no other one waits before it stops containers",
    instead: 'let containers serve on for some seconds by a preStop hook, and remove it',
  }),
  refused({
    name: `${CLOUD}/modification-protection`,
    means: 'the console does not let people change the load balancer',
    form: '`"true"`',
    why: 'the API of load balancers has no call for it',
    instead: 'switch it on in the console, and remove it here',
  }),
  refused({
    name: `${CLOUD}/cross-region-id`,
    means: 'the load balancer is in another region',
    form: 'a region',
    why: ONE_VPC,
    instead: REMOVE,
    blocks: true,
    neutral: [],
  }),
  refused({
    name: `${CLOUD}/cross-vpc-id`,
    means: 'the load balancer is in another VPC',
    form: '`vpc-…`',
    why: ONE_VPC,
    instead: REMOVE,
    blocks: true,
    neutral: [],
  }),
];

type Short = Pick<RefusedIngressRow, 'name' | 'means' | 'form' | 'why' | 'instead'> &
  Partial<Pick<RefusedIngressRow, 'blocks' | 'neutral'>>;

function refused({ blocks = false, neutral = ['false'], ...row }: Short): RefusedIngressRow {
  return { ...row, outcome: 'refused', blocks, neutral };
}
