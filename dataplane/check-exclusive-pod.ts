import type { NetnsRef } from '../netlink/link-message.ts';
import { checkHostLink, checkNft, differences, type PodCheck, SUBNET_CONFLICTS, unequal } from './check-pod.ts';
import type { NetState } from './desired.ts';
import { findNic } from './find-nic.ts';
import { nicAlias, parseNicAlias } from './host-veth-name.ts';
import type { InNetns, NodeKernel } from './kernel.ts';
import type { EniPodNetwork, PodNetwork } from './network.ts';
import { planExclusivePod } from './plan-exclusive-pod.ts';
import { planInside } from './read-inside.ts';

/**
 * Compares a Pod with an exclusive ENI with its plan, on both sides: the interface by its MAC, its name, address and
 * routes, the side link, the host's route. Changes nothing. @returns every difference, for people
 * @throws NetlinkError, SysctlError, NftError when the kernel cannot be read
 */
export async function checkExclusivePod(
  kernel: NodeKernel,
  podNetns: NetnsRef | undefined,
  check: PodCheck<EniPodNetwork>,
): Promise<readonly string[]> {
  const { node, pod, nft } = check;
  const ofHost = [
    ...checkHostLink(kernel, pod),
    ...differences(kernel, planExclusivePod(node, pod).host, 'host'),
    ...(await checkNft(kernel, pod, nft)),
  ];
  if (podNetns === undefined) return [...ofHost, 'Pod: its network namespace is gone'];
  using inPod = kernel.enter(podNetns);
  return [...ofHost, ...(await checkInPod(inPod, check))];
}

async function checkInPod(inPod: InNetns, { node, pod, handler }: PodCheck<EniPodNetwork>): Promise<readonly string[]> {
  const { rtnetlink } = inPod;
  const { nic, key, podVeth } = pod;
  const link = nic === undefined ? undefined : findNic(rtnetlink.link.list(), nic.mac);
  const side = rtnetlink.link.get({ ifname: podVeth.name });
  const found = [
    ...(link === undefined
      ? [`Pod: the ENI's interface (MAC ${nic?.mac ?? ''}) is missing`]
      : [
          ...unequal(`Pod: name of the ENI's interface`, link.ifname, key.ifName),
          ...unequal(`Pod: MAC of ${key.ifName}`, link.address, nic?.mac ?? ''),
          ...(isAliasOf(key, link.ifalias)
            ? []
            : unequal(`Pod: alias of ${key.ifName}`, link.ifalias, nicAlias(key, nic?.hostName ?? ''))),
        ]),
    ...(side === undefined
      ? [`Pod: interface ${podVeth.name} is missing`]
      : unequal(`Pod: MAC of ${podVeth.name}`, side.address, podVeth.mac)),
  ];
  if (link === undefined || side === undefined) return found;
  const plan = planExclusivePod(node, pod, { nic: link.ifindex, side: side.ifindex }).pod;
  const compare = (state: NetState) => differences(inPod, state, 'Pod', SUBNET_CONFLICTS);
  const all = [...found, ...compare(plan)];
  if (all.length === 0) return all;
  const inside = await planInside(inPod, plan, handler);
  return inside === plan ? all : compare(inside);
}

/** The name of before in it is not compared: a lease that was rebuilt does not have it. */
function isAliasOf({ containerId, ifName }: PodNetwork['key'], ifalias = ''): boolean {
  const owner = parseNicAlias(ifalias);
  return owner?.containerId === containerId && owner.ifName === ifName;
}
