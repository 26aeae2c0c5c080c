import { hex } from './eni-mark.ts';
import { FAST_PATH_MARK } from './numbers.ts';

/** Bits of the status of a connection. @see uapi/linux/netfilter/nf_conntrack_common.h ip_conntrack_status */
export const CT_STATUS = {
  assured: 0x4,
  natSource: 0x10,
  natDestination: 0x20,
  sequenceAdjust: 0x40,
  helper: 0x2000,
} as const;

const { assured, natSource, natDestination, sequenceAdjust, helper } = CT_STATUS;
/** Matches packets of a connection that may be learned by its status. */
const IS_LEARNABLE = `ct status and ${hex(assured | natSource | natDestination | sequenceAdjust | helper)} == ${hex(assured)}`;

/** The links that have the fast path's programs: those of Pods by their groups, ENIs by their names. */
type LearningLinks = { readonly groups: readonly number[]; readonly ifnames: readonly string[] };

/**
 * Renders the lines of the chain that marks packets whose flow the fast path may learn. It comes after the chains of others
 * that may drop a packet (filter, 0). The connection is assured, and its packets need nothing that only the kernel does to
 * them: no other addresses, no helper that reads them, no other sequence numbers. They leave by a link that learns: of any
 * other one only a copy could be learned, that another program sends to a link of ours. All others lose the bit, whoever set
 * it: a translated packet must not be learned.
 */
export function learnChainLines({ groups, ifnames }: LearningLinks): readonly string[] {
  const mark = `${IS_LEARNABLE} ${IS_LEARNED} meta mark set meta mark or ${BIT} return`;
  return [
    'type filter hook forward priority filter + 10; policy accept;',
    ...(groups.length === 0 ? [] : [`oifgroup { ${groups.join(', ')} } ${mark}`]),
    ...(ifnames.length === 0 ? [] : [`oifname { ${ifnames.map((ifname) => `"${ifname}"`).join(', ')} } ${mark}`]),
    CLEAR,
  ];
}

const BIT = hex(FAST_PATH_MARK);
/** Behind every other chain; NF_IP_PRI_LAST is one more. */
const LAST = 0x7ffffffe;
/** Matches packets of a connection that is not marked as one that is never learned. */
export const IS_LEARNED = `ct mark and ${BIT} == 0x0`;
const CLEAR = `meta mark set meta mark and ${hex(~FAST_PATH_MARK >>> 0)}`;

/**
 * Renders the lines of the chain behind connection tracking that keeps a connection which ends from being learned again: one
 * whose FIN it took. A copy that the fast path sends ahead of a RST has no hop left, and is for connection tracking alone.
 */
export function closingChainLines(): readonly string[] {
  const fin = `tcp flags & fin == fin`;
  return [
    'type filter hook prerouting priority raw + 101; policy accept;',
    `${fin} ${IS_LEARNABLE} ct mark set ct mark or ${BIT}`,
    ...['ip ttl', 'ip6 hoplimit'].map((hops) => `${fin} meta mark and ${BIT} == ${BIT} ${hops} 0 drop`),
  ];
}

/**
 * Renders the lines of the chain behind all others that clears the mark of packets that may not be learned: another program may have
 * set this bit since our chain in the hook `forward`. What the node itself sends keeps it.
 */
export function leavingMarkLines(): readonly string[] {
  const isMarked = `meta mark and ${BIT} == ${BIT}`;
  return [
    `type filter hook postrouting priority ${LAST}; policy accept;`,
    `${isMarked} ${IS_LEARNABLE} ${IS_LEARNED} return`,
    `${isMarked} fib saddr type != local ${CLEAR}`,
  ];
}

/** Marks connections of IPVS: their packets leave by the node's output though their source is not the node. */
export const MARK_BALANCED = `fib saddr type != local ct mark set ct mark or ${BIT}`;

/**
 * Renders the lines of the chain for what the kernel sends from the node's output and must not be learned: packets of IPVS, which
 * translates addresses without a word in the connection's status, and copies (`dup`, the target TEE), which have no connection and
 * go where their flow does not.
 */
export function sentChainLines(): readonly string[] {
  return [
    'type filter hook output priority filter + 10; policy accept;',
    MARK_BALANCED,
    `ct state untracked meta mark and ${BIT} == ${BIT} ${CLEAR}`,
  ];
}
