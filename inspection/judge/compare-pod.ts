import { addressKey, type PodState } from '../../dataplane/desired.ts';
import { diffHost } from '../../dataplane/diff.ts';
import { prefixLength } from '../../dataplane/ip-prefix.ts';
import type { PodNetwork } from '../../dataplane/network.ts';
import type { ObservedHost } from '../../dataplane/observed.ts';
import { type Operation, renderRoute } from '../../dataplane/operation.ts';
import { sysctlName } from '../../sysctl/sysctl-key.ts';
import { type FindingId, finding } from '../catalogue/catalogue.ts';
import { type ElementId, linkId, podId } from '../catalogue/element-id.ts';
import type { ObjectNames } from '../model/build-names.ts';
import { renderChange } from './change.ts';
import { familyOfOperation, isDetour, REPAIR } from './compare-host.ts';
import { describeAddress } from './describe-bridge.ts';
import type { Difference } from './difference.ts';

/** Desired and observed state in the network namespace of one Pod. */
export type PodSnapshot = {
  readonly key: string;
  /** Path of its network namespace, as the runtime reported it. */
  readonly netns: string;
  readonly network: PodNetwork;
  readonly desired: PodState;
  readonly observed: ObservedHost;
};

/**
 * Returns the differences inside a Pod. Objects that we created there are ours to repair: no other program may change
 * them while the lease is active. Objects that the Pod created itself are left alone.
 */
export function comparePod(snapshot: PodSnapshot, names: ObjectNames): readonly Difference[] {
  const { operations, conflicts } = diffHost(snapshot.desired, snapshot.observed);
  const owner = { kind: 'pod', key: snapshot.key } as const;
  const whose = names.text(owner);
  const subjects = subjectsOf(snapshot);
  const ours = operations.filter(isOfPlan).flatMap((operation) => podDifferences(operation, snapshot, names));
  const foreign = conflicts
    .filter(({ kind }) => kind === 'route')
    .map(({ message }): Difference => {
      const next = 'the program in the Pod that changed it must put it back, or delete the Pod';
      const details = { what: `in ${whose}, ${message}`, fix: [next], subjects, isOurs: false };
      return { ...finding('foreign-route', details), whose, owner, changes: [] };
    });
  return [...ours, ...foreign, ...foreignAddresses(snapshot, { whose, owner, subjects })];
}

/** Where in a Pod an operation is. */
type PodPlace = Pick<PodSnapshot, 'key' | 'netns'> & {
  readonly network: Pick<PodNetwork, 'ips'> & { readonly podVeth: { readonly name: string } };
  readonly desired: Pick<PodState, 'links'>;
};

/** The table of what an operation in a Pod repairs. */
export function podDifferences(operation: Operation, place: PodPlace, names: ObjectNames): readonly Difference[] {
  const { key, netns, network } = place;
  const change = { kind: 'pod', key, netns, operation } as const;
  const owner = { kind: 'pod', key } as const;
  const whose = names.text(owner);
  const family = familyOfOperation(operation);
  return describe(operation, network).map(({ id, what }) => ({
    ...finding(id, {
      what: `in ${whose}, ${what}`,
      fix: [REPAIR, renderChange(change)],
      subjects: subjectsOf(place),
      isOurs: true,
    }),
    ...{ whose, owner, changes: [change] },
    ...(family && { family }),
  }));
}

function subjectsOf({ key, network, desired }: PodPlace): readonly ElementId[] {
  const ifindex = desired.links.find(({ ifname }) => ifname === network.podVeth.name)?.ifindex ?? 0;
  return [podId(key), linkId(ifindex, key)];
}

/**
 * Returns addresses on our interface that the lease does not have, without link-local ones, which the kernel creates.
 */
function foreignAddresses(
  { desired, observed, network }: PodSnapshot,
  { whose, owner, subjects }: Pick<Difference, 'whose' | 'owner' | 'subjects'>,
): readonly Difference[] {
  const ours = new Set(desired.addresses.map(addressKey));
  return observed.addresses
    .filter((address) => address.ifname === network.podVeth.name && !ours.has(addressKey(address)))
    .filter(({ prefix }) => !prefix.startsWith('fe80:'))
    .map(({ prefix, ifname }) => {
      const details = { what: `in ${whose}, ${ifname} has ${prefix}, which no lease has`, fix: [], subjects };
      return { ...finding('pod-foreign-address', details), whose, owner, changes: [] };
    });
}

/**
 * Returns whether an operation restores an object of the plan. A Pod may have its own routes and rules; they are not
 * deleted.
 */
function isOfPlan({ kind }: Operation): boolean {
  return !kind.startsWith('delete-');
}

type OperationFinding = { readonly id: FindingId; readonly what: string };

function describe(operation: Operation, network: Pick<PodNetwork, 'ips'>): readonly OperationFinding[] {
  switch (operation.kind) {
    case 'set-link': {
      const { ifname, change, before } = operation;
      return [
        ...(change.up === undefined ? [] : [{ id: 'pod-link-down', what: `${ifname} is down` } as const]),
        ...(change.mtu === undefined
          ? []
          : [{ id: 'mtu-mismatch', what: `MTU of ${ifname} is ${before.mtu}, should be ${change.mtu}` } as const]),
        ...(change.arp === undefined ? [] : [{ id: 'link-noarp', what: `${ifname} has ARP turned off` } as const]),
      ];
    }
    case 'add-address':
      return [describeAddress(operation, 'pod-address-missing')];
    case 'replace-route':
      return [describeRoute(operation, network)];
    case 'replace-neigh': {
      const { neigh, before } = operation;
      const name = `the neighbour ${neigh.dst} on ${neigh.ifname}`;
      return before === undefined
        ? [{ id: 'neigh-missing', what: `${name} is missing, should be ${neigh.lladdr}` }]
        : [{ id: 'neigh-wrong-mac', what: `${name} is ${before.lladdr}, should be ${neigh.lladdr}` }];
    }
    case 'set-sysctl': {
      const what = `${sysctlName(operation.key)} is ${operation.before}, should be ${operation.value}`;
      return [{ id: 'sysctl-changed', what }];
    }
    // The plan of a Pod contains none of these.
    case 'make-bridge':
    case 'delete-bridge':
    case 'set-port':
    case 'add-rule':
    case 'delete-rule':
    case 'delete-route':
    case 'delete-address':
    case 'delete-neigh':
    case 'attach-filter':
    case 'detach-filter':
    case 'load-nft':
    case 'replace-flowtable':
    case 'delete-flowtable':
    case 'add-flow-devices':
    case 'delete-flow-devices':
      return [];
  }
}

function describeRoute(
  { route, before }: Operation & { readonly kind: 'replace-route' },
  { ips }: Pick<PodNetwork, 'ips'>,
): OperationFinding {
  const shown = renderRoute(route);
  if (before === undefined) return { id: 'pod-route-missing', what: `route "${shown}" is missing` };
  const { prefsrc } = before;
  const isSpoofing = prefsrc !== undefined && prefixLength(route.dst) === 0 && !ips.includes(prefsrc);
  const what = `route is "${renderRoute(before)}", should be "${shown}"`;
  return isSpoofing
    ? { id: 'source-not-ours', what: `${what}: it sends with ${prefsrc}, which no ENI has for it` }
    : { id: isDetour(before, route) ? 'pod-route-missing' : 'attribute-changed', what };
}
