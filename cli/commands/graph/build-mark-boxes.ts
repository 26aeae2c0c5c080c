import { eniMark, hex } from '../../../dataplane/eni-mark.ts';
import { DEFAULT_ENI_MARK_MASK, NFT_TABLE, PRIORITY, RTPROT_TKE_ENI } from '../../../dataplane/numbers.ts';
import type { EniFacts } from '../../../inspection/node/find-enis.ts';
import { ifKnown } from '../../../inspection/node/known.ts';
import type { NodeFacts } from '../../../inspection/node/node-facts.ts';
import { type GraphNode, NODE_GROUP } from './graph.ts';

/** Element id of the nftables table of tke-eni. */
const NFT_ELEMENT = `nft:${NFT_TABLE}`;

/**
 * Builds the box of the nftables chain that marks packets of an ENI's Pods; undefined where the node routes without
 * marks.
 */
export function buildMarkBox(eni: EniFacts, group: string, facts: NodeFacts): GraphNode | undefined {
  if (eni.slot === undefined || ruleModeOf(facts) === 'per-pod') return undefined;
  const { nft } = facts.host;
  const text = nft.kind === 'known' ? nft.value.ourTable : undefined;
  const chain = chainOf(text ?? '', `eni_${eni.table}`);
  const isThere = text !== undefined && chain.length > 0;
  return {
    // No '@' in ids: the form `a:b@c` looks like credentials, which are removed from a bundle.
    id: `${NFT_ELEMENT}~${group}`,
    kind: 'mark',
    lane: 'marks',
    group,
    title: `mark ${hex(eniMark(eni.slot, maskOf(facts)))}`,
    lines: [
      `link group ${eni.table}`,
      nft.kind === 'unknown' ? 'not read' : isThere ? `chain eni_${eni.table}` : 'no such chain',
    ],
    owner: 'ours',
    state: nft.kind === 'unknown' ? 'unknown' : isThere ? 'ok' : 'missing',
    elements: [NFT_ELEMENT],
    facts: [
      nft.kind === 'unknown'
        ? { title: 'nftables', rows: [`not read: ${nft.why}`, nft.next] }
        : {
            title: `nft chain eni_${eni.table}`,
            rows: isThere ? [...chain, ...chainOf(text, `via_${eni.table}`)] : ['not there'],
          },
    ],
    findings: [],
  };
}

/** Builds the box of the whole nftables table of tke-eni. */
export function buildNftBox({ host }: NodeFacts): GraphNode {
  const text = host.nft.kind === 'known' ? host.nft.value.ourTable : undefined;
  const lines = text?.split('\n') ?? [];
  const chains = lines.filter((line) => /^\s*chain /.test(line)).length;
  return {
    id: NFT_ELEMENT,
    kind: 'mark',
    lane: 'marks',
    group: NODE_GROUP,
    title: `nft inet ${NFT_TABLE}`,
    lines: [host.nft.kind === 'unknown' ? 'not read' : text === undefined ? 'not there' : `${chains} chains`],
    owner: 'ours',
    // A node without nftables runs in per-pod mode and has no table. The findings tell whether a table is missing.
    state: text === undefined ? 'unknown' : 'ok',
    elements: [NFT_ELEMENT],
    facts: [
      {
        title: 'nftables',
        rows:
          host.nft.kind === 'unknown'
            ? [`not read: ${host.nft.why}`, host.nft.next]
            : text === undefined
              ? ['no table of ours']
              : lines,
      },
    ],
    findings: [],
  };
}

/** Returns the rule mode: by the agent's record, or by the rules in the kernel. */
export function ruleModeOf({ agent, host }: NodeFacts): 'compact' | 'per-pod' {
  const record = ifKnown(agent);
  const planned = record === undefined ? undefined : ifKnown(record.node)?.node.ruleMode;
  const recorded = planned ?? record?.journal.ruleMode;
  if (recorded !== undefined) return recorded;
  return host.rules.some(
    ({ priority, protocol, src }) => priority === PRIORITY.fromPod && protocol === RTPROT_TKE_ENI && src !== undefined,
  )
    ? 'per-pod'
    : 'compact';
}

function maskOf({ agent, host }: NodeFacts): number {
  const record = ifKnown(agent)?.node;
  const planned = record === undefined ? undefined : ifKnown(record)?.node.eniMarkMask;
  const ruled = host.rules.find(
    ({ priority, protocol, fwmask }) =>
      priority === PRIORITY.eniMark && protocol === RTPROT_TKE_ENI && fwmask !== undefined,
  )?.fwmask;
  return planned ?? ruled ?? DEFAULT_ENI_MARK_MASK;
}

/** Returns the lines of one chain, its braces included. */
function chainOf(text: string, name: string): readonly string[] {
  const lines = text.split('\n');
  const start = lines.findIndex((line) => line.trim() === `chain ${name} {`);
  if (start < 0) return [];
  const length = lines.slice(start).findIndex((line) => line.trim() === '}');
  return lines.slice(start, length < 0 ? undefined : start + length + 1).map((line) => line.trim());
}
