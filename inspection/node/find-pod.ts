import { UserError } from '../../runtime/user-error.ts';
import type { NodePod } from './join-pods.ts';
import type { NodeFacts } from './node-facts.ts';

/** Minimum length of a container id's prefix: a shorter one is too likely to be something else. */
const MIN_ID_PREFIX = 4;
const MAX_CANDIDATES = 8;

/**
 * Finds a Pod by any of its names: `namespace/name`, name, address, container id (or at least its first 4 characters)
 * or name of the host veth.
 * @param agent says why names are not known, where they are not
 * @throws UserError NOT_FOUND; USAGE with the candidates when several match
 */
export function findPod<T extends NodePod>(pods: readonly T[], agent: NodeFacts['agent'], name: string): T {
  const found = candidates(pods, name);
  const [pod] = found;
  if (pod === undefined) {
    const why = agent.kind === 'unknown' ? ` (names are not known: ${agent.why})` : '';
    const next = `tke-eni pods lists the ${pods.length} of this node; kubectl get pod -o wide shows where a Pod runs`;
    throw new UserError('NOT_FOUND', `no Pod of this node is called, or has, ${JSON.stringify(name)}${why}`, next);
  }
  if (found.length > 1) {
    const shown = found.slice(0, MAX_CANDIDATES).map((each) => `${each.title} (${each.pod.key})`);
    const more = found.length > MAX_CANDIDATES ? `, and ${found.length - MAX_CANDIDATES} more` : '';
    const message = `${JSON.stringify(name)} fits several Pods: ${shown.join(', ')}${more}`;
    throw new UserError('USAGE', message, 'say namespace/name, the address, or more of the container id');
  }
  return pod;
}

function candidates<T extends NodePod>(pods: readonly T[], name: string): readonly T[] {
  const matchers: readonly ((each: NodePod) => boolean)[] = [
    ({ pod, containerId }) => pod.key === name || containerId === name,
    ({ lease }) => isNamed(lease, name),
    ({ ips }) => ips.includes(name.toLowerCase()),
    ({ hostLink }) => hostLink?.ifname === name,
    ({ pod }) => name.length >= MIN_ID_PREFIX && pod.key.startsWith(name.toLowerCase()),
  ];
  for (const fits of matchers) {
    const found = pods.filter(fits);
    // The previous sandbox of a Pod may still be in teardown: the user means the active one.
    const active = found.filter(({ lease }) => lease?.state === 'active');
    if (found.length > 0) return active.length === 1 ? active : found;
  }
  return [];
}

function isNamed(lease: NodePod['lease'], name: string): boolean {
  if (lease === undefined || lease.podName === '') return false;
  return name.includes('/') ? `${lease.podNamespace}/${lease.podName}` === name : lease.podName === name;
}
