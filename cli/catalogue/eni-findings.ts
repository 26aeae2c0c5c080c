import type { CatalogueEntry } from './catalogue-entry.ts';

/** ENIs, the primary interface and their MTU. */
export const ENI_FINDINGS = {
  'eni-down': {
    title: 'An ENI is down',
    why: 'Every Pod of it is cut off, and the kernel has removed its routes.',
    cure: '`tke-eni repair`; look for who took it down: NetworkManager, networkd, cloud-init.',
    severity: 'error',
    isOurs: true,
  },
  'eni-no-carrier': {
    title: 'An ENI is up and has no carrier',
    why: 'Nothing leaves or arrives by it: the cloud has taken the port away, or is still attaching it.',
    cure: 'Look at the ENI in the console; detach and attach it if it stays so.',
    severity: 'error',
    isOurs: false,
  },
  'eni-detached': {
    title: 'An ENI of the supply is not on this node',
    why: 'Its Pods are cut off.',
    cure: 'Look at the ENI in the console and at `kubectl describe nec`; ipamd attaches what the supply names, Pods of an ENI that is gone must be deleted.',
    severity: 'error',
    isOurs: false,
  },
  'eni-without-address': {
    title: 'An ENI does not have its primary address',
    why: "Without any IPv4 address on the interface loose rp_filter drops what comes in, and the node has no source address for it; when the last address goes the kernel removes the ENI's routes.",
    cure: '`tke-eni repair`.',
    severity: 'error',
    isOurs: true,
  },
  'eni-foreign-address': {
    title: 'An ENI has an address that the supply does not give it',
    why: "A program of the host configures it (DHCP, cloud-init): connected and default routes that come with it send the node's packets by the wrong interface.",
    cure: 'Keep that program off the ENI: see `networkd`, `network-manager`, `cloud-init-hotplug`; then `ip address del`.',
    severity: 'warning',
    isOurs: false,
  },
  'eni-connected-route': {
    title: 'The main table has a connected or default route by an ENI',
    why: "The node's own packets to that subnet leave by the ENI with the primary address and the VPC drops them: kubelet loses Pods and peers of the subnet.",
    cure: '`ip route del`; keep DHCP off the ENI: see `networkd`, `network-manager`, `cloud-init-hotplug`.',
    severity: 'error',
    isOurs: false,
  },
  'eni-not-ready': {
    title: 'The agent could not set an ENI up',
    why: 'Its addresses are not given to Pods.',
    cure: "See the reason; `tke-eni enis` and the agent's log have more.",
    severity: 'warning',
    isOurs: false,
  },
  'eni-renamed': {
    title: 'The interface of an ENI has another name than the agent recorded',
    why: 'Rules by name, rp_filter settings and firewall rules of the old name do not hold.',
    cure: '`tke-eni repair`; pin names by MAC in a systemd .link file.',
    severity: 'warning',
    isOurs: true,
  },
  'mtu-mismatch': {
    title: 'Two ends of a path have different MTUs',
    why: 'Small packets pass and large ones are lost where path MTU discovery is filtered: connections open and then hang.',
    cure: 'Set the same MTU on the ENI, the host interface and the Pod; `tke-eni repair` for ours.',
    severity: 'warning',
    isOurs: true,
  },
  'mtu-path': {
    title: "An ENI's MTU is not the primary interface's",
    why: 'NodePort and Service traffic crosses both; with the smaller one unknown to the sender large packets are lost or answered with ICMP.',
    cure: 'Give both the MTU of the VPC (1500, or 8500 where the instance type has jumbo frames).',
    severity: 'warning',
    isOurs: false,
  },
  'default-routes': {
    title: 'The node has several default routes, or its default route leaves by an ENI',
    why: "The node's own packets may leave by an interface that does not have their address; a change of the order moves every connection.",
    cure: 'Keep DHCP off the ENIs; one default route, by the primary interface.',
    severity: 'warning',
    isOurs: false,
  },
} as const satisfies Readonly<Record<string, CatalogueEntry>>;
