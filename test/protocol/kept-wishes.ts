import { claimKeysOf } from '../../ipamd/decide/claim-marks.ts';
import type { ClaimRequest, ClaimSource } from '../../ipamd/decide/claim-request.ts';
import type { NodeView } from '../../ipamd/decide/node-view.ts';
import { eniIdOf, type KeptClaim, type KeptSetting, type KeptWorld, nodeOf, placesOf } from './kept-world.ts';

/** The namespace of every name. */
export const NAMESPACE = 'ns';

/** Adds to a node's view what the controller of claims tells of it, as things are now. */
export function withWishes(world: KeptWorld, node: number, { planted }: KeptSetting): (view: NodeView) => NodeView {
  const wishes = world.claims.flatMap((claim) => wishOf(world, claim, node, planted) ?? []);
  const others = world.nodes.flatMap((_, i) => (i === node ? [] : [i]));
  const callsElsewhere = others.flatMap((other) => claimsUnderWay(world, other));
  const movedTo = others.flatMap((other) =>
    (nodeOf(world, other).nec.status.eniInfos ?? []).flatMap((eni) =>
      (eni.addresses ?? []).flatMap(({ ip, state, claim }) =>
        state === 'Assigned' && claim !== undefined ? [[ip, eni.eniID] as const] : [],
      ),
    ),
  );
  return (view) => ({
    ...view,
    // The ENIs stay: what comes and goes is an address.
    blocked: new Set([...view.blocked, 'instance-enis', 'vpc-enis', `call/DetachNetworkInterface/${eniIdOf(node)}`]),
    claims: new Map(wishes.map((wish) => [wish.key, wish])),
    ...(planted === 'forgets-reserved' ? {} : { reservedIps: reservedOf(world) }),
    movedTo: new Map(movedTo),
    claimCallsElsewhere: new Set(planted === 'two-calls-for-one-claim' ? [] : callsElsewhere),
  });
}

/** Claims by the address that is theirs. */
export function reservedOf({ claims }: KeptWorld): ReadonlyMap<string, string> {
  return new Map(claims.flatMap(({ name, ip }) => (ip === undefined ? [] : [[ip, keyOf(name)] as const])));
}

function wishOf(
  world: KeptWorld,
  claim: KeptClaim,
  node: number,
  planted: KeptSetting['planted'],
): ClaimRequest | undefined {
  const { name, pod, ip } = claim;
  const head = { key: keyOf(name), mode: 'route-eni' as const, ...(ip === undefined ? {} : { ip }) };
  const place = placesOf(world, name).find((one) => one.node === node);
  if (pod !== undefined && pod.node === node) {
    const source = sourceOf(world, claim, node, planted);
    return { ...head, goal: 'here', podUid: pod.uid, ...(source === undefined ? {} : { source }) };
  }
  if (place === undefined) return undefined;
  const isFetched = world.nodes.some((_, other) => other !== node && isMoving(world, other, name));
  if (pod === undefined) {
    const isLeft = place.address.state === 'Releasing';
    return isLeft ? { ...head, goal: 'elsewhere', willMigrate: isFetched } : { ...head, goal: 'keep' };
  }
  const isThere = placesOf(world, name).some((one) => one.node === pod.node);
  return { ...head, goal: 'elsewhere', willMigrate: isFetched || isThere || !claim.isGivenUp };
}

function sourceOf(
  world: KeptWorld,
  { name }: KeptClaim,
  node: number,
  planted: KeptSetting['planted'],
): ClaimSource | undefined {
  const place = placesOf(world, name).find((one) => one.node !== node);
  if (place === undefined) return undefined;
  const { address, eni } = place;
  const isReleased = address.state === 'Releasing' && address.claim?.uid === undefined;
  return {
    nodeName: `node-${place.node + 1}`,
    eniId: eni.eniID,
    isAttached: eni.state === 'Attached',
    isReleased: isReleased || planted === 'takes-what-is-in-use',
  };
}

function claimsUnderWay(world: KeptWorld, node: number): readonly string[] {
  const { status } = nodeOf(world, node).nec;
  return (status.intents ?? []).flatMap((intent) => claimKeysOf(intent, status));
}

function isMoving(world: KeptWorld, node: number, name: string): boolean {
  return (nodeOf(world, node).nec.status.intents ?? []).some(
    ({ action, claim }) => action === 'MigratePrivateIpAddress' && claim === keyOf(name),
  );
}

function keyOf(name: string): string {
  return `${NAMESPACE}/${name}`;
}
