/**
 * Id of one element of a node, the same in explain, graph and findings: 'link:5' (host), 'link:<containerId>/eth0:2'
 * (in a Pod), 'table:4003', 'rule:4:1536:<selector>', 'route:4003:10.0.0.1/32', 'eni:eni-abc',
 * 'pod:<containerId>/<ifName>', 'address:10.0.0.5', 'nft:tke_eni', 'sysctl:net.ipv4.ip_forward', 'cloud:<address>',
 * 'listener:lbl-abc', 'target:<address>:<port>'.
 */
export type ElementId = string;

/** Returns the id of a link of the host's namespace, or of the Pod with this lease key. */
export function linkId(ifindex: number, leaseKey?: string): ElementId {
  return leaseKey === undefined ? `link:${ifindex}` : `link:${leaseKey}:${ifindex}`;
}

/** Returns the id of a routing table. */
export function tableId(table: number): ElementId {
  return `table:${table}`;
}

/** Returns the id of a rule: its family, priority and selectors as `ip rule` prints them. */
export function ruleId(family: 4 | 6, priority: number, selector: string): ElementId {
  return `rule:${family}:${priority}:${selector}`;
}

/** Returns the id of a route of the host's namespace. */
export function routeId(table: number, dst: string): ElementId {
  return `route:${table}:${dst}`;
}

/** Returns the id of an ENI. */
export function eniId(id: string): ElementId {
  return `eni:${id}`;
}

/** Returns the id of a Pod's interface, by its lease key `<containerId>/<ifName>`. */
export function podId(leaseKey: string): ElementId {
  return `pod:${leaseKey}`;
}

/** Returns the id of a sysctl of the host's namespace, by its dotted name. */
export function sysctlId(name: string): ElementId {
  return `sysctl:${name}`;
}
