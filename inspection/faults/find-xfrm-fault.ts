import { XFRM_POLICY_BLOCK, XFRM_POLICY_FWD, XFRM_POLICY_IN, XFRM_POLICY_OUT } from '../../netlink/uapi/xfrm.ts';
import type { XfrmPolicyMessage } from '../../netlink/xfrm-policy-message.ts';
import { finding } from '../catalogue/catalogue.ts';
import type { Finding } from '../catalogue/finding.ts';
import { ifKnown } from '../node/known.ts';
import type { NetnsFacts } from '../node/node-facts.ts';
import { prefixContains } from '../node/prefix-contains.ts';

/** A packet as IPsec policies match it. An absent address is any. */
type ProtectedPacket = {
  readonly dir: 'in' | 'out' | 'fwd';
  readonly src?: string | undefined;
  readonly dst?: string | undefined;
  /** Link that it leaves by, or came in by. */
  readonly ifindex?: number | undefined;
};

const DIRS = { in: XFRM_POLICY_IN, out: XFRM_POLICY_OUT, fwd: XFRM_POLICY_FWD } as const;

/**
 * Finds the IPsec policy that decides about a packet, when it blocks or protects it. It is a warning where packets may
 * pass: while the keys of a policy that protects are there, and to addresses that a policy is not for. Policies for ports,
 * marks or an xfrm link are left out.
 * @param where 'the node', 'Pod default/web-0'
 */
export function findXfrmFault(
  { traffic }: Pick<NetnsFacts, 'traffic'>,
  packet: ProtectedPacket,
  where: string,
  prefix = '',
): Finding | undefined {
  const [policy] = (ifKnown(traffic.policies) ?? [])
    .filter((each) => matches(each, packet))
    .toSorted((a, b) => a.priority - b.priority);
  if (policy === undefined) return undefined;
  const isBlock = policy.action === XFRM_POLICY_BLOCK;
  if (!isBlock && policy.templates === undefined) return undefined;
  const name = `src ${policy.src} dst ${policy.dst} dir ${packet.dir}`;
  return finding('xfrm-policy', {
    what: isBlock
      ? `an IPsec policy of ${where} blocks packets: ${name}`
      : `an IPsec policy of ${where} protects packets, which pass only while its keys are there: ${name}`,
    fix: [`${prefix}ip xfrm policy delete ${name}`, 'stop the program that adds it (strongSwan, Libreswan)'],
    subjects: [`xfrm:${name}`],
    ...(isBlock && isForWhole(policy.src, packet.src) && isForWhole(policy.dst, packet.dst)
      ? {}
      : { severity: 'warning' as const }),
  });
}

function matches(policy: XfrmPolicyMessage, { dir, src, dst, ifindex }: ProtectedPacket): boolean {
  const isForAll =
    policy.proto === 0 &&
    policy.dportMask === 0 &&
    policy.sportMask === 0 &&
    policy.mark === undefined &&
    policy.ifId === undefined;
  const isOnLink = policy.ifindex === 0 || policy.ifindex === ifindex;
  return policy.dir === DIRS[dir] && isForAll && isOnLink && contains(policy.src, src) && contains(policy.dst, dst);
}

function contains(prefix: string, address: string | undefined): boolean {
  return address === undefined || prefixContains(prefix, address);
}

/** Reports whether the prefix has every address that the packet can have. */
function isForWhole(prefix: string, address: string | undefined): boolean {
  return address !== undefined || prefix.endsWith('/0');
}
