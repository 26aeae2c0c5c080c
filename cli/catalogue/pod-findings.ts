import type { CatalogueEntry } from './catalogue-entry.ts';

/** Pods and their interfaces. */
export const POD_FINDINGS = {
  'veth-missing': {
    title: 'A Pod that lives has no host interface',
    why: 'The Pod is cut off.',
    cure: 'Delete the Pod; its interface cannot be made anew under a running container.',
    severity: 'error',
    isOurs: false,
  },
  'veth-leaked': {
    title: 'A host interface of ours belongs to no Pod that lives',
    why: "It holds routes and memory, and with a plain veth pair its Pod address may be another Pod's already.",
    cure: "The agent's collection removes it within minutes; if it stays: `ip link del <name>`.",
    severity: 'warning',
    isOurs: true,
  },
  'veth-down': {
    title: 'The host interface of a Pod is down',
    why: 'The Pod is cut off, and the kernel has removed its host route.',
    cure: '`tke-eni repair`.',
    severity: 'error',
    isOurs: true,
  },
  'veth-mac-changed': {
    title: "The MAC address of a Pod's host interface is not the one the Pod sends to",
    why: 'The Pod has a permanent neighbour entry with the MAC that we gave it; every frame it sends is dropped.',
    cure: '`tke-eni repair`; keep udev away: see `mac-address-policy`.',
    severity: 'error',
    isOurs: true,
  },
  'link-group-wrong': {
    title: 'The host interface of a Pod is in a wrong link group',
    why: 'The link group says by which ENI the Pod leaves: its packets get the mark of another ENI, or none, and the VPC drops them.',
    cure: '`tke-eni repair`.',
    severity: 'error',
    isOurs: true,
  },
  'pod-link-down': {
    title: 'The interface inside a Pod is down',
    why: 'The Pod is cut off.',
    cure: 'Something inside the Pod took it down (it needs NET_ADMIN for that): delete the Pod, or `nsenter -n -t <pid> ip link set eth0 up` and its routes.',
    severity: 'error',
    isOurs: false,
  },
  'pod-address-missing': {
    title: 'A Pod does not have its address',
    why: 'The Pod sends with another address or not at all, and takes no packet to its own.',
    cure: 'Something inside the Pod removed it (it needs NET_ADMIN for that): delete the Pod.',
    severity: 'error',
    isOurs: false,
  },
  'pod-route-missing': {
    title: 'A Pod lacks a route that we gave it',
    why: 'The Pod reaches nothing outside.',
    cure: 'Something inside the Pod removed it: delete the Pod.',
    severity: 'error',
    isOurs: false,
  },
  'pod-unreadable': {
    title: 'The inside of a Pod could not be read',
    why: 'What is wrong there is not seen.',
    cure: 'Run as root on the host; a sandbox that is just ending is no fault.',
    severity: 'info',
    isOurs: false,
  },
  'pod-without-lease': {
    title: 'A sandbox of ours stands in the kernel and not in the journal',
    why: 'Its address is not counted as in use and may be given to a second Pod.',
    cure: 'Restart the agent: it adopts what the kernel says before it serves.',
    severity: 'error',
    isOurs: false,
  },
  'address-two-owners': {
    title: 'Two Pods, or a Pod and an interface of the node, have one address',
    why: 'Answers go to one of them; the other sees connections time out.',
    cure: 'Delete the Pod that the pool does not name (`tke-eni pool`), and keep the output of `tke-eni bundle` for a report.',
    severity: 'error',
    isOurs: false,
  },
  'source-not-ours': {
    title: 'Packets would leave by an ENI that does not have their source address',
    why: 'The VPC checks the source of each packet against the addresses of the ENI and drops others (anti-spoofing).',
    cure: 'Look at the hop before: rule, mark or link group; `tke-eni repair`. If the cloud lost the address, see `eni-detached`.',
    severity: 'error',
    isOurs: true,
  },
} as const satisfies Readonly<Record<string, CatalogueEntry>>;
