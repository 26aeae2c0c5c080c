import { isEmptied, isTaken } from '../../dataplane/decide-inside.ts';
import { unknown } from './known.ts';
import type { NetnsFacts, PodReading } from './node-facts.ts';

/** Asks for the handlers of runtimes by container id; empty when none is known. */
export type ReadHandlers = () => Promise<ReadonlyMap<string, string>>;

/**
 * Makes the inside of each Pod unknown whose addresses and routes a sandbox took out: what its namespace has left says nothing
 * of the Pod. The handlers are asked for once, and only where a Pod without addresses is.
 */
export async function hideTaken(
  pods: readonly PodReading[],
  readHandlers: ReadHandlers | undefined,
): Promise<readonly PodReading[]> {
  const emptied = pods.filter(({ key, inside }) => inside.kind === 'known' && isPodEmptied(key, inside.value));
  if (emptied.length === 0) return pods;
  const handlers = (await readHandlers?.()) ?? new Map<string, string>();
  return pods.map((pod) => {
    const { key, inside } = pod;
    if (inside.kind === 'unknown' || !emptied.includes(pod)) return pod;
    const handler = handlers.get(key.slice(0, key.indexOf('/')));
    if (!isTaken(signsOf(inside.value), linksOf(key, inside.value), handler)) return pod;
    const why = `inside of a sandbox${handler === undefined ? '' : ` by ${handler}`}: not looked at`;
    return { ...pod, inside: unknown(why, 'look at it from inside, as with kubectl exec') };
  });
}

function isPodEmptied(key: string, facts: NetnsFacts): boolean {
  return isEmptied(signsOf(facts), linksOf(key, facts));
}

function signsOf({ packetLinks = [], ...facts }: NetnsFacts) {
  return { ...facts, packetLinks };
}

function linksOf(key: string, { links }: NetnsFacts): readonly number[] {
  const ifName = key.slice(key.indexOf('/') + 1);
  return links.filter(({ ifname }) => ifname === ifName).map(({ ifindex }) => ifindex);
}
