import { TABLE_ENI_BASE } from '../../../dataplane/numbers.ts';
import type { LinkMessage } from '../../../netlink/link-message.ts';
import type { EniFacts } from '../../node/find-enis.ts';
import { podAddresses, podTitle } from '../../node/find-pod.ts';
import { ifKnown } from '../../node/known.ts';
import type { NodeFacts, PodFacts } from '../../node/node-facts.ts';

/** A Pod's interface as the drawing shows it: joined from journal and kernel. */
export type PodView = {
  readonly pod: PodFacts;
  /** `namespace/name`, or its container id. */
  readonly title: string;
  readonly ips: readonly string[];
  /**
   * Table of the ENI that the Pod's addresses belong to; undefined where neither lease nor link group identifies it.
   */
  readonly eniTable: number | undefined;
  readonly veth: LinkMessage | undefined;
  /** True for a GlobalRoute Pod: by its lease, or as a port of a bridge. */
  readonly isGr: boolean;
};

/** Builds the views of all Pods, in the order of their names. */
export function buildPodViews(facts: NodeFacts, enis: readonly EniFacts[]): readonly PodView[] {
  const links = new Map(facts.host.links.map((link) => [link.ifindex, link]));
  return facts.pods
    .map((pod): PodView => {
      const veth = pod.hostIfindex === undefined ? undefined : links.get(pod.hostIfindex);
      const leased = ifKnown(pod.lease)?.eniId;
      const group = veth !== undefined && veth.group > TABLE_ENI_BASE ? veth.group : undefined;
      const eniTable = enis.find(({ eniId }) => eniId !== undefined && eniId === leased)?.table ?? group;
      const lease = ifKnown(pod.lease);
      const isGr = lease === undefined ? links.get(veth?.master ?? 0)?.kind === 'bridge' : lease.block !== undefined;
      return { pod, title: podTitle(pod), ips: podAddresses(facts, pod), eniTable, veth, isGr };
    })
    .sort((a, b) => compareTexts(a.title, b.title) || compareTexts(a.pod.key, b.pod.key));
}

// Not localeCompare: a drawing must not differ with the locale of the terminal. Digits in names compare as numbers.
function compareTexts(a: string, b: string): number {
  const padded = (text: string) => text.replace(/\d+/g, (digits) => digits.padStart(12, '0'));
  const [left, right] = [padded(a), padded(b)];
  return left < right ? -1 : left > right ? 1 : 0;
}
