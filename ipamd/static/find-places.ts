import type { NodeEniConfigStatus } from '../../crd/node-eni-config-fields.ts';
import type { ClaimCall, Place } from './claim-view.ts';

type Mark = { readonly namespace: string; readonly name: string };

/** Returns the key of the claim that a mark names. */
export function markKey({ namespace, name }: Mark): string {
  return `${namespace}/${name}`;
}

/** Lists the claims that a node's status names, in marks and in calls; the keys of an index. */
export function findClaimKeys(status: NodeEniConfigStatus | undefined): readonly string[] {
  const marks = (status?.eniInfos ?? []).flatMap(({ claim, addresses = [] }) => [
    ...(claim === undefined ? [] : [markKey(claim)]),
    ...addresses.flatMap((one) => (one.claim === undefined ? [] : [markKey(one.claim)])),
  ]);
  const called = (status?.intents ?? []).flatMap(({ claim }) => claim ?? []);
  const keys = [...marks, ...called];
  return keys.length === 0 ? NONE : [...new Set(keys)];
}

/** Lists the addresses of a node with a mark; the keys of an index. */
export function findMarkedIps(status: NodeEniConfigStatus | undefined): readonly string[] {
  const ips = (status?.eniInfos ?? []).flatMap(({ addresses = [] }) =>
    addresses.flatMap(({ ip, claim }) => (claim === undefined ? [] : [ip])),
  );
  return ips.length === 0 ? NONE : ips;
}

const NONE: readonly string[] = Object.freeze([]);

/** Finds the addresses and ENIs of a node with the mark of a claim. */
export function findPlaces(nodeName: string, status: NodeEniConfigStatus | undefined, key: string): readonly Place[] {
  return (status?.eniInfos ?? []).flatMap((eni): readonly Place[] => {
    const home = {
      nodeName,
      eniId: eni.eniID,
      subnetId: eni.subnetID,
      isAttached: eni.state === 'Attached',
      mode: eni.mode ?? 'route-eni',
    };
    const whole: readonly Place[] =
      eni.claim === undefined || markKey(eni.claim) !== key
        ? []
        : [
            {
              ...home,
              ip: eni.primaryIP,
              assignmentId: eni.assignmentID,
              isReleasing: eni.state === 'Detaching',
              podUid: eni.claim.uid,
            },
          ];
    const single = (eni.addresses ?? []).flatMap(({ ip, assignmentID, state, claim }): readonly Place[] =>
      claim === undefined || markKey(claim) !== key
        ? []
        : [{ ...home, ip, assignmentId: assignmentID, isReleasing: state === 'Releasing', podUid: claim.uid }],
    );
    return [...whole, ...single];
  });
}

/** Finds the calls in flight for a claim. */
export function findCalls(
  nodeName: string,
  status: NodeEniConfigStatus | undefined,
  key: string,
): readonly ClaimCall[] {
  return (status?.intents ?? []).flatMap(({ claim, action, ips = [] }) =>
    claim === key ? [{ nodeName, action, ips }] : [],
  );
}

/** Limit of addresses on an ENI when the spec contains none. */
const UNBOUNDED = 4_096;

/** Finds the subnets in which a node has an attached shared ENI with a free address slot. */
export function findSubnetsWithRoom(
  status: NodeEniConfigStatus | undefined,
  mostIps: number = UNBOUNDED,
): ReadonlySet<string> {
  const enis = (status?.eniInfos ?? []).filter(
    ({ mode = 'route-eni', state, draining, addresses = [] }) =>
      mode === 'route-eni' && state === 'Attached' && draining !== true && addresses.length < mostIps,
  );
  return new Set(enis.flatMap(({ subnetID }) => subnetID ?? []));
}
