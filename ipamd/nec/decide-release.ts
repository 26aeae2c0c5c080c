import { IPS_PER_CALL } from '../../cloud/batches.ts';
import type { NodeEniAddress, NodeEniInfo } from '../../crd/node-eni-config-fields.ts';
import { type ClaimStandings, standingsOf } from './claim-standing.ts';
import { removableEnis } from './decide-removal.ts';
import { type Offers, offersOf } from './offers.ts';
import { begin, type Hold, holdIfBlocked, type Scene, type Step } from './scene.ts';
import { ipv4CountOf, isIpv4, isShared, releasing, withEni } from './with-enis.ts';

/**
 * Decides which addresses are unassigned: those that are Releasing without a call, then those that are offered and not
 * needed. They are of one ENI, the emptiest first. They become Releasing in the write that records the call. Takes ids.
 */
export function decideRelease(scene: Scene): Step {
  const offers = offersOf({ ...scene.view, status: scene.status });
  const standings = standingsOf(scene.view, scene.status);
  const goingWhole = new Set(removableEnis(scene).map((eni) => eni.eniID));
  const candidates = (scene.status.eniInfos ?? [])
    .filter((eni) => eni.state === 'Attached' && isShared(eni))
    .filter((eni) => !scene.busy.has(eni.eniID) && !goingWhole.has(eni.eniID))
    .map((eni) => ({ eni, ips: releasableIps(scene, offers, standings, eni) }))
    .filter(({ ips }) => ips.length > 0)
    .sort((one, other) => ipv4CountOf(one.eni) - ipv4CountOf(other.eni));
  let hold: Hold | undefined;
  for (const { eni, ips } of candidates) {
    const { eniID } = eni;
    const key = `call/UnassignPrivateIpAddresses/${eniID}`;
    const blocked = holdIfBlocked(scene, [key], 'CloudRefused', `cannot take addresses off ${eniID}`);
    if (blocked === undefined) {
      const status = withEni(scene.status, eniID, (one) => ({
        ...one,
        addresses: (one.addresses ?? []).map((address) => (ips.includes(address.ip) ? releasing(address) : address)),
      }));
      return begin(scene, 'UnassignPrivateIpAddresses', { eniID, ips }, status);
    }
    hold ??= blocked;
  }
  return hold;
}

/**
 * Lists at most ten addresses of an ENI. Of an ENI that stays, only as many offered ones as the node has above its
 * demand.
 */
function releasableIps(
  { supply }: Scene,
  offers: Offers,
  standings: ClaimStandings,
  eni: NodeEniInfo,
): readonly string[] {
  const addresses = (eni.addresses ?? []).filter((address) => isIpv4(address.ip));
  const left = addresses.filter((address) => isToBeTaken(offers, standings, address));
  const offered = addresses.filter((address) => address.claim === undefined && offers.isOffered(address));
  const surplus = eni.draining === true ? offered.length : Math.max(0, supply.have - supply.want);
  return [...left, ...offered.slice(0, surplus)].slice(0, IPS_PER_CALL).map((address) => address.ip);
}

/**
 * Tells whether an address is unassigned although it is not surplus: it is Releasing without a call. A static address
 * only if it leaves this node for good, or is assigned anew to the Pod that is here: a released address serves again
 * only after the cloud has assigned it anew, because another node may have requested it in between.
 */
function isToBeTaken(offers: Offers, standings: ClaimStandings, address: NodeEniAddress): boolean {
  if (standings.isBusyElsewhere(address)) return false;
  switch (standings.of(address)) {
    case 'pooled':
    case 'serves':
      return address.state === 'Releasing';
    case 'goes':
      return address.state === 'Releasing' || offers.isOffered(address) || standings.isTakenOver(address);
    default:
      return false;
  }
}
