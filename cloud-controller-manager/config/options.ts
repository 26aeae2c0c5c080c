import { CLOUD_OPTIONS } from '../../cloud/tencent/cloud-options.ts';
import { ipv4CidrsValue } from '../../kube/cidr-option-value.ts';
import { apiServerOptions, clientRateOptions } from '../../kube/connection-options.ts';
import { loadBalancerClassValue, objectNameValue } from '../../kube/kube-option-value.ts';
import { observabilityOptions } from '../../runtime/settings/observability-options.ts';
import { option, type SettingsOf, type SettingsProgram } from '../../runtime/settings/option.ts';
import {
  choiceValue,
  durationValue,
  listOf,
  switchValue,
  textValue,
  wholeNumberValue,
} from '../../runtime/settings/option-value.ts';
import { controllersValue } from './controllers-value.ts';
import { CCM_RULES } from './rules.ts';

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const MAX_ROUTES = 100_000;

/** Which controllers run. */
const CONTROLLER_OPTIONS = {
  controllers: option(
    'Controllers',
    'controllers',
    controllersValue,
    '*',
    'Which controllers run: * for all, NAME for that one, -NAME for all but that one; the first item about a controller counts.',
  ),
} as const;

/** Settings of the API server. Flags have upstream's names. */
const KUBERNETES_OPTIONS = {
  ...apiServerOptions({ master: ', so that no kube-proxy is needed' }),
  ...clientRateOptions(
    { value: 20, help: 'Most calls a second to the API server. A new Node takes some three writes.' },
    { value: 30 },
    'kube-api',
  ),
} as const;

/** Settings of the leader election. Flags have upstream's names. */
const ELECTION_OPTIONS = {
  leaderElect: option(
    'Leader election',
    'leader-elect',
    switchValue,
    'true',
    'Work only with the lock. Without it never run two.',
  ),
  leaderElectLock: option(
    'Leader election',
    'leader-elect-resource-lock',
    choiceValue('endpoints', 'leases', 'configmaps'),
    'endpoints',
    'Kind of the lock. The published ClusterRole grants Endpoints and neither Leases nor ConfigMaps.',
  ),
  leaderElectName: option(
    'Leader election',
    'leader-elect-resource-name',
    objectNameValue,
    'cloud-controller-manager',
    "Name of the lock. It is upstream's, so that a cloud controller manager from another vendor with the same lock and this one never both work.",
  ),
  namespace: option(
    'Leader election',
    'leader-elect-resource-namespace',
    objectNameValue,
    'kube-system',
    'Namespace of the lock.',
  ),
  leaderElectLeaseMs: option(
    'Leader election',
    'leader-elect-lease-duration',
    durationValue(5 * SECOND_MS, 10 * MINUTE_MS),
    '15s',
    'How long other replicas wait for a leader that does not renew. The leader gives up after three quarters of it.',
  ),
  leaderElectRetryMs: option(
    'Leader election',
    'leader-elect-retry-period',
    durationValue(100, MINUTE_MS),
    '2s',
    'How often the leader renews and other replicas read the lock.',
  ),
} as const;

/** Settings of the process. */
const PROCESS_OPTIONS = {
  cloudTimeoutMs: option(
    'Cloud',
    'cloud-timeout',
    durationValue(5 * SECOND_MS, 10 * MINUTE_MS),
    '60s',
    'Longest time for one cloud call, its waits and repetitions included.',
  ),
  ...observabilityOptions('0.0.0.0:61694'),
} as const;

const routeTableValue = textValue(/^rtb-[a-z0-9]{1,32}$/, 'ID', 'the id of a route table such as rtb-azd4dt1c');

const vpcIdValue = textValue(/^(vpc-[a-z0-9]+)?$/, 'VPC', "the id of a VPC such as vpc-0123abcd, or ''");

/** Settings of the controllers of Nodes. */
const NODE_OPTIONS = {
  vpcId: option(
    'Nodes',
    'vpc-id',
    vpcIdValue,
    '',
    "VPC of the cluster: Nodes without providerID are found in it by their InternalIP, and a Node is deleted only for an instance of it. '' takes the VPC of most instances of Nodes.",
  ),
  providerIdForm: option(
    'Nodes',
    'provider-id-form',
    choiceValue('tencentcloud', 'qcloud'),
    'tencentcloud',
    'Form of a providerID that is written: tencentcloud:///ZONE/ins-…, or as TKE does qcloud:///ZONE-NUMBER/ins-…. Each form is read.',
  ),
  zoneLabels: option(
    'Nodes',
    'zone-labels',
    choiceValue('name', 'number'),
    'name',
    'Labels of zone and region: names (ap-guangzhou-3, ap-guangzhou), or as TKE does the number of the zone and a short region (100003, gz).',
  ),
  expectsRoutes: option(
    'Nodes',
    'expect-routes',
    switchValue,
    'false',
    'A route to the Pods of each Node is to come: NetworkUnavailable=True is written before the uninitialized taint is removed.',
  ),
  nodeStatusUpdateMs: option(
    'Nodes',
    'node-status-update-frequency',
    durationValue(10 * SECOND_MS, 60 * MINUTE_MS),
    '5m',
    'How often addresses and labels of all Nodes are compared with the cloud.',
  ),
  nodeMonitorMs: option(
    'Nodes',
    'node-monitor-period',
    durationValue(SECOND_MS, 10 * MINUTE_MS),
    '5s',
    'How often Nodes that are not ready are looked at: one call for each hundred of them, none for those that are ready.',
  ),
  nodeReleasePercent: option(
    'Nodes',
    'node-release-percent',
    wholeNumberValue(0, 100),
    '10',
    'Most Nodes that are deleted in an hour, in percent of all; at least three, and none with 0.',
  ),
} as const;

/** Settings of the routes to the podCIDRs of Nodes. */
const ROUTE_OPTIONS = {
  routes: option(
    'Routes',
    'routes',
    choiceValue('none', 'global', 'table', 'cluster'),
    'none',
    "Where the routes to the podCIDRs of Nodes are kept, by node-route-controller. global: as global routes of the VPC. table: in the VPC's route tables of --route-tables. cluster: in the cluster's route table of the TKE API. none: not by this program. With another value --expect-routes is set too.",
  ),
  routeTables: option(
    'Routes',
    'route-tables',
    listOf(routeTableValue),
    '',
    'Route tables of the VPC, such as rtb-azd4dt1c; each gets all routes. --routes=table needs them: those of all subnets that Pods are reached from.',
  ),
  clusterRouteTable: option(
    'Routes',
    'cluster-route-table',
    textValue(/^([A-Za-z0-9][A-Za-z0-9_.-]{0,62})?$/, 'NAME', "the name of a route table of the TKE API, or ''"),
    '',
    "Route table of --routes=cluster; it belongs to this cluster alone, as its routes have no other mark. '' takes the one that TKE made, whose name is --clusterid.",
  ),
  clusterCidrs: option(
    'Routes',
    'cluster-cidr',
    ipv4CidrsValue,
    '',
    'Networks of Pods, outside of the VPC. No route to another network is made or deleted; --routes needs it.',
  ),
  clusterId: option(
    'Routes',
    'clusterid',
    textValue(/^(cls-[a-z0-9]{1,32})?$/, 'ID', "the id of the cluster, such as cls-3x5v7b9d, or ''"),
    '',
    'Id of this cluster, as ipamd has it: the mark of its routes and load balancers. --routes and --load-balancers need it; routes with another mark or none are never deleted.',
  ),
  routeQuota: option(
    'Routes',
    'route-quota',
    wholeNumberValue(0, MAX_ROUTES),
    '0',
    'Most routes that the VPC or a route table takes: no call is made that would exceed it, and the Node gets an event. 0: of a route table the cloud says it; else what is too many the cloud refuses.',
  ),
} as const;

/** Settings of the load balancers of Services. */
const SERVICE_OPTIONS = {
  loadBalancers: option(
    'Services',
    'load-balancers',
    choiceValue('none', 'clb'),
    'none',
    "Who makes the load balancers of Services of type LoadBalancer. clb: this program, by service-lb-controller; it needs --clusterid. none: another one, as TKE's own service controller.",
  ),
  loadBalancerClass: option(
    'Services',
    'load-balancer-class',
    loadBalancerClassValue,
    '',
    "spec.loadBalancerClass of Services that get a load balancer beside those without a class; '' for none.",
  ),
  loadBalancerDrift: option(
    'Services',
    'load-balancer-drift',
    choiceValue('repair', 'report'),
    'repair',
    'What becomes of a load balancer, listener or target of ours that somebody else changed: set again, or only reported and left until the Service asks for something else there.',
  ),
  tkeServiceController: option(
    'Services',
    'tke-service-controller',
    choiceValue('detect', 'ignore'),
    'detect',
    "detect: while TKE's own service controller is at work in this cluster, no load balancer is read or changed. ignore: it is not looked for, as where its traces are old.",
  ),
  orphanBalancerPeriodMs: option(
    'Services',
    'orphan-load-balancer-period',
    durationValue(10 * MINUTE_MS, 24 * 60 * MINUTE_MS),
    '1h',
    'How often load balancers with the tags of this cluster are looked for whose Service does not exist any more.',
  ),
  deletesOrphanBalancers: option(
    'Services',
    'delete-orphan-load-balancers',
    switchValue,
    'false',
    'Delete load balancers whose Service does not exist any more; otherwise they are only reported. Those left by service.cloud.tencent.com/mode=skip are among them, unless they are protected against deletion.',
  ),
  orphanBalancerLimit: option(
    'Services',
    'orphan-load-balancer-limit',
    wholeNumberValue(1, 1_000),
    '5',
    'Most load balancers without a Service that are deleted in one sweep.',
  ),
} as const;

/** Settings of the load balancers of Ingresses. */
const INGRESS_OPTIONS = {
  ingress: option(
    'Ingresses',
    'ingress',
    choiceValue('none', 'clb'),
    'none',
    'Who makes the load balancers of Ingresses of class qcloud. clb: this program, with service-lb-controller; it needs --load-balancers=clb, as readiness gates, published addresses and orphans of both are kept together. none: another one, or none at all.',
  ),
  servesWithoutClass: option(
    'Ingresses',
    'ingress-without-class',
    switchValue,
    'false',
    'Ingresses without a class get a load balancer too. Set it where no other ingress controller serves them.',
  ),
} as const;

/** All settings: the only place that names them, in the order of the help text. Times are in milliseconds. */
const CCM_OPTIONS = {
  ...CONTROLLER_OPTIONS,
  ...CLOUD_OPTIONS,
  ...KUBERNETES_OPTIONS,
  ...ELECTION_OPTIONS,
  ...NODE_OPTIONS,
  ...ROUTE_OPTIONS,
  ...SERVICE_OPTIONS,
  ...INGRESS_OPTIONS,
  ...PROCESS_OPTIONS,
} as const;

/** The settings that the process runs with. Frozen. */
export type CcmConfig = SettingsOf<typeof CCM_OPTIONS>;

/** The program, for help, docs and the reader of its settings. */
export const CCM_PROGRAM: SettingsProgram<typeof CCM_OPTIONS> = {
  name: 'tke-cloud-controller-manager',
  options: CCM_OPTIONS,
  rules: CCM_RULES,
  source: 'cloud-controller-manager/config/options.ts',
  example: { flag: 'leader-elect-lease-duration', text: '30s' },
};
