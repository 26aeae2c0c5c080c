import type { NodeEniConfigSpec, NodeEniConfigStatus } from '../../crd/node-eni-config-fields.ts';
import type { ClaimCall, ClaimLocation } from './claim-view.ts';

type Mark = { readonly namespace: string; readonly name: string };

/** Returns the key of the claim that a mark names. */
export function markKey({ namespace, name }: Mark): string {
  return `${namespace}/${name}`;
}

/** Lists the claims that a node's status names, in marks and in calls; the keys of an index. */
export function readClaimKeys(status: NodeEniConfigStatus | undefined): readonly string[] {
  const marks = (status?.eniInfos ?? []).flatMap(({ claim, addresses = [] }) => [
    ...(claim === undefined ? [] : [markKey(claim)]),
    ...addresses.flatMap((one) => (one.claim === undefined ? [] : [markKey(one.claim)])),
  ]);
  const called = (status?.intents ?? []).flatMap(({ claim }) => claim ?? []);
  const keys = [...marks, ...called];
  return keys.length === 0 ? NONE : [...new Set(keys)];
}

/** Lists the addresses of a node with a mark; the keys of an index. */
export function readMarkedIps(status: NodeEniConfigStatus | undefined): readonly string[] {
  const ips = (status?.eniInfos ?? []).flatMap(({ addresses = [] }) =>
    addresses.flatMap(({ ip, claim }) => (claim === undefined ? [] : [ip])),
  );
  return ips.length === 0 ? NONE : ips;
}

const NONE: readonly string[] = Object.freeze([]);

/** Returns the key of the claim that a node's ENI has the address for; undefined for an address without a mark. */
export function readMarkOf(status: NodeEniConfigStatus | undefined, ip: string): string | undefined {
  const addresses = (status?.eniInfos ?? []).flatMap((eni) => eni.addresses ?? []);
  const mark = addresses.find((one) => one.ip === ip)?.claim;
  return mark === undefined ? undefined : markKey(mark);
}

/** Finds the addresses and ENIs of a node with the mark of a claim. */
export function readClaimLocations(
  nodeName: string,
  status: NodeEniConfigStatus | undefined,
  key: string,
): readonly ClaimLocation[] {
  return (status?.eniInfos ?? []).flatMap((eni): readonly ClaimLocation[] => {
    const common = {
      nodeName,
      eniId: eni.eniID,
      subnetId: eni.subnetID,
      isAttached: eni.state === 'Attached',
      mode: eni.mode ?? 'route-eni',
    };
    const exclusive: readonly ClaimLocation[] =
      eni.claim === undefined || markKey(eni.claim) !== key
        ? []
        : [
            {
              ...common,
              ip: eni.primaryIP,
              assignmentId: eni.assignmentID,
              isReleasing: eni.state === 'Detaching',
              podUid: eni.claim.uid,
            },
          ];
    const single = (eni.addresses ?? []).flatMap(({ ip, assignmentID, state, claim }): readonly ClaimLocation[] =>
      claim === undefined || markKey(claim) !== key
        ? []
        : [{ ...common, ip, assignmentId: assignmentID, isReleasing: state === 'Releasing', podUid: claim.uid }],
    );
    return [...exclusive, ...single];
  });
}

/** Reports whether a sandbox may have a claim's address or ENI: a Pod is named, or its agent has not let go of it. */
export function mayHaveSandbox(
  { releasableIPs = [], releasableENIs = [] }: Pick<NodeEniConfigSpec, 'releasableIPs' | 'releasableENIs'>,
  { ip, eniId, mode, assignmentId, isAttached, isReleasing, podUid }: ClaimLocation,
): boolean {
  if (!isAttached || isReleasing) return false;
  const isOffered =
    mode === 'direct-eni'
      ? releasableENIs.some((one) => one.eniID === eniId && one.assignmentID === assignmentId)
      : releasableIPs.some((one) => one.ip === ip && one.assignmentID === assignmentId);
  return podUid !== undefined || !isOffered;
}

/** Finds the calls in flight for a claim. */
export function readClaimCalls(
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
export function readSubnetsWithFreeSlots(
  status: NodeEniConfigStatus | undefined,
  maxIps: number = UNBOUNDED,
): ReadonlySet<string> {
  const enis = (status?.eniInfos ?? []).filter(
    ({ mode = 'route-eni', state, draining, addresses = [] }) =>
      mode === 'route-eni' && state === 'Attached' && draining !== true && addresses.length < maxIps,
  );
  return new Set(enis.flatMap(({ subnetID }) => subnetID ?? []));
}
