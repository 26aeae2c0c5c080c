import type { RefusedRow } from './annotation-row.ts';

const TKE = 'service.kubernetes.io';
const CLOUD = 'service.cloud.tencent.com';
const REMOVE = 'remove it';

const OF_OTHERS = 'it is an annotation of another controller';
const ONE_WEIGHT = 'all backends have one weight';
const LAYER_4 = 'listeners are of TCP and UDP: there are none of HTTP, TLS or QUIC';
const ONE_VPC = 'load balancer and backends are in the VPC of the cluster';
const ONE_LAYER = 'listeners of Services are of TCP and UDP';
const NOT_OPEN = 'the cloud has it for chosen accounts alone';
const NO_SWITCHES = 'the ConfigMap is not read';

/** What TKE's service controller obeys and this one does not. */
export const REFUSED_ANNOTATIONS: readonly RefusedRow[] = [
  ofService({
    name: `${TKE}/qcloud-share-existed-lb`,
    means: 'Services of a serverless cluster share a load balancer',
    form: '`"true"`',
    why: 'it is for serverless clusters',
    instead: `name the load balancer in ${TKE}/tke-existed-lbid of each Service`,
  }),
  ofService({
    name: `${TKE}/loadbalance-nat-ipv6`,
    means: 'written by TKE for a load balancer that translates IPv6',
    form: '`"true"`',
    why: 'IPv6 is not served',
    instead: REMOVE,
  }),
  ofService({
    name: `${TKE}/local-svc-only-bind-node-with-pod`,
    olderNames: [`${CLOUD}/local-svc-only-bind-node-with-pod`],
    means: 'with the policy Local only Nodes that have Pods are backends',
    form: '`"true"`',
    why: 'all Nodes are backends, and their health check says which have Pods: a Node is left out when it answers so, without a change of the load balancer',
    instead: REMOVE,
  }),
  ofService({
    name: `${CLOUD}/local-svc-weighted-balance`,
    means: 'the weight of a Node is the number of its Pods',
    form: '`"true"`',
    why: ONE_WEIGHT,
    instead: REMOVE,
  }),
  ofService({
    name: `${CLOUD}/specify-protocol`,
    means: 'listeners of other protocols, with certificates',
    form: 'JSON by port',
    why: LAYER_4,
    instead: 'end TLS in the Pods, and remove it',
    blocks: true,
    neutral: [],
  }),
  ofService({
    name: `${CLOUD}/enable-grace-deletion`,
    means: 'the deletion of a Pod waits for weight 0',
    form: '`"true"` or `"false"`',
    why: "it needs TKE's kubelet: no other one waits before it stops containers",
    instead: 'let containers serve on for some seconds by a preStop hook, and remove it',
  }),
  ofService({
    name: `${CLOUD}/modification-protection`,
    means: 'the console does not let people change the load balancer',
    form: '`"true"`',
    why: 'the API of load balancers has no call for it',
    instead: 'switch it on in the console, and remove it here',
  }),
  ofService({
    name: `${CLOUD}/target-groups`,
    means: 'backends are target groups',
    form: 'JSON list of protocol, port and name',
    why: 'target groups are not served',
    instead: 'remove it, and Nodes are backends',
    blocks: true,
    neutral: [],
  }),
  ofService({
    name: `${CLOUD}/cross-region-id`,
    means: 'the load balancer is in another region',
    form: 'a region',
    why: ONE_VPC,
    instead: REMOVE,
    blocks: true,
    neutral: [],
  }),
  ofService({
    name: `${CLOUD}/cross-vpc-id`,
    means: 'the load balancer is in another VPC',
    form: '`vpc-…`',
    why: ONE_VPC,
    instead: REMOVE,
    blocks: true,
    neutral: [],
  }),
  ofService({
    name: `${CLOUD}/hybrid-type`,
    means: 'backends outside of the cloud',
    form: '`CCN`',
    why: ONE_VPC,
    instead: REMOVE,
    blocks: true,
    neutral: [],
  }),
  ofService({
    name: `${CLOUD}/snat-pro-info`,
    means: 'addresses by which backends outside of the VPC are reached',
    form: 'JSON with `snatIps`',
    why: ONE_VPC,
    instead: REMOVE,
    neutral: [],
  }),
  ofService({
    name: `${CLOUD}/lb-rs-weight`,
    means: 'weights of the Pods of workloads',
    form: 'JSON with `defaultWeight` and `groups`',
    why: ONE_WEIGHT,
    instead: REMOVE,
    neutral: [],
  }),
  ...[
    ['service.beta.kubernetes.io/aws-load-balancer-internal', 'service.beta.kubernetes.io/aws-load-balancer-scheme'],
    ['service.beta.kubernetes.io/azure-load-balancer-internal', 'networking.gke.io/load-balancer-type'],
    ['cloud.google.com/load-balancer-type', 'service.beta.kubernetes.io/alibaba-cloud-loadbalancer-address-type'],
  ]
    .flat()
    .map((name) =>
      ofService({
        name,
        means: 'makes the load balancer an internal one',
        form: 'as its controller has it',
        why: OF_OTHERS,
        instead: `set ${TKE}/qcloud-loadbalancer-internal-subnetid`,
        neutral: ['false', 'External', 'internet', 'internet-facing'],
      }),
    ),
  ...['azure-allowed-ip-ranges', 'azure-allowed-service-tags', 'aws-load-balancer-security-groups'].map((name) =>
    ofService({
      name: `service.beta.kubernetes.io/${name}`,
      means: 'keeps clients out',
      form: 'as its controller has it',
      why: OF_OTHERS,
      instead: 'set spec.loadBalancerSourceRanges',
      neutral: [],
    }),
  ),
  elsewhere('ConfigMap tke-service-controller-config', NO_SWITCHES, [
    ['GlobalRouteDirectAccess', 'Pods of GlobalRoute may be backends; here --routes says so'],
    ['EnableNodeGracefulDeletion', 'a Node that is a backend is deleted after it was drained'],
    ['EnablePodGracefulDeletion', 'the deletion of a Pod waits for weight 0'],
    ['EnableDefaultModificationProtection', 'new load balancers are protected in the console'],
    ['EnableDefaultDirectAccess', 'new Services get the annotation direct-access'],
    ['EnableIngressController', "TKE's controller of Ingresses runs"],
    ['VERSION', "the version of TKE's controller; written by it"],
    ['REUSE_LOADBALANCER', 'Services may share a load balancer; written by TKE'],
  ]),
  elsewhere('TkeServiceConfig', NOT_OPEN, [
    ['spec.loadBalancer.l4Listeners[].proxyProtocol', 'a listener sends the address of the client ahead'],
  ]),
  elsewhere('TkeServiceConfig', ONE_LAYER, [
    ['spec.loadBalancer.l7Listeners[]', 'domains, rules and settings of listeners of HTTP and HTTPS; of Ingresses'],
  ]),
].flat();

type Short = Pick<RefusedRow, 'name' | 'means' | 'form' | 'why' | 'instead'> &
  Partial<Pick<RefusedRow, 'blocks' | 'neutral'>> & { readonly olderNames?: readonly string[] };

function ofService({ olderNames = [], blocks = false, neutral = ['false'], ...row }: Short): readonly RefusedRow[] {
  const names = [row.name, ...olderNames];
  return names.map((name) => ({ ...row, name, outcome: 'refused', place: 'Service', blocks, neutral }));
}

function elsewhere(
  place: RefusedRow['place'],
  why: string,
  rows: readonly (readonly [name: string, means: string])[],
): readonly RefusedRow[] {
  return rows.map(([name, means]) => ({
    name,
    means,
    form: '',
    outcome: 'refused',
    place,
    why,
    instead: '',
    blocks: false,
    neutral: [],
  }));
}
