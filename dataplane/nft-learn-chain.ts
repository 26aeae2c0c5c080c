import { hex } from './eni-mark.ts';
import { FAST_PATH_MARK } from './numbers.ts';

/** Bits of the status of a connection. @see uapi/linux/netfilter/nf_conntrack_common.h ip_conntrack_status */
const CT_STATUS = {
  assured: 0x4,
  natSource: 0x10,
  natDestination: 0x20,
  sequenceAdjust: 0x40,
  helper: 0x2000,
} as const;

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
  const { assured, natSource, natDestination, sequenceAdjust, helper } = CT_STATUS;
  const mask = hex(assured | natSource | natDestination | sequenceAdjust | helper);
  const mark = `ct status and ${mask} == ${hex(assured)} meta mark set meta mark or ${BIT} return`;
  return [
    'type filter hook forward priority filter + 10; policy accept;',
    ...(groups.length === 0 ? [] : [`oifgroup { ${groups.join(', ')} } ${mark}`]),
    ...(ifnames.length === 0 ? [] : [`oifname { ${ifnames.map((ifname) => `"${ifname}"`).join(', ')} } ${mark}`]),
    CLEAR,
  ];
}

const BIT = hex(FAST_PATH_MARK);
const CLEAR = `meta mark set meta mark and ${hex(~FAST_PATH_MARK >>> 0)}`;

/**
 * Renders the lines of the chain that takes the bit from copies (`dup`, the target TEE), which the kernel sends as packets of the
 * node without a connection: where they go is not where the flow goes.
 */
export function copyChainLines(): readonly string[] {
  return [
    'type filter hook output priority filter + 10; policy accept;',
    `ct state untracked meta mark and ${BIT} == ${BIT} ${CLEAR}`,
  ];
}
