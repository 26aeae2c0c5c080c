import { BRIDGE_NAME } from '../../dataplane/numbers.ts';
import { apiServerOptions, clientRateOptions } from '../../kube/connection-options.ts';
import { observabilityOptions } from '../../runtime/settings/observability-options.ts';
import { option, type SettingsOf } from '../../runtime/settings/option.ts';
import {
  choiceValue,
  durationValue,
  nodeNameValue,
  pathsValue,
  pathValue,
  switchValue,
} from '../../runtime/settings/option-value.ts';
import {
  bridgeValue,
  cidrsValue,
  interfaceValue,
  loopbackListenValue,
  markMaskValue,
  mtuValue,
} from './agent-option-value.ts';
import { chainedPluginsValue } from './chained-plugins.ts';

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/**
 * All settings of the agent, in the order of the help text; no other file names them. Keys are the fields of
 * `AgentConfig`; times are in milliseconds.
 */
export const OPTIONS = {
  socket: option(
    'Node',
    'socket',
    pathValue(),
    '/run/tke-eni/agent.sock',
    'Unix socket on which the CNI executables reach the agent; mode 0600.',
  ),
  listenAddress: option(
    'Node',
    'listen-address',
    loopbackListenValue,
    '',
    "TCP address to serve the executables' calls on, for confs that name one (the product's is 127.0.0.1:61677). Loopback only. Connections of root are served, all others are closed; a container with uid 0 in the host's network counts as root. Leave it off unless needed.",
  ),
  besideProduct: option(
    'Node',
    'beside-product',
    choiceValue('refuse', 'ignore'),
    'refuse',
    "What to do at the start where the product's own agent answers on 127.0.0.1:61677, or Pods of it live on the node: refuse ends with a sentence before anything is changed; ignore starts all the same.",
  ),
  stateDir: option(
    'Node',
    'state-dir',
    pathValue(),
    '/run/tke-eni',
    'Folder of the journal. Must be a tmpfs: its content must not survive a reboot.',
  ),
  hostRoot: option(
    'Node',
    'host-root',
    pathValue(),
    '/proc/1/root',
    'Where the root file system of the host is seen from here; network namespaces are opened through it.',
  ),
  nodeName: option(
    'Node',
    'node-name',
    nodeNameValue,
    '',
    'Name of this node; NODE_NAME is taken too. Required with --supply-source=cluster and cilium-node. When set, supply for another node is refused.',
  ),
  role: option(
    'Node',
    'role',
    choiceValue('full', 'uplinks'),
    'full',
    'What the agent does on this node. full: it gives Pods their addresses and wires them. uplinks: it sets up ENIs, and routes the packets of all their addresses by them, for Pods that another program wires (Cilium with ipam=crd); it installs no CNI configuration, registers no resources, serves no ADD and follows no Pods. The layout of rules is per-pod then.',
  ),

  supplySource: option(
    'Supply',
    'supply-source',
    choiceValue('file', 'cluster', 'cilium-node'),
    'file',
    "Where this node's ENIs and addresses come from. cluster: its NodeENIConfig in the API server, where the agent also writes its demand; file: --supply-file; cilium-node: spec.ipam.pool of its CiliumNode (IPAM mode crd of Cilium), in whose status the agent writes which addresses are in use.",
  ),
  supplyFile: option(
    'Supply',
    'supply-file',
    pathValue(),
    '/etc/tke-eni/node.yaml',
    "NodeENIConfig that lists this node's ENIs and addresses. Followed while the agent runs.",
  ),
  reserveNodeAddresses: option(
    'Supply',
    'reserve-node-addresses',
    switchValue,
    'false',
    'With --supply-source=cilium-node: takes two addresses of the pool for the node, under the owners router and health, as an agent of Cilium does; no Pod gets them, and the agent waits for two addresses instead of one.',
  ),
  ciliumUpdateMs: option(
    'Supply',
    'cilium-node-update-rate',
    durationValue(1_000, HOUR_MS),
    '15s',
    'With --supply-source=cilium-node: how often status.ipam.used of the CiliumNode is written at most.',
  ),
  ipCooldownMs: option(
    'Supply',
    'ip-cooldown',
    durationValue(0, HOUR_MS),
    '120s',
    'How long an address rests after its Pod is gone. 120s is tcp_timeout_syn_sent: below it a new Pod may get packets meant for the old one.',
  ),
  addWaitMs: option(
    'Supply',
    'add-wait',
    durationValue(0, 2 * MINUTE_MS),
    '30s',
    'How long an ADD waits for an address when none is free. Keep it below the timeout of the executables, 40s.',
  ),
  forceReuseAfterMs: option(
    'Supply',
    'force-reuse-after',
    durationValue(0, 2 * MINUTE_MS),
    '5s',
    'Of that wait: after how long the address that has cooled longest is taken early, its connection tracking entries flushed.',
  ),
  registeredWaitMs: option(
    'Supply',
    'load-balancer-wait',
    durationValue(0, 7 * DAY_MS),
    '2h',
    'How long an address without a Pod waits at most while it is published as a target of a load balancer (loadBalancers.registeredIPs of the NodeENIConfig): no other Pod gets it, and it is not given back. Longer than the cloud controller manager may be away; 0s does not wait.',
  ),
  enableQuickRelease: option(
    'Supply',
    'enable-quick-release',
    switchValue,
    'false',
    'Give back all surplus addresses at each --release-interval, not one. spec.enableQuickRelease of the NodeENIConfig turns it on for one node.',
  ),
  releaseIntervalMs: option(
    'Supply',
    'release-interval',
    durationValue(SECOND_MS, HOUR_MS),
    '2m',
    'How often surplus addresses are given back: one of them, or all with --enable-quick-release.',
  ),

  ...apiServerOptions({ master: ', so that the agent does not need kube-proxy' }),
  ...clientRateOptions(
    { value: 10, help: 'Calls a second to the API server in the long run.' },
    { value: 20, help: 'Calls at once after a rest. Not below --kube-client-qps.', max: 100_000 },
  ),

  cniBinDir: option(
    'Runtime',
    'cni-bin-dir',
    pathValue(),
    '/opt/cni/bin',
    'Where the container runtime looks for CNI executables.',
  ),
  cniConfDir: option(
    'Runtime',
    'cni-conf-dir',
    pathValue(),
    '/etc/cni/net.d',
    'Where the container runtime looks for CNI configuration.',
  ),
  pluginDir: option(
    'Runtime',
    'plugin-dir',
    pathValue(true),
    '',
    "Folder with our executables, to be installed into --cni-bin-dir; '' installs neither them nor a configuration.",
  ),
  referencePluginDir: option(
    'Runtime',
    'reference-plugin-dir',
    pathValue(true),
    '/usr/lib/cni',
    "Folder with the CNI project's plugins (portmap, bandwidth, bridge, host-local, loopback); those that --cni-bin-dir lacks are copied from it, with --plugin-dir; '' for none.",
  ),
  kubeletDir: option(
    'Runtime',
    'kubelet-dir',
    pathValue(true),
    '/var/lib/kubelet',
    "Kubelet's folder, where the node's addresses are registered as tke.cloud.tencent.com/eni-ip when --supply-source is cluster; '' registers nothing.",
  ),
  removeConfOnExit: option(
    'Runtime',
    'remove-conf-on-exit',
    switchValue,
    'false',
    'Take our network configuration away on SIGTERM, so that the node turns NotReady. For uninstalling; an upgrade must not set it.',
  ),
  criSockets: option(
    'Runtime',
    'cri-socket',
    pathsValue,
    '/run/containerd/containerd.sock,/run/crio/crio.sock',
    "Sockets of container runtimes; each that answers is asked; '' for none, which turns garbage collection by sandboxes off.",
  ),
  portMapping: option(
    'Runtime',
    'port-mapping',
    switchValue,
    'true',
    'Map the hostPort of Pods, by the plugin portmap, which needs iptables on the node and is called for such Pods alone. Without it a hostPort has no effect. Takes effect for new Pods.',
  ),
  bandwidth: option(
    'Runtime',
    'bandwidth',
    switchValue,
    'false',
    'Chain the bandwidth plugin. Takes effect for new Pods.',
  ),
  chainedPlugins: option(
    'Runtime',
    'chained-plugins',
    chainedPluginsValue,
    '',
    'Plugins to chain after ours, and after bandwidth: names such as cilium-cni, or a JSON list of plugin objects. The network configuration is written when their executables are in --cni-bin-dir. With cilium-cni the network is called generic-veth, and Pods with an exclusive ENI or with GlobalRoute are refused. Takes effect for new Pods.',
  ),
  cniLauncher: option(
    'Runtime',
    'cni-launcher',
    choiceValue('auto', 'off'),
    'auto',
    'Put a launcher in front of the CNI executables, which hands each call to the agent and needs a tenth of the time. auto: where --plugin-dir has it.',
  ),

  ruleMode: option(
    'Data plane',
    'rule-mode',
    choiceValue('auto', 'compact', 'per-pod'),
    'auto',
    "Layout of policy rules. compact: as many rules as ENIs; per-pod: the product's two per Pod; auto: compact where nftables works and cilium-cni is not chained.",
  ),
  eniMarkMask: option(
    'Data plane',
    'eni-mark-mask',
    markMaskValue,
    '0x00ff0000',
    'Bits of the packet mark that compact mode uses; others are left alone.',
  ),
  rpFilterMode: option(
    'Data plane',
    'rp-filter-mode',
    choiceValue('loose', 'product'),
    'loose',
    "Reverse path filter. loose: 2 on ENIs and the primary interface, 1 on Pod links, 'all' untouched; product: 0 on all of the node.",
  ),
  egress: option(
    'Data plane',
    'egress',
    choiceValue('eni', 'node'),
    'eni',
    "How packets to outside the VPC leave: by the Pod's ENI, or by the primary interface with the node's address.",
  ),
  fastPath: option(
    'Data plane',
    'fast-path',
    choiceValue('off', 'flowtable', 'bpf', 'auto'),
    'off',
    'Forward packets of flows that the kernel decided on before without asking it for each. bpf: two programs on ENIs and on the links of Pods, kernel 5.12 and later; flowtable: a flowtable of nftables, which follows a flow until its connection or its links go; auto: bpf where the kernel takes them; off: every packet takes the way of the kernel. Where it cannot be done the agent starts without it, and says why.',
  ),
  primaryInterface: option(
    'Data plane',
    'primary-interface',
    interfaceValue,
    '',
    "The node's own interface; '' takes the one that has the Node's InternalIP, else the one of the last plan, else the device of the default route.",
  ),
  defaultNetwork: option(
    'Data plane',
    'default-network',
    choiceValue('tke-route-eni', 'tke-bridge'),
    'tke-route-eni',
    "Network of Pods whose annotation names none: an address of a shared ENI, or one of the node's podCIDR on the bridge. Must equal the webhook's. Takes effect for new Pods.",
  ),
  delegateConfDir: option(
    'Data plane',
    'delegate-conf-dir',
    pathValue(true),
    '',
    "Folder of the host with CNI configurations of other networks. A Pod whose annotation names one of them gets it: tke-route-eni calls the plugins on the host. '' serves the agent's networks only.",
  ),
  podCidrs: option(
    'Data plane',
    'pod-cidr',
    cidrsValue,
    '',
    "Networks of GlobalRoute Pods on this node; '' takes spec.podCIDR of the Node where --supply-source is cluster.",
  ),
  grWiring: option(
    'Data plane',
    'gr-wiring',
    choiceValue('bridge', 'routed'),
    'bridge',
    'How GlobalRoute Pods are wired. bridge: ports of --gr-bridge; routed: a route for each Pod, as Pods of a shared ENI. Takes effect for new Pods.',
  ),
  grBridge: option('Data plane', 'gr-bridge', bridgeValue, BRIDGE_NAME, 'Name of the bridge of GlobalRoute Pods.'),
  grHostLocalDir: option(
    'Data plane',
    'gr-host-local-dir',
    pathValue(true),
    '/var/lib/cni/networks/tke-bridge',
    "Folder on the host in which the plugin host-local of the product's network tke-bridge reserves addresses. Its Pods are taken over, and addresses of GlobalRoute Pods are reserved there too, so that the product could serve the node again; '' does neither.",
  ),
  grMasquerade: option(
    'Data plane',
    'gr-masquerade',
    choiceValue('auto', 'true', 'false'),
    'auto',
    "Give packets of GlobalRoute Pods that leave the private ranges and the VPC the node's address. auto: unless ip-masq-agent does it.",
  ),
  grMtu: option(
    'Data plane',
    'gr-mtu',
    mtuValue,
    '0',
    'MTU of the bridge and of the links of GlobalRoute Pods in bytes; 0 takes that of the primary interface.',
  ),
  vpcCidrs: option(
    'Data plane',
    'vpc-cidr',
    cidrsValue,
    '',
    "Networks of the VPC. An ENI is taken in these, in the private ranges, and in the /16 (IPv6: /56) around the node's own addresses. Also what counts as inside the VPC for --egress=node: name all then; '' takes the subnets of the ENIs.",
  ),
  serviceCidrs: option(
    'Data plane',
    'service-cidrs',
    cidrsValue,
    '',
    "Networks of Services. Pods with a whole ENI (tke-direct-eni) reach them through the node, where kube-proxy's rules are; '' reads them from the cluster: ServiceCIDR objects, or kubeadm's ConfigMap.",
  ),
  nodePort: option(
    'Data plane',
    'nodeport',
    switchValue,
    'true',
    'Lead answers of NodePort connections back by the interface that they came in by.',
  ),
  mtu: option('Data plane', 'mtu', mtuValue, '0', "MTU of Pod links in bytes; 0 takes the ENI's own."),

  repairIntervalMs: option(
    'Times',
    'repair-interval',
    durationValue(SECOND_MS, HOUR_MS),
    '30s',
    'How often the kernel is compared with the plan even when nothing was notified.',
  ),
  gcIntervalMs: option(
    'Times',
    'gc-interval',
    durationValue(SECOND_MS, HOUR_MS),
    '60s',
    'How often leases are compared with the sandboxes of the runtime.',
  ),

  ...observabilityOptions('127.0.0.1:61680'),
} as const;

/** The settings that the agent runs with. Frozen. */
export type AgentConfig = SettingsOf<typeof OPTIONS>;
