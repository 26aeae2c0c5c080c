import { createHash } from 'node:crypto';

/** Prefix of all our host veths. */
const PREFIX = 'eni';

/** 3 + 11 = 14 bytes, one less than IFNAMSIZ allows: the product's length. */
const HASH_DIGITS = 11;

/** What a host veth is named after. The Pod's name is missing when the runtime gives no K8S_* arguments. */
export type HostVethOwner = {
  readonly containerId: string;
  readonly ifName: string;
  readonly podNamespace?: string;
  readonly podName?: string;
};

/**
 * Returns the name a host veth should have: the product's (from "namespace.pod") for the eth0 of a named Pod,
 * else the one from "containerid.ifname".
 */
export function hostVethName(owner: HostVethOwner): string {
  const { podNamespace, podName } = owner;
  if (owner.ifName !== 'eth0' || !podNamespace || !podName) return hostVethFallbackName(owner);
  return named(`${podNamespace}.${podName}`);
}

/** Returns the name that no other sandbox can want: for a Pod whose old sandbox still lives under the product's name. */
export function hostVethFallbackName(owner: HostVethOwner): string {
  return named(`${owner.containerId}.${owner.ifName}`);
}

/** Returns the IFLA_IFALIAS of a host veth. With it a lease can be rebuilt from the kernel alone. */
export function hostVethAlias(owner: Pick<HostVethOwner, 'containerId' | 'ifName'>): string {
  return `tke-eni/${owner.containerId}/${owner.ifName}`;
}

/** Reads an alias back; undefined for one that is not ours. */
export function parseHostVethAlias(
  alias: string,
): { readonly containerId: string; readonly ifName: string } | undefined {
  const match = /^tke-eni\/([^/]+)\/([^/]+)$/.exec(alias);
  const [, containerId, ifName] = match ?? [];
  return containerId === undefined || ifName === undefined ? undefined : { containerId, ifName };
}

/** Returns the name of the Pod's end of the link beside a whole ENI. */
export function sideName(ifName: string): string {
  return ifName === 'eth0' ? 'veth0' : `v${createHash('sha1').update(ifName).digest('hex').slice(0, HASH_DIGITS)}`;
}

/**
 * Returns the IFLA_IFALIAS of an ENI's interface while a Pod has it. It survives the way between namespaces, so that an
 * interface which came back by itself, when its Pod's namespace died, still says what it was called.
 */
export function nicAlias(owner: Pick<HostVethOwner, 'containerId' | 'ifName'>, hostName: string): string {
  return `tke-eni-nic/${owner.containerId}/${owner.ifName}/${hostName}`;
}

/** Reads the alias of an ENI's interface back; undefined for one that is not ours. */
export function parseNicAlias(
  alias: string,
): { readonly containerId: string; readonly ifName: string; readonly hostName: string } | undefined {
  const [, containerId, ifName, hostName] = /^tke-eni-nic\/([^/]+)\/([^/]+)\/([^/]+)$/.exec(alias) ?? [];
  if (containerId === undefined || ifName === undefined || hostName === undefined) return undefined;
  return { containerId, ifName, hostName };
}

/** What is found under the wanted name in the host's namespace. */
export type FoundLink = { readonly ifalias?: string; readonly mac?: string; readonly kind?: string };

/**
 * Decides what a name that is taken means. Only a leftover of the very same attachment may be replaced: it bears our alias, or,
 * when the agent died before it could write one, no alias and the MAC that this attachment's lease had chosen.
 */
export function decideTakenName(
  found: FoundLink,
  wanted: { readonly alias: string; readonly mac: string },
): 'replace' | 'fallback' {
  if (found.kind !== undefined && found.kind !== 'veth') return 'fallback';
  if (found.ifalias !== undefined && found.ifalias !== '')
    return found.ifalias === wanted.alias ? 'replace' : 'fallback';
  return found.mac === wanted.mac ? 'replace' : 'fallback';
}

function named(text: string): string {
  return PREFIX + createHash('sha1').update(text).digest('hex').slice(0, HASH_DIGITS);
}
