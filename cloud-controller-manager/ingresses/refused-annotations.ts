import type { RefusedRow } from '../services/annotation-row.ts';

/** An annotation of an Ingress that is not obeyed, and is reported. */
type RefusedIngressRow = Omit<RefusedRow, 'place'>;

const CLOUD = 'ingress.cloud.tencent.com';
const TKE = 'kubernetes.io/ingress';
const REMOVE = 'remove it';
const NOT_FILTERED = 'the load balancer does not look at clients; the security groups of the load balancer do';
const NO_LOGIN = 'the load balancer asks nobody who he is';
const NO_LIMIT = 'the load balancer has no limit for clients';
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
  ...ofOthers('keeps clients out', NOT_FILTERED, `set ${CLOUD}/security-groups`, [
    'nginx.ingress.kubernetes.io/whitelist-source-range',
    'nginx.ingress.kubernetes.io/denylist-source-range',
    'haproxy.org/allow-list',
    'haproxy.org/whitelist',
    'alb.ingress.kubernetes.io/inbound-cidrs',
    'alb.ingress.kubernetes.io/security-groups',
  ]),
  ...ofOthers(
    'makes the load balancer an internal one',
    'it is an annotation of another controller',
    `set ${TKE}.subnetId`,
    ['alb.ingress.kubernetes.io/scheme', 'kubernetes.io/ingress.regional-static-ip-name'],
  ),
  ...ofOthers('asks for a login', NO_LOGIN, 'let the backend ask', [
    'nginx.ingress.kubernetes.io/auth-type',
    'nginx.ingress.kubernetes.io/auth-url',
    'haproxy.org/auth-type',
    'alb.ingress.kubernetes.io/auth-type',
    'traefik.ingress.kubernetes.io/router.middlewares',
  ]),
  ...ofOthers(
    'asks clients for certificates',
    'it is an annotation of another controller',
    'name the authority as qcloud_ca_cert_id in the Secret',
    ['nginx.ingress.kubernetes.io/auth-tls-secret', 'alb.ingress.kubernetes.io/mutual-authentication'],
  ),
  ...ofOthers('limits what a client may ask', NO_LIMIT, 'let the backend limit it', [
    'nginx.ingress.kubernetes.io/limit-rps',
    'nginx.ingress.kubernetes.io/limit-rpm',
    'nginx.ingress.kubernetes.io/limit-connections',
    'haproxy.org/rate-limit-requests',
  ]),
];

type Short = Pick<RefusedIngressRow, 'name' | 'means' | 'form' | 'why' | 'instead'> &
  Partial<Pick<RefusedIngressRow, 'blocks' | 'neutral'>>;

function refused({ blocks = false, neutral = ['false'], ...row }: Short): RefusedIngressRow {
  return { ...row, outcome: 'refused', blocks, neutral };
}

/** Annotations of other controllers that narrow access: what people relied on is not passed over in silence. */
function ofOthers(means: string, why: string, instead: string, names: readonly string[]): readonly RefusedIngressRow[] {
  return names.map((name) => refused({ name, means, form: 'as its controller has it', why, instead, neutral: [] }));
}
