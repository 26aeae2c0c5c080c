import { CLOUD_OPTIONS } from '../../cloud/tencent/cloud-options.ts';
import { STARTUP_TAINT_KEY } from '../../crd/names.ts';
import { DEFAULT_MIN_WARM_IPS } from '../../crd/new-node.ts';
import { ipv4CidrsValue, ipv4CidrValue } from '../../kube/cidr-option-value.ts';
import { apiServerOptions, clientRateOptions } from '../../kube/connection-options.ts';
import { electionOptions } from '../../kube/election/election-options.ts';
import { objectNameValue } from '../../kube/kube-option-value.ts';
import { observabilityOptions } from '../../runtime/settings/observability-options.ts';
import { option, type SettingsOf, type SettingsProgram } from '../../runtime/settings/option.ts';
import {
  choiceValue,
  durationValue,
  listOf,
  switchValue,
  wholeNumberValue,
} from '../../runtime/settings/option-value.ts';
import { claimExpiryValue, clusterIdValue, securityGroupIdsValue, subnetIdsValue } from './ipamd-option-value.ts';
import { IPAMD_RULES } from './rules.ts';
import { taintSelectorValue } from './taint-selector.ts';

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
const MAX_ADDRESSES = 4_096;
const MAX_ENIS = 64;
const MAX_PERCENT = 100;
/** A smaller block has no address for a Pod. */
const MAX_MASK_SIZE = 29;
const MAX_PODS_PER_NODE = 65_536;

/** Settings of the cluster and the cloud. */
const CLUSTER_OPTIONS = {
  clusterId: option(
    'Cluster and cloud',
    'clusterid',
    clusterIdValue,
    '',
    'Id of this cluster. It marks every ENI that ipamd makes; ENIs with the mark of another cluster are never touched.',
  ),
  ...CLOUD_OPTIONS,
  cloudTimeoutMs: option(
    'Cluster and cloud',
    'cloud-timeout',
    durationValue(5 * SECOND_MS, 10 * MINUTE_MS),
    '60s',
    'Longest time for one cloud call, its waits and repetitions included. A new leader waits this and the lease before it resolves calls of the old one.',
  ),
} as const;

/** Settings of the API server and the leader election. */
const KUBERNETES_OPTIONS = {
  ...apiServerOptions({ master: ', so that ipamd does not need kube-proxy' }),
  ...clientRateOptions(
    {
      value: 100,
      help: 'Most calls a second to the API server. A new node takes some ten writes, and the cloud lets some ten nodes a second become ready.',
    },
    { value: 200 },
  ),
  namespace: option(
    'Kubernetes',
    'namespace',
    objectNameValue,
    'kube-system',
    'Namespace of the ConfigMap with the subnets, and of the lock.',
  ),
  configMap: option(
    'Kubernetes',
    'config-map',
    objectNameValue,
    'tke-eni-ipamd',
    'ConfigMap with the subnets (TKE_ENI_IPAMD_SUBNET_ID, a list with colons). Followed while ipamd runs.',
  ),
  besideProduct: option(
    'Kubernetes',
    'beside-product',
    choiceValue('refuse', 'ignore'),
    'refuse',
    "What to do while a Pod of the product's own ipamd runs (k8s-app=tke-eni-ipamd without app.kubernetes.io/name=tke-eni): refuse writes nothing and calls no cloud until it is gone; ignore works all the same.",
  ),
  ...electionOptions({
    verb: 'Lead',
    lockName: 'tke-eni-ipamd-leader',
    minLeaseMs: 5 * SECOND_MS,
    lease: '30s',
    retry: '5s',
  }),
} as const;

/** Settings of nodes. */
const NODE_OPTIONS = {
  ipMinWarmTarget: option(
    'Nodes',
    'ip-min-warm-target',
    wholeNumberValue(0, MAX_ADDRESSES),
    `${DEFAULT_MIN_WARM_IPS}`,
    'Spare addresses of a new node below which it asks for more. Existing nodes keep what their NodeENIConfig says.',
  ),
  ipMaxWarmTarget: option(
    'Nodes',
    'ip-max-warm-target',
    wholeNumberValue(0, MAX_ADDRESSES),
    '5',
    'Spare addresses of a new node above which it gives some back.',
  ),
  eniMinWarmTarget: option(
    'Nodes',
    'eni-min-warm-target',
    wholeNumberValue(0, MAX_ENIS),
    '1',
    'Spare exclusive ENIs of a new node below which it asks for more.',
  ),
  eniMaxWarmTarget: option(
    'Nodes',
    'eni-max-warm-target',
    wholeNumberValue(0, MAX_ENIS),
    '1',
    'Spare exclusive ENIs of a new node above which it gives some back.',
  ),
  enableDirectEni: option(
    'Nodes',
    'enable-direct-eni',
    switchValue,
    'false',
    'Nodes serve exclusive ENIs, which share the places of the instance with shared ones; the Node label tke.cloud.tencent.com/enable-direct-eni says otherwise of one node.',
  ),
  enableSecurityGroups: option(
    'Nodes',
    'enable-security-groups',
    switchValue,
    'false',
    'Set the security groups of ENIs: of the NodeENIConfig, else --security-groups, else those of the primary ENI.',
  ),
  securityGroups: option(
    'Nodes',
    'security-groups',
    securityGroupIdsValue,
    '',
    'Security groups of ENIs, the first has precedence; none: those of the primary ENI.',
  ),
  ciliumNodes: option(
    'Nodes',
    'cilium-nodes',
    choiceValue('auto', 'off'),
    'auto',
    'Keep the pools of CiliumNodes of Nodes with the label tke.cloud.tencent.com/cilium-ipam=crd, where the cluster has CiliumNodes; off: none is read or written.',
  ),
  onlyNominatedEniSubnets: option(
    'Nodes',
    'only-nominated-eni-subnets',
    subnetIdsValue,
    '',
    'Subnets that are used only for nodes that nominate them.',
  ),
  enableNodeCondition: option(
    'Nodes',
    'enable-node-condition',
    switchValue,
    'false',
    'Write a condition to nodes that lack the addresses that they should have.',
  ),
  enableNodeTaint: option(
    'Nodes',
    'enable-node-taint',
    switchValue,
    'false',
    'Keep Pods off nodes that lack the addresses that they should have, by a taint.',
  ),
  startupTaints: option(
    'Nodes',
    'startup-taints',
    listOf(taintSelectorValue),
    STARTUP_TAINT_KEY,
    "Taints of node pools that keep Pods off a new node; ipamd removes them once the node can serve Pods: its agent says so, and kubelet offers the agent's resources. KEY, KEY:EFFECT or KEY=VALUE:EFFECT. ipamd puts none of them on, and removes no other. The agent has no right to change taints: without the right to patch nodes ipamd says so at its start, and they stay. '' for none.",
  ),
  nodeReleaseGraceMs: option(
    'Nodes',
    'node-release-grace',
    durationValue(0, DAY_MS),
    '5m',
    'How long after a Node was deleted its ENIs are taken although its agent has not given them back.',
  ),
  nodeReleasePercent: option(
    'Nodes',
    'node-release-percent',
    wholeNumberValue(0, MAX_PERCENT),
    '10',
    'How many percent of the nodes, and at least three, may be released per hour when the API server alone, or the cloud alone, says that they are gone. 0: none before a person confirms it.',
  ),
  stoppedInstanceGraceMs: option(
    'Nodes',
    'stopped-instance-grace',
    durationValue(0, DAY_MS),
    '10m',
    'How long an instance has to be shut down before its ENIs are taken off.',
  ),
} as const;

/** Settings of the bridge network, of which each node has a block of the cluster's own addresses. */
const POD_CIDR_OPTIONS = {
  allocateNodeCidrs: option(
    'Pod networks of nodes',
    'allocate-node-cidrs',
    switchValue,
    'false',
    "Give each Node a block of --cluster-cidr as its spec.podCIDR. kube-controller-manager's --allocate-node-cidrs must be false.",
  ),
  clusterCidrs: option(
    'Pod networks of nodes',
    'cluster-cidr',
    ipv4CidrsValue,
    '',
    'Networks of Pods, outside of the VPC. Blocks are taken from one after the other; a network that is added at the end enlarges the cluster.',
  ),
  grRoutes: option(
    'Pod networks of nodes',
    'gr-routes',
    choiceValue('ipamd', 'ccm', 'none'),
    'none',
    "Who keeps the VPC's routes to the podCIDRs of Nodes. ipamd: one route for each, within --cluster-cidr, and the condition NetworkUnavailable of each Node. ccm: tke-cloud-controller-manager with --routes. none: another route controller, or nobody. Of ipamd and tke-cloud-controller-manager only one ever writes routes, whatever is set.",
  ),
  serviceCidr: option(
    'Pod networks of nodes',
    'service-cluster-ip-range',
    ipv4CidrValue,
    '',
    'Addresses of Services, as kube-apiserver has them. No node gets a block that overlaps them.',
  ),
  nodeCidrMaskSize: option(
    'Pod networks of nodes',
    'node-cidr-mask-size',
    wholeNumberValue(0, MAX_MASK_SIZE),
    '0',
    "Prefix length of a node's block; 0: as --max-pods-per-node says.",
  ),
  maxPodsPerNode: option(
    'Pod networks of nodes',
    'max-pods-per-node',
    wholeNumberValue(0, MAX_PODS_PER_NODE),
    '0',
    "Addresses of a node's block, rounded up to a power of two; three of them are network, gateway and broadcast. 0: as --node-cidr-mask-size says, else 256.",
  ),
  podCidrHoldMs: option(
    'Pod networks of nodes',
    'pod-cidr-hold',
    durationValue(MINUTE_MS, DAY_MS),
    '10m',
    'How long the block of a deleted Node waits for the next one where routes of the VPC cannot be read: until its route is certainly gone. A Node that registers again under its name, on the same machine, gets its block back at once.',
  ),
  defaultNetwork: option(
    'Pod networks of nodes',
    'default-network',
    choiceValue('tke-route-eni', 'tke-direct-eni', 'tke-bridge'),
    'tke-route-eni',
    "Network of Pods that name none, as the webhook's setting of this name. With tke-bridge no node is kept free of Pods by a taint or condition for want of an ENI's addresses.",
  ),
} as const;

/** Settings of static addresses. */
const STATIC_OPTIONS = {
  enableStaticIp: option(
    'Kept addresses',
    'enable-static-ip',
    choiceValue('auto', 'true', 'false'),
    'auto',
    'Pods may keep their addresses (annotation vpc-ip-claim-delete-policy: Never), on nodes whose label tke.cloud.tencent.com/static-ip does not say otherwise; auto: on nodes that have a spec.podCIDR, as those of a hybrid cluster have.',
  ),
  claimExpiredDurationMs: option(
    'Kept addresses',
    'claim-expired-duration',
    claimExpiryValue,
    '0s',
    'How long a kept address waits for the next Pod of its name, where neither Pod, VpcIP nor StaticIPConfig says: at least 5m; 0s forever.',
  ),
  enableOwnerref: option(
    'Kept addresses',
    'enable-ownerref',
    switchValue,
    'false',
    'Kept addresses end with their workload, when its last Pod is gone: a VpcIPClaim is owned by the StatefulSet or Deployment of its Pod.',
  ),
  reserveKeptAddresses: option(
    'Kept addresses',
    'reserve-kept-addresses',
    switchValue,
    'false',
    'A kept address whose Pod is gone is taken off its ENI and reserved in the VPC until the next Pod of its name. It then takes no place of a node; the next Pod waits for one more call of the cloud.',
  ),
  registeredWaitMs: option(
    'Kept addresses',
    'load-balancer-wait',
    durationValue(0, 7 * DAY_MS),
    '2h',
    'How long an address without a Pod waits at most while it is published as a target of a load balancer (loadBalancers.registeredIPs of a NodeENIConfig): it is not given back, and no other claim gets it. As --load-balancer-wait of the agents; 0s does not wait.',
  ),
  staticTakeoverAfterMs: option(
    'Kept addresses',
    'static-takeover-after',
    durationValue(10 * SECOND_MS, DAY_MS),
    '60s',
    'How long a node has to be not ready, or gone, until the address of a Pod that is deleted is taken from it without its agent. The old Pod, if it still runs there, is then cut off.',
  ),
  claimAuditIntervalMs: option(
    'Kept addresses',
    'claim-audit-interval',
    durationValue(10 * SECOND_MS, DAY_MS),
    '5m',
    'How often VpcIPClaims, VpcIPs, Pods and nodes are compared.',
  ),
} as const;

/** Settings of EIPs. */
const EIP_OPTIONS = {
  eipIpMasq: option(
    'EIPs',
    'eip-ip-masq',
    switchValue,
    'true',
    'List the addresses of Pods with an EIP in NonMasqueradeSrcCIDRs of ConfigMap kube-system/ip-masq-agent-config, where there is one; entries of others stay.',
  ),
} as const;

/** Settings of records, orphans and ipamd's own work. */
const WORK_OPTIONS = {
  podRecords: option(
    'Records and orphans',
    'pod-records',
    choiceValue('all', 'addresses', 'none'),
    'addresses',
    'What is kept of Pods with an address of the VPC, for people; nothing of ours reads it. addresses: a VpcIP for each of their addresses, which names the Pod, for two writes a Pod; all: a VpcIPClaim for each of them besides, for three; none: nothing, and records that are there already stay.',
  ),
  recordPods: option(
    'Records and orphans',
    'record-pods',
    switchValue,
    'true',
    'The former name: false is --pod-records=none. With true, the default, --pod-records counts.',
  ),
  recordDelayMs: option(
    'Records and orphans',
    'record-delay',
    durationValue(0, HOUR_MS),
    '10s',
    'How long records wait after something happened on a node. What came and went meanwhile is never written, and a burst of Pods has the API server to itself.',
  ),
  orphanGraceMs: option(
    'Records and orphans',
    'orphan-grace',
    durationValue(MINUTE_MS, 7 * DAY_MS),
    '10m',
    "How long an ENI with this cluster's tags has to be an orphan, in every comparison, before it is deleted.",
  ),
  orphanLimit: option(
    'Records and orphans',
    'orphan-limit',
    wholeNumberValue(0, 1_000),
    '10',
    'Most orphaned ENIs deleted in one comparison; 0 deletes none.',
  ),
  orphanDryRun: option(
    'Records and orphans',
    'orphan-dry-run',
    switchValue,
    'false',
    'Only report which ENIs would be deleted.',
  ),
  syncIntervalMs: option(
    'Work',
    'sync-interval',
    durationValue(10 * SECOND_MS, DAY_MS),
    '5m',
    'How often all nodes are compared with the cloud, by one sweep. Subnets are described every 30 s whatever this says.',
  ),
  workers: option(
    'Work',
    'workers',
    wholeNumberValue(1, 10_000),
    '500',
    'Most nodes that are worked on at once. A worker mostly waits for the cloud, and the pacing of calls is common to all.',
  ),
  shutdownGraceMs: option(
    'Work',
    'shutdown-grace',
    durationValue(0, 10 * MINUTE_MS),
    '20s',
    "How long calls under way may take to end on SIGTERM, before the lock is released. Keep it below the Pod's terminationGracePeriodSeconds.",
  ),
  ...observabilityOptions('0.0.0.0:61681'),
} as const;

/** All settings of ipamd: the only place that names them, in the order of the help text. Times are in milliseconds. */
export const IPAMD_OPTIONS = {
  ...CLUSTER_OPTIONS,
  ...KUBERNETES_OPTIONS,
  ...NODE_OPTIONS,
  ...POD_CIDR_OPTIONS,
  ...STATIC_OPTIONS,
  ...EIP_OPTIONS,
  ...WORK_OPTIONS,
} as const;

/** The settings that ipamd runs with. Frozen. */
export type IpamdConfig = SettingsOf<typeof IPAMD_OPTIONS>;

/** The program ipamd, for help, docs and the reader of its settings. */
export const IPAMD_PROGRAM: SettingsProgram<typeof IPAMD_OPTIONS> = {
  name: 'tke-eni-ipamd',
  options: IPAMD_OPTIONS,
  rules: IPAMD_RULES,
  source: 'ipamd/config/options.ts',
  example: { flag: 'sync-interval', text: '10m' },
};
