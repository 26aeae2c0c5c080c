import type { CatalogueEntry } from './catalogue-entry.ts';

/** Findings about GlobalRoute Pods, whose addresses are of the podCIDR of their node. */
export const BRIDGE_FINDINGS = {
  'bridge-missing': {
    title: 'The bridge of GlobalRoute Pods is missing',
    why: 'No GlobalRoute Pod of this node that was wired to it reaches anything, or is reached.',
    cure: '`tke-eni repair`: it makes the bridge and brings its ports back; find the program that deleted it.',
    severity: 'error',
    isOurs: true,
  },
  'bridge-changed': {
    title: 'The bridge of GlobalRoute Pods is not as planned',
    why: 'Down or without the first address of a block it forwards nothing of the Pods there. In promiscuous mode it delivers what one Pod sends to another by a Service twice. With the address of a former block it keeps packets here that are for the next node of the block.',
    cure: '`tke-eni repair`; find the program that changes it.',
    severity: 'error',
    isOurs: true,
  },
  'bridge-port-changed': {
    title: "A GlobalRoute Pod's host interface is no port of the bridge, or one with other properties",
    why: 'Outside the bridge the Pod is cut off. Without hairpin it does not reach itself by the address of a Service. Isolated, locked, with proxy_arp, or without learning or flooding, it does not reach other Pods of the bridge.',
    cure: '`tke-eni repair`, or `ip link set <interface> master cbr0` and `ip link set <interface> type bridge_slave hairpin on`.',
    severity: 'error',
    isOurs: true,
  },
  'pod-cidr-changed': {
    title: 'Pods have addresses of a former podCIDR of the node',
    why: 'The Node was deleted and registered again, and got another podCIDR. The VPC leads the former one to another node, or nowhere: these Pods reach nothing outside of this node.',
    cure: 'Delete these Pods: the next ones get addresses of the present podCIDR.',
    severity: 'warning',
    isOurs: false,
  },
  'pod-cidr-missing': {
    title: 'The node has no podCIDR, and its default network is tke-bridge',
    why: 'Pods that name no network get none: their ADDs fail with code 11 and are repeated. Pods of ENIs are not concerned.',
    cure: 'Have ipamd (`--allocate-node-cidrs`) or kube-controller-manager give the Node a podCIDR; `tke-eni cluster` shows whether blocks are left.',
    severity: 'error',
    isOurs: false,
  },
  'pod-cidr-overlap': {
    title: 'The podCIDR of the node overlaps another network',
    why: 'Its Pods and the hosts or Services of the other network have the same addresses: packets for one go to the other.',
    cure: 'Choose a `--cluster-cidr` outside of the VPC, the Services and networks of the node; then drain the node, delete its Node, and let it register again.',
    severity: 'error',
    isOurs: false,
  },
  'bridge-foreign-port': {
    title: 'The bridge of GlobalRoute Pods has ports that are not of our Pods',
    why: 'Another bridge plugin wired Pods to it, with addresses that the agent has no record of. Unless host-local recorded the address, the agent can give it to another Pod.',
    cure: 'Restart the agent: it takes over Pods of bridge and host-local when it starts (docs/hybrid.md). Or drain the node.',
    severity: 'warning',
    isOurs: false,
  },
  'host-local-left': {
    title: 'host-local records addresses for sandboxes that the agent has no lease of',
    why: 'The agent takes Pods of host-local over when it starts, and gives no address that only a file has. A file whose sandbox is gone keeps the address from all Pods until the agent has proof of that; two owners of one address cut both off.',
    cure: 'Restart the agent where the sandbox lives; delete the file from /var/lib/cni/networks/tke-bridge where `crictl pods` lacks its sandbox. docs/hybrid.md says how the agent takes over.',
    severity: 'warning',
    isOurs: false,
  },
  'gr-masquerade': {
    title: 'Packets of GlobalRoute Pods to outside of the VPC are masqueraded by no program, or by two',
    why: 'Without masquerade they leave with an address to which no route leads back. With two programs the first one decides, and the exceptions of the other one are not in force.',
    cure: 'Run ip-masq-agent, or the agent with `--gr-masquerade=auto`; not ip-masq-agent beside `--gr-masquerade=true`.',
    severity: 'warning',
    isOurs: false,
  },
} as const satisfies Readonly<Record<string, CatalogueEntry>>;
