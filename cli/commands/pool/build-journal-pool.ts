import type { Cooldown, JournalContent } from '../../../agent/journal/journal-content.ts';
import type { Lease } from '../../../agent/journal/lease.ts';
import { claimKey, type SupplyAddress, type SupplyEni } from '../../../agent/journal/supply.ts';
import { familyOf } from '../../../dataplane/ip-prefix.ts';
import type { EniNetwork } from '../../../dataplane/network.ts';
import { buildBlocks, withoutSupply } from './build-blocks.ts';
import type { AddressUse, AddressView, PoolEniView, PoolView } from './pool-view.ts';

/**
 * Builds the pool view from the journal alone, for a node whose agent does not answer. The journal contains what is in
 * use, cooling or offered; the rest of the last supply counts as free. It does not contain waiting ADDs.
 * @param planned ENIs as the agent last planned them, from its node file
 * @param bootMs milliseconds since boot, the clock of the cooldowns
 * @param podCidrs present blocks of GlobalRoute Pods
 */
export function buildJournalPool(
  journal: JournalContent,
  planned: readonly EniNetwork[],
  bootMs: number,
  podCidrs: readonly string[] = [],
): PoolView {
  const { supply } = journal;
  const owners = new Map(journal.leases.flatMap((lease) => lease.addresses.map(({ ip }) => [ip, lease] as const)));
  const cooling = new Map(journal.cooldowns.filter((one) => one.coolUntilMs > bootMs).map((one) => [one.ip, one]));
  const offered = new Set((journal.offers ?? []).map(({ ip, assignmentId }) => `${ip} ${assignmentId}`));
  const registered = new Set(supply?.registeredIps ?? []);
  const listed = (supply?.enis ?? []).flatMap((eni) =>
    eni.addresses.map((address) => {
      const isOffered = offered.has(`${address.ip} ${address.assignmentId}`);
      return addressOf(
        {
          ...{ eni, address, owner: owners.get(address.ip), cooldown: cooling.get(address.ip), isOffered },
          isRegistered: registered.has(address.ip),
        },
        bootMs,
      );
    }),
  );
  const isListed = new Set(listed.map(({ ip }) => ip));
  const unlisted = [...unlistedInUse(journal.leases), ...unlistedCooling([...cooling.values()], bootMs)].filter(
    ({ ip }) => !isListed.has(ip),
  );
  const addresses = [...listed, ...unlisted];
  const blocks = buildBlocks(addresses, podCidrs);
  return {
    source: 'journal',
    nodeName: supply?.nodeName ?? '',
    addresses,
    ...(blocks.length === 0 ? {} : { blocks }),
    enis: enisOf(journal, planned),
    ...(supply === undefined ? {} : { warm: supply.warm, supplyEpoch: supply.epoch }),
    supplyProblem: supply === undefined ? 'the journal holds no supply' : '',
  };
}

type AddressInput = {
  readonly eni: SupplyEni;
  readonly address: SupplyAddress;
  readonly owner: Lease | undefined;
  readonly cooldown: Cooldown | undefined;
  readonly isOffered: boolean;
  readonly isRegistered: boolean;
};

function addressOf(
  { eni, address, owner, cooldown, isOffered, isRegistered }: AddressInput,
  bootMs: number,
): AddressView {
  const { ip, family, assignmentId, claim } = address;
  const keptFor =
    claim === undefined ? undefined : { pods: claimKey(claim), ...(claim.uid === undefined ? {} : { uid: claim.uid }) };
  const base = { ip, family, eniId: eni.eniId, assignmentId, ...(keptFor === undefined ? {} : { keptFor }) };
  if (owner !== undefined) return { ...base, use: 'in-use', owner: ownerOf(owner) };
  if (cooldown !== undefined && claim === undefined)
    return { ...base, use: 'cooling', coolRemainingMs: cooldown.coolUntilMs - bootMs };
  const use: AddressUse =
    address.state === 'releasing'
      ? 'releasing'
      : isOffered
        ? 'offered'
        : claim !== undefined
          ? 'kept'
          : eni.attached && !eni.draining
            ? isRegistered
              ? 'registered'
              : 'free'
            : 'unready';
  return { ...base, use };
}

function ownerOf({ containerId, ifName, podNamespace, podName }: Lease): NonNullable<AddressView['owner']> {
  return { containerId, ifName, podNamespace, podName };
}

/** Returns the addresses in use that the supply does not list any more. */
function unlistedInUse(leases: readonly Lease[]): readonly AddressView[] {
  return leases.flatMap((lease) =>
    lease.addresses.map(
      (address): AddressView => ({ ...address, use: 'in-use', owner: ownerOf(lease), ...withoutSupply(address) }),
    ),
  );
}

function unlistedCooling(cooldowns: readonly Cooldown[], bootMs: number): readonly AddressView[] {
  return cooldowns.map(({ ip, family, eniId, assignmentId, coolUntilMs }) => ({
    ip,
    family,
    eniId,
    assignmentId,
    use: 'cooling',
    coolRemainingMs: coolUntilMs - bootMs,
    ...withoutSupply({ eniId }),
  }));
}

/** Returns the ENIs of the supply, then those that Pods still use and the supply does not list any more. */
function enisOf({ supply, enis }: JournalContent, planned: readonly EniNetwork[]): readonly PoolEniView[] {
  const recordOf = new Map(enis.map((record) => [record.eniId, record]));
  const plannedById = new Map(planned.map((eni) => [eni.eniId, eni]));
  const listed = (supply?.enis ?? []).map((eni): PoolEniView => {
    const record = recordOf.get(eni.eniId);
    const network = plannedById.get(eni.eniId);
    return {
      eniId: eni.eniId,
      ...(network === undefined ? {} : { ifname: network.ifname }),
      ...(record === undefined ? {} : { table: record.table, slot: record.slot }),
      mac: eni.mac,
      primary: eni.primary.toSorted((a, b) => a.family - b.family).map(({ ip, subnetCidr }) => ({ ip, subnetCidr })),
      attached: eni.attached,
      draining: eni.draining,
      problem: '',
    };
  });
  const isListed = new Set(listed.map(({ eniId }) => eniId));
  const unlisted = enis
    .filter(({ eniId }) => !isListed.has(eniId))
    .map((record): PoolEniView => {
      const network = plannedById.get(record.eniId);
      return {
        eniId: record.eniId,
        ...(network === undefined ? {} : { ifname: network.ifname }),
        table: record.table,
        slot: record.slot,
        mac: record.mac,
        primary: (network?.addresses ?? [])
          .toSorted((a, b) => familyOf(a.ip) - familyOf(b.ip))
          .map(({ ip }) => ({ ip, subnetCidr: '' })),
        attached: false,
        draining: false,
        problem: 'no longer in the supply',
      };
    });
  return [...listed, ...unlisted];
}
