import { familyOf, type Lease } from '../../agent/journal/lease.ts';
import { CliError } from '../command/cli-error.ts';
import { ifKnown } from './known.ts';
import type { NodeFacts, PodFacts } from './node-facts.ts';

/** Minimum length of a container id's prefix: a shorter one is too likely to be something else. */
const MIN_ID_PREFIX = 4;
/** As many characters of a container id as `crictl pods` shows. */
const SHOWN_ID_LENGTH = 13;
const MAX_CANDIDATES = 8;

/**
 * Finds a Pod by any of its names: `namespace/name`, name, address, container id (or at least its first 4 characters)
 * or name of the host veth.
 * @throws CliError NOT_FOUND; USAGE with the candidates when several match
 */
export function findPod(facts: Pick<NodeFacts, 'host' | 'pods' | 'agent'>, name: string): PodFacts {
  const found = candidates(facts, name);
  const [pod] = found;
  if (pod === undefined) {
    const agent = facts.agent.kind === 'unknown' ? ` (names are not known: ${facts.agent.why})` : '';
    const next = `tke-eni pods lists the ${facts.pods.length} of this node; kubectl get pod -o wide shows where a Pod runs`;
    throw new CliError('NOT_FOUND', `no Pod of this node is called, or has, ${JSON.stringify(name)}${agent}`, next);
  }
  if (found.length > 1) {
    const shown = found.slice(0, MAX_CANDIDATES).map((each) => `${podTitle(each)} (${each.key})`);
    const more = found.length > MAX_CANDIDATES ? `, and ${found.length - MAX_CANDIDATES} more` : '';
    const message = `${JSON.stringify(name)} fits several Pods: ${shown.join(', ')}${more}`;
    throw new CliError('USAGE', message, 'say namespace/name, the address, or more of the container id');
  }
  return pod;
}

/** Formats the name of a Pod for people: `namespace/name`, or its container id where the name is not known. */
export function podTitle({ key, lease }: Pick<PodFacts, 'key' | 'lease'>): string {
  const recorded = ifKnown(lease);
  const ifName = key.slice(key.indexOf('/') + 1);
  const suffix = ifName === 'eth0' ? '' : ` ${ifName}`;
  return recorded !== undefined && recorded.podName !== ''
    ? `${recorded.podNamespace}/${recorded.podName}${suffix}`
    : `${key.slice(0, Math.min(SHOWN_ID_LENGTH, key.indexOf('/')))}${suffix}`;
}

/**
 * Returns a Pod's addresses, IPv4 first: those of its lease; without a lease those inside the Pod, or those routed to
 * its veth.
 */
export function podAddresses({ host }: Pick<NodeFacts, 'host'>, pod: PodFacts): readonly string[] {
  const lease: Lease | undefined = ifKnown(pod.lease);
  if (lease !== undefined) return lease.addresses.map(({ ip }) => ip);
  const ifName = pod.key.slice(pod.key.indexOf('/') + 1);
  const inside = ifKnown(pod.inside);
  const link = inside?.links.find(({ ifname }) => ifname === ifName);
  const inPod = (inside?.addresses ?? [])
    .filter(({ ifindex, scope }) => ifindex === link?.ifindex && scope === 0)
    .map(({ local, address }) => local ?? address);
  const routed = host.routes
    .filter(({ oif, dst, type }) => oif !== undefined && oif === pod.hostIfindex && dst !== undefined && type === 1)
    .flatMap(({ dst = '' }) => (/\/(32|128)$/.test(dst) ? [dst.slice(0, dst.indexOf('/'))] : []));
  return [...new Set(inPod.length > 0 ? inPod : routed)].sort((a, b) => familyOf(a) - familyOf(b));
}

function candidates(facts: Pick<NodeFacts, 'host' | 'pods'>, name: string): readonly PodFacts[] {
  const matchers: readonly ((pod: PodFacts) => boolean)[] = [
    ({ key }) => key === name || key.slice(0, key.indexOf('/')) === name,
    ({ lease }) => isNamed(ifKnown(lease), name),
    (pod) => podAddresses(facts, pod).includes(name.toLowerCase()),
    ({ hostIfindex }) => facts.host.links.some(({ ifindex, ifname }) => ifindex === hostIfindex && ifname === name),
    ({ key }) => name.length >= MIN_ID_PREFIX && key.startsWith(name.toLowerCase()),
  ];
  for (const fits of matchers) {
    const found = facts.pods.filter(fits);
    // The previous sandbox of a Pod may still be in teardown: the user means the active one.
    const active = found.filter(({ lease }) => ifKnown(lease)?.state === 'active');
    if (found.length > 0) return active.length === 1 ? active : found;
  }
  return [];
}

function isNamed(lease: Lease | undefined, name: string): boolean {
  if (lease === undefined || lease.podName === '') return false;
  return name.includes('/') ? `${lease.podNamespace}/${lease.podName}` === name : lease.podName === name;
}
