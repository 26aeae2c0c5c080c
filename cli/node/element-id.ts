/**
 * Names one thing of a node, equal in explain, graph and findings: 'link:5' (host), 'link:<containerId>/eth0:2' (in a
 * Pod), 'table:4003', 'rule:4:1536:<selector>', 'route:4003:10.0.0.1/32', 'eni:eni-abc', 'pod:<containerId>/<ifName>',
 * 'address:10.0.0.5', 'nft:tke_eni', 'sysctl:net.ipv4.ip_forward', 'cloud:<address>'.
 */
export type ElementId = string;

/** Names a link of the host's namespace, or of the Pod with this lease key. */
export function linkId(ifindex: number, leaseKey?: string): ElementId {
  return leaseKey === undefined ? `link:${ifindex}` : `link:${leaseKey}:${ifindex}`;
}

/** Names a routing table. */
export function tableId(table: number): ElementId {
  return `table:${table}`;
}

/** Names a rule by family, priority and its selectors as `ip rule` prints them. */
export function ruleId(family: 4 | 6, priority: number, selector: string): ElementId {
  return `rule:${family}:${priority}:${selector}`;
}

/** Names a route of the host's namespace. */
export function routeId(table: number, dst: string): ElementId {
  return `route:${table}:${dst}`;
}

/** Names an ENI. */
export function eniId(id: string): ElementId {
  return `eni:${id}`;
}

/** Names a Pod's interface by its lease key, `<containerId>/<ifName>`. */
export function podId(leaseKey: string): ElementId {
  return `pod:${leaseKey}`;
}

/** Names a sysctl of the host's namespace by its dotted name. */
export function sysctlId(name: string): ElementId {
  return `sysctl:${name}`;
}
