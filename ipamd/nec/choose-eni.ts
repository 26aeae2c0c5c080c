import type { NodeEniInfo } from '../../crd/node-eni-config-fields.ts';
import { isReservedSubnet } from './reserved-subnets.ts';
import type { Scene } from './scene.ts';
import { isUsable, roomOf } from './supply.ts';
import { ipv4CountOf } from './with-enis.ts';

/** An ENI that new addresses may go on, and how many more it takes. */
export type EniRoom = { readonly eni: NodeEniInfo; readonly room: number };

/** Chooses the ENI that new addresses go on: the fullest that has room and no call under way. Pure. */
export function chooseEni(scene: Scene): EniRoom | undefined {
  const free = roomsOf(scene).filter(({ eni }) => eni.state === 'Attached' && !scene.busy.has(eni.eniID));
  return free.reduce<EniRoom | undefined>(
    (best, one) => (best !== undefined && ipv4CountOf(best.eni) >= ipv4CountOf(one.eni) ? best : one),
    undefined,
  );
}

/** Counts the room on ENIs that nothing can be assigned to now, and can be soon. Pure. */
export function roomLater(scene: Scene): number {
  const isSoon = ({ eni }: EniRoom) =>
    (eni.state === 'Attaching' || scene.busy.has(eni.eniID)) && !scene.view.stuck.has(eni.eniID);
  return roomsOf(scene)
    .filter(isSoon)
    .reduce((sum, { room }) => sum + room, 0);
}

function roomsOf({ view, status, supply, claims }: Scene): readonly EniRoom[] {
  const full = new Set(
    view.subnets.filter((subnet) => subnet.isBlocked || subnet.freeIps < 1).map((one) => one.subnetId),
  );
  return (status.eniInfos ?? []).flatMap((eni) => {
    const { eniID, subnetID = '' } = eni;
    const keys = [`eni-ips/${eniID}`, `subnet/${subnetID}`, `call/AssignPrivateIpAddresses/${eniID}`];
    const isOurs = isUsable(eni) && !isReservedSubnet(view, subnetID);
    const isOpen = isOurs && eni.state !== 'Detaching' && !keys.some((key) => view.blocked.has(key));
    const room =
      isOpen && !full.has(subnetID) ? roomOf(eni, status, supply.perEni) - (claims.reserved.get(eniID) ?? 0) : 0;
    return room > 0 ? [{ eni, room }] : [];
  });
}
