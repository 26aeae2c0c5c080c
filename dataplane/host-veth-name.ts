import { createHash } from 'node:crypto';

/** Prefix of all our host veths. */
const PREFIX = 'eni';

/** 3 + 11 = 14 bytes, one less than IFNAMSIZ allows: the length in Tencent's product. */
const HASH_DIGITS = 11;

/**
 * The sandbox that a host veth is named after. The Pod's name is missing when the runtime passes no K8S_* arguments.
 */
type HostVethOwner = {
  readonly containerId: string;
  readonly ifName: string;
  readonly podNamespace?: string;
  readonly podName?: string;
};

/**
 * Returns the name of a host veth: that of Tencent's product (from "namespace.pod") for the eth0 of a named Pod, else
 * one from "containerid.ifname".
 */
export function hostVethName(owner: HostVethOwner): string {
  const { podNamespace, podName } = owner;
  if (owner.ifName !== 'eth0' || !podNamespace || !podName) return hostVethFallbackName(owner);
  return named(`${podNamespace}.${podName}`);
}

/** Returns a name that is unique to the sandbox: for a Pod whose old sandbox still has a veth with the first name. */
export function hostVethFallbackName(owner: HostVethOwner): string {
  return named(`${owner.containerId}.${owner.ifName}`);
}

/** Reports whether a link has a name of the form that all our host veths have. */
export function isHostVethName(ifname: string): boolean {
  return /^eni[0-9a-f]{11}$/.test(ifname);
}

/** Returns the IFLA_IFALIAS of a host veth. It allows to rebuild a lease from the kernel alone. */
export function hostVethAlias(owner: Pick<HostVethOwner, 'containerId' | 'ifName'>): string {
  return `tke-eni/${owner.containerId}/${owner.ifName}`;
}

/** Parses an alias; undefined for one that is not ours. */
export function parseHostVethAlias(
  alias: string,
): { readonly containerId: string; readonly ifName: string } | undefined {
  const match = /^tke-eni\/([^/]+)\/([^/]+)$/.exec(alias);
  const [, containerId, ifName] = match ?? [];
  return containerId === undefined || ifName === undefined ? undefined : { containerId, ifName };
}

/** Returns the name of the Pod's end of the side link, which a Pod with an exclusive ENI has. */
export function sideName(ifName: string): string {
  return ifName === 'eth0' ? 'veth0' : `v${createHash('sha1').update(ifName).digest('hex').slice(0, HASH_DIGITS)}`;
}

/**
 * Returns the IFLA_IFALIAS of an ENI's interface while a Pod has it. It survives moves between namespaces: so an interface that
 * the kernel moved back, when its Pod's namespace was deleted, is recognized. The former name is for people and for older
 * agents: nothing relies on it, as a Pod with NET_ADMIN can write the alias.
 */
export function nicAlias(owner: Pick<HostVethOwner, 'containerId' | 'ifName'>, hostName: string): string {
  return `tke-eni-nic/${owner.containerId}/${owner.ifName}/${hostName}`;
}

/** Parses the alias of an ENI's interface; undefined for one that is not ours. */
export function parseNicAlias(alias: string): { readonly containerId: string; readonly ifName: string } | undefined {
  const [, containerId, ifName] = /^tke-eni-nic\/([^/]+)\/([^/]+)\/[^/]+$/.exec(alias) ?? [];
  return containerId === undefined || ifName === undefined ? undefined : { containerId, ifName };
}

/** The link that has the wanted name in the host's namespace. */
type FoundLink = { readonly ifalias?: string; readonly mac?: string; readonly kind?: string };

/**
 * Decides what to do about a name that is in use. Only a leftover of the same attachment may be replaced: it has our
 * alias or, when the agent ended before it could write one or another program wrote its own over it, the random MAC of
 * this attachment's lease. The alias of another attachment of ours is never overruled.
 */
export function decideTakenName(
  found: FoundLink,
  wanted: { readonly alias: string; readonly mac: string },
): 'replace' | 'fallback' {
  if (found.kind !== undefined && found.kind !== 'veth') return 'fallback';
  if (found.ifalias === wanted.alias) return 'replace';
  if (parseHostVethAlias(found.ifalias ?? '') !== undefined) return 'fallback';
  return found.mac === wanted.mac ? 'replace' : 'fallback';
}

function named(text: string): string {
  return PREFIX + createHash('sha1').update(text).digest('hex').slice(0, HASH_DIGITS);
}
