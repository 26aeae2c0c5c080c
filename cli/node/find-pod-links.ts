import { leaseKey } from '../../agent/journal/lease.ts';
import { parseHostVethAlias } from '../../dataplane/host-veth-name.ts';
import type { LinkMessage } from '../../netlink/link-message.ts';
import { ifKnown, known, unknown } from './known.ts';
import type { AgentFacts, Known, PodFacts } from './node-facts.ts';

/** A Pod interface before its inside was looked at. */
export type PodLink = Omit<PodFacts, 'inside'>;

/**
 * Finds the Pod interfaces of the node: one for each lease, or, without a journal, one for each host veth that bears our
 * alias. Ordered by key.
 */
export function findPodLinks(agent: Known<AgentFacts>, links: readonly LinkMessage[]): readonly PodLink[] {
  const journal = ifKnown(agent)?.journal;
  const found =
    journal !== undefined
      ? journal.leases.map((lease): PodLink => {
          const key = leaseKey(lease.containerId, lease.ifName);
          return { key, lease: known(lease), hostIfindex: vethOf(links, key, lease.hostVeth)?.ifindex };
        })
      : links.flatMap((link): readonly PodLink[] => {
          const key = keyOfLink(link);
          return key === undefined ? [] : [{ key, lease: whyNoLease(agent), hostIfindex: link.ifindex }];
        });
  return [...found].sort((a, b) => (a.key < b.key ? -1 : 1));
}

/** Reads whose host veth a link is by its alias; undefined for a link that is not ours. */
export function keyOfLink({ ifalias }: LinkMessage): string | undefined {
  const owner = parseHostVethAlias(ifalias ?? '');
  return owner === undefined ? undefined : leaseKey(owner.containerId, owner.ifName);
}

/** By alias, as DEL does: an index or a name may have become another link's. A veth without an alias yet shows the lease's MAC. */
function vethOf(
  links: readonly LinkMessage[],
  key: string,
  recorded: { readonly mac: string; readonly name: string } | undefined,
): LinkMessage | undefined {
  return (
    links.find((link) => keyOfLink(link) === key) ??
    links.find(({ address, ifalias }) => address === recorded?.mac && (ifalias ?? '') === '')
  );
}

function whyNoLease(agent: Known<AgentFacts>): Known<never> {
  return agent.kind === 'unknown'
    ? unknown(`no journal: ${agent.why}`, agent.next)
    : unknown('the journal has no such lease', 'tke-eni diff');
}
