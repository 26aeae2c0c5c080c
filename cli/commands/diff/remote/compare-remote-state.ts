import { type Lease, leaseKey } from '../../../../agent/journal/lease.ts';
import { canonicalAddress } from '../../../../dataplane/ip-prefix.ts';
import type { EniNetwork } from '../../../../dataplane/network.ts';
import { type FindingId, finding } from '../../../../inspection/catalogue/catalogue.ts';
import type { DesiredNode } from '../../../../inspection/desired/desired-of.ts';
import { subjectOf } from '../../../../inspection/judge/compare-host.ts';
import type { Difference } from '../../../../inspection/judge/difference.ts';
import type { DifferenceOwner, ObjectNames } from '../../../../inspection/model/build-names.ts';
import type { AgentFacts } from '../../../../inspection/node/node-facts.ts';
import type { RemoteEni, RemoteState } from './remote-state.ts';

/**
 * Compares the agent's records with the state in the cluster or the cloud. There each Pod's address must be assigned to
 * its ENI, and each ENI must be attached, with the same MAC and primary address. `tke-eni repair` repairs none of these
 * differences.
 */
export function compareRemoteState(
  remote: RemoteState,
  agent: AgentFacts,
  desired: Pick<DesiredNode, 'enis'>,
  names: ObjectNames,
): readonly Difference[] {
  const byId = new Map(remote.enis.map((eni) => [eni.eniId, eni]));
  return [
    ...desired.enis.flatMap((eni) => eniDifferences(remote, eni, byId.get(eni.eniId), names)),
    ...agent.journal.leases
      .filter(({ state }) => state === 'active')
      .flatMap((lease) => leaseDifferences(remote, lease, byId.get(lease.eniId), names)),
    ...behind(remote, agent, desired, names),
  ];
}

function eniDifferences(
  remote: RemoteState,
  eni: EniNetwork,
  there: RemoteEni | undefined,
  names: ObjectNames,
): readonly Difference[] {
  const owner: DifferenceOwner = { kind: 'eni', eniId: eni.eniId };
  const name = names.text(owner);
  const difference = (what: string): Difference =>
    buildDifference('eni-not-attached', owner, what, [`look at ${eni.eniId} in the cloud and at ipamd's log`], names);
  if (there === undefined) return remote.isComplete ? [difference(`${remote.title} does not have ${name}`)] : [];
  if (!there.isAttached) return [difference(`${remote.title} has ${name} as ${there.state}`)];
  if (there.mac !== eni.mac)
    return [difference(`${remote.title} has the MAC ${there.mac} for ${name}, the agent ${eni.mac}`)];
  const primaries = new Set(there.primaries.map(canonicalAddress));
  return eni.addresses
    .filter(({ ip }) => primaries.size > 0 && !primaries.has(canonicalAddress(ip)))
    .map(({ ip }) =>
      difference(`${remote.title} has ${[...primaries].join(', ')} as primary of ${name}, the agent ${ip}`),
    );
}

function leaseDifferences(
  remote: RemoteState,
  lease: Lease,
  there: RemoteEni | undefined,
  names: ObjectNames,
): readonly Difference[] {
  // A missing ENI is reported once, by eniDifferences.
  if (there === undefined) return [];
  const owner: DifferenceOwner = { kind: 'pod', key: leaseKey(lease) };
  const addresses = new Map(there.addresses.map((address) => [canonicalAddress(address.ip), address]));
  return lease.addresses.flatMap(({ ip, assignmentId }): readonly Difference[] => {
    const found = addresses.get(canonicalAddress(ip));
    const fix = ['delete the Pod: it comes back with another address', `look for ${ip} in ipamd's log`];
    const difference = (what: string): readonly Difference[] => [
      buildDifference('address-not-assigned', owner, what, fix, names),
    ];
    if (found === undefined)
      return difference(`${remote.title} does not have ${ip} of ${names.text(owner)} on ${lease.eniId}`);
    if (!found.isAssigned) return difference(`${remote.title} has ${ip} of ${names.text(owner)} as ${found.state}`);
    const isSame = found.assignmentId === undefined || found.assignmentId === assignmentId;
    return isSame
      ? []
      : difference(
          `${ip} of ${names.text(owner)} was taken back and given again (${assignmentId}, now ${found.assignmentId})`,
        );
  });
}

/**
 * Returns differences of the supply: ENIs that the NodeENIConfig has as attached and the agent has not planned, and a
 * supply epoch below the agent's, which happens after etcd was restored from a backup.
 */
function behind(
  { source, title, enis, epoch }: RemoteState,
  { journal }: AgentFacts,
  desired: Pick<DesiredNode, 'enis'>,
  names: ObjectNames,
): readonly Difference[] {
  if (source !== 'nec') return [];
  const owner: DifferenceOwner = { kind: 'node' };
  const fix = ['tke-eni status shows how the agent handles it'];
  const known = journal.supply?.epoch ?? 0;
  const planned = new Set(desired.enis.map(({ eniId }) => eniId));
  const unused = enis.filter(({ eniId, isAttached }) => isAttached && !planned.has(eniId));
  return [
    ...(epoch !== undefined && epoch < known
      ? [
          buildDifference(
            'supply-behind',
            owner,
            `${title} has supply epoch ${epoch}, the agent has seen ${known}: it is outdated, such as after a restore of etcd`,
            fix,
            names,
          ),
        ]
      : []),
    ...unused.map(({ eniId }) =>
      buildDifference(
        'supply-behind',
        owner,
        `${title} has ${eniId} as attached, the agent has not planned it`,
        fix,
        names,
      ),
    ),
  ];
}

function buildDifference(
  id: FindingId,
  owner: DifferenceOwner,
  what: string,
  fix: readonly string[],
  names: ObjectNames,
): Difference {
  const details = { what, fix, subjects: subjectOf(owner), isOurs: false };
  return { ...finding(id, details), whose: names.text(owner), owner, changes: [] };
}
