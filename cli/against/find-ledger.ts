import type { Eni } from '../../cloud/cloud.ts';
import type { NodeEniConfigFields, NodeEniInfo } from '../../crd/node-eni-config-fields.ts';
import type { Ledger, LedgerEni } from './ledger.ts';

/** Builds the remote state from a NodeENIConfig. ENIs that one Pod uses as a whole (mode direct-eni) are left out. */
export function ledgerOfNec({ metadata, status }: NodeEniConfigFields, isDamaged: boolean): Ledger {
  return {
    source: 'nec',
    title: `NodeENIConfig ${metadata.name}`,
    enis: (status?.eniInfos ?? []).filter(({ mode }) => mode !== 'direct-eni').map(eniOfNec),
    isWhole: !isDamaged,
    ...(status?.supplyEpoch === undefined ? {} : { epoch: status.supplyEpoch }),
  };
}

function eniOfNec(eni: NodeEniInfo): LedgerEni {
  return {
    eniId: eni.eniID,
    mac: eni.mac.toLowerCase(),
    isAttached: eni.state === 'Attached',
    state: eni.state,
    primaries: [eni.primaryIP, eni.primaryIPv6].filter((ip) => ip !== undefined),
    addresses: (eni.addresses ?? []).map(({ ip, assignmentID, state }) => ({
      ip,
      assignmentId: assignmentID,
      isFirm: state === 'Assigned',
      state,
    })),
  };
}

/** Builds the remote state from ENIs that the cloud described. A requested ENI that is missing here does not exist. */
export function ledgerOfCloud(enis: readonly Eni[]): Ledger {
  return { source: 'cloud', title: 'the cloud', enis: enis.map(eniOfCloud), isWhole: true };
}

function eniOfCloud(eni: Eni): LedgerEni {
  const ips = [...eni.ips, ...(eni.ipv6s ?? [])];
  return {
    eniId: eni.eniId,
    mac: eni.mac,
    isAttached: eni.state === 'AVAILABLE' && eni.attachment !== undefined,
    state: eni.attachment === undefined ? `${eni.state}, attached to nothing` : eni.state,
    primaries: ips.filter(({ isPrimary }) => isPrimary).map(({ ip }) => ip),
    addresses: ips
      .filter(({ isPrimary }) => !isPrimary)
      .map(({ ip, state }) => ({ ip, isFirm: state === 'AVAILABLE', state })),
  };
}
