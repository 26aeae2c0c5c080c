import type { NodeEniConfigSpec, NodeEniConfigStatus } from '../../../crd/node-eni-config-fields.ts';
import { claimKeyOf } from '../../decide/claim-marks.ts';
import type { ClaimCall, ClaimLocation } from './claim-view.ts';

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
      eni.claim === undefined || claimKeyOf(eni.claim) !== key
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
      claim === undefined || claimKeyOf(claim) !== key
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
