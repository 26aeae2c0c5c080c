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

/**
 * Renders the lines of the chain that marks packets whose flow the fast path may learn. It comes after the chains of others
 * that may drop a packet (filter, 0). The connection is assured, and its packets need nothing that only the kernel does to
 * them: no other addresses, no helper that reads them, no other sequence numbers. All others lose the bit, whoever set it: a
 * translated packet must not be learned.
 */
export function learnChainLines(): readonly string[] {
  const { assured, natSource, natDestination, sequenceAdjust, helper } = CT_STATUS;
  const mask = hex(assured | natSource | natDestination | sequenceAdjust | helper);
  return [
    'type filter hook forward priority filter + 10; policy accept;',
    `ct status and ${mask} == ${hex(assured)} meta mark set meta mark or ${hex(FAST_PATH_MARK)} return`,
    `meta mark set meta mark and ${hex(~FAST_PATH_MARK >>> 0)}`,
  ];
}
