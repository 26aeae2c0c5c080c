import { leaseKey } from '../../agent/journal/lease.ts';
import { parseHostVethAlias } from '../../dataplane/host-veth-name.ts';
import type { LinkMessage } from '../../netlink/link-message.ts';
import { compareTexts } from '../../runtime/compare-texts.ts';
import { ifKnown, known, unknown } from './known.ts';
import type { AgentFacts, Known, PodReading } from './node-facts.ts';

/** A Pod interface without the data from inside the Pod. */
export type PodLink = Omit<PodReading, 'inside'>;

/**
 * Finds the Pod interfaces of the node: one for each lease; without a journal, one for each host veth with an alias of
 * tke-eni. Ordered by key.
 */
export function findPodLinks(agent: Known<AgentFacts>, links: readonly LinkMessage[]): readonly PodLink[] {
  const journal = ifKnown(agent)?.journal;
  const found =
    journal !== undefined
      ? journal.leases.map((lease): PodLink => {
          const key = leaseKey(lease);
          return { key, lease: known(lease), hostIfindex: vethOf(links, key, lease.hostVeth)?.ifindex };
        })
      : links.flatMap((link): readonly PodLink[] => {
          const key = keyOfLink(link);
          return key === undefined ? [] : [{ key, lease: whyNoLease(agent), hostIfindex: link.ifindex }];
        });
  return [...found].sort((a, b) => compareTexts(a.key, b.key));
}

/** Returns the lease key in the alias of a host veth; undefined for a link of another program. */
export function keyOfLink({ ifalias }: LinkMessage): string | undefined {
  const owner = parseHostVethAlias(ifalias ?? '');
  return owner === undefined ? undefined : leaseKey(owner);
}

/**
 * Finds a host veth by its alias, as DEL does: index and name may meanwhile belong to another link. A veth without an
 * alias of ours is found by the lease's MAC.
 */
function vethOf(
  links: readonly LinkMessage[],
  key: string,
  recorded: { readonly mac: string; readonly name: string } | undefined,
): LinkMessage | undefined {
  return (
    links.find((link) => keyOfLink(link) === key) ??
    links.find((link) => link.address === recorded?.mac && keyOfLink(link) === undefined)
  );
}

function whyNoLease(agent: Known<AgentFacts>): Known<never> {
  return agent.kind === 'unknown'
    ? unknown(`no journal: ${agent.why}`, agent.next)
    : unknown('the journal has no such lease', 'tke-eni diff');
}
