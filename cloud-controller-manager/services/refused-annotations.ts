import type { RefusedRow } from './annotation-table.ts';
import { refused, refusedOwnerAnnotations, refusedPlace } from './owner-annotations.ts';

/** A name that is not obeyed. One of a Service is reported; what stands elsewhere is not read at all. */
type PlacedRow = RefusedRow & {
  readonly place: 'Service' | 'Node' | 'Pod' | 'ConfigMap tke-service-controller-config' | 'TkeServiceConfig';
};

const TKE = 'service.kubernetes.io';
const CLOUD = 'service.cloud.tencent.com';

const OF_OTHERS = 'it is an annotation of another controller';
const ONE_WEIGHT = 'all backends have one weight';
const LAYER_4 = 'listeners are of TCP and UDP: there are none of HTTP, TLS or QUIC';
const ONE_LAYER = 'listeners of Services are of TCP and UDP';
const NOT_OPEN = 'the cloud has it for chosen accounts alone';
const NO_SWITCHES = 'the ConfigMap is not read';

const OF_BOTH = refusedOwnerAnnotations('service');

const OF_SERVICES: readonly RefusedRow[] = [
  refused({
    name: `${TKE}/qcloud-share-existed-lb`,
    means: 'Services of a serverless cluster share a load balancer',
    why: 'it is for serverless clusters',
    instead: `name the load balancer in ${TKE}/tke-existed-lbid of each Service`,
  }),
  refused({
    name: `${TKE}/loadbalance-nat-ipv6`,
    means: 'written by TKE for a load balancer that translates IPv6',
    why: 'IPv6 is not served',
  }),
  ...[TKE, CLOUD].map((group) =>
    refused({
      name: `${group}/local-svc-only-bind-node-with-pod`,
      means: 'with the policy Local only Nodes that have Pods are backends',
      why: 'all Nodes are backends, and their health check says which have Pods: a Node is left out when it answers so, without a change of the load balancer',
    }),
  ),
  refused({
    name: `${CLOUD}/local-svc-weighted-balance`,
    means: 'the weight of a Node is the number of its Pods',
    why: ONE_WEIGHT,
  }),
  refused({
    name: `${CLOUD}/specify-protocol`,
    means: 'listeners of other protocols, with certificates',
    why: LAYER_4,
    instead: 'end TLS in the Pods, and remove it',
    blocks: true,
    neutral: [],
  }),
  OF_BOTH.enableGraceDeletion,
  OF_BOTH.modificationProtection,
  refused({
    name: `${CLOUD}/target-groups`,
    means: 'backends are target groups',
    why: 'target groups are not served',
    instead: 'remove it, and Nodes are backends',
    blocks: true,
    neutral: [],
  }),
  OF_BOTH.crossRegion,
  OF_BOTH.crossVpc,
  refusedPlace(`${CLOUD}/hybrid-type`, 'backends outside of the cloud'),
  {
    ...refusedPlace(`${CLOUD}/snat-pro-info`, 'addresses by which backends outside of the VPC are reached'),
    blocks: false,
  },
  refused({
    name: `${CLOUD}/lb-rs-weight`,
    means: 'weights of the Pods of workloads',
    why: ONE_WEIGHT,
    neutral: [],
  }),
  ...[
    ['service.beta.kubernetes.io/aws-load-balancer-internal', 'service.beta.kubernetes.io/aws-load-balancer-scheme'],
    ['service.beta.kubernetes.io/azure-load-balancer-internal', 'networking.gke.io/load-balancer-type'],
    ['cloud.google.com/load-balancer-type', 'service.beta.kubernetes.io/alibaba-cloud-loadbalancer-address-type'],
  ]
    .flat()
    .map((name) =>
      refused({
        name,
        means: 'makes the load balancer an internal one',
        why: OF_OTHERS,
        instead: `set ${TKE}/qcloud-loadbalancer-internal-subnetid`,
        neutral: ['false', 'External', 'internet', 'internet-facing'],
      }),
    ),
  ...['azure-allowed-ip-ranges', 'azure-allowed-service-tags', 'aws-load-balancer-security-groups'].map((name) =>
    refused({
      name: `service.beta.kubernetes.io/${name}`,
      means: 'keeps clients out',
      why: OF_OTHERS,
      instead: 'set spec.loadBalancerSourceRanges',
      neutral: [],
    }),
  ),
];

/** What TKE's service controller obeys and this one does not. */
export const REFUSED_ANNOTATIONS: readonly PlacedRow[] = [
  ...OF_SERVICES.map((row) => ({ ...row, place: 'Service' as const })),
  ...elsewhere('ConfigMap tke-service-controller-config', NO_SWITCHES, [
    ['GlobalRouteDirectAccess', 'Pods of GlobalRoute may be backends; here --routes says so'],
    ['EnableNodeGracefulDeletion', 'a Node that is a backend is deleted after it was drained'],
    ['EnablePodGracefulDeletion', 'the deletion of a Pod waits for weight 0'],
    ['EnableDefaultModificationProtection', 'new load balancers are protected in the console'],
    ['EnableDefaultDirectAccess', 'new Services get the annotation direct-access'],
    ['EnableIngressController', "TKE's controller of Ingresses runs"],
    ['VERSION', "the version of TKE's controller; written by it"],
    ['REUSE_LOADBALANCER', 'Services may share a load balancer; written by TKE'],
  ]),
  ...elsewhere('TkeServiceConfig', NOT_OPEN, [
    ['spec.loadBalancer.l4Listeners[].proxyProtocol', 'a listener sends the address of the client ahead'],
  ]),
  ...elsewhere('TkeServiceConfig', ONE_LAYER, [
    ['spec.loadBalancer.l7Listeners[]', 'domains, rules and settings of listeners of HTTP and HTTPS; of Ingresses'],
  ]),
];

function elsewhere(
  place: PlacedRow['place'],
  why: string,
  rows: readonly (readonly [name: string, means: string])[],
): readonly PlacedRow[] {
  return rows.map(([name, means]) => ({ ...refused({ name, means, why, instead: '', neutral: [] }), place }));
}
