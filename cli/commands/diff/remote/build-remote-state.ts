import type { Eni } from '../../../../cloud/cloud.ts';
import type { NodeEniConfigFields, NodeEniInfo } from '../../../../crd/node-eni-config-fields.ts';
import type { RemoteEni, RemoteState } from './remote-state.ts';

/** Builds the remote state from a NodeENIConfig. ENIs that one Pod uses as a whole (mode direct-eni) are left out. */
export function remoteStateOfNec({ metadata, status }: NodeEniConfigFields, isDamaged: boolean): RemoteState {
  return {
    source: 'nec',
    title: `NodeENIConfig ${metadata.name}`,
    enis: (status?.eniInfos ?? []).filter(({ mode }) => mode !== 'direct-eni').map(eniOfNec),
    isComplete: !isDamaged,
    ...(status?.supplyEpoch === undefined ? {} : { epoch: status.supplyEpoch }),
  };
}

function eniOfNec(eni: NodeEniInfo): RemoteEni {
  return {
    eniId: eni.eniID,
    mac: eni.mac.toLowerCase(),
    isAttached: eni.state === 'Attached',
    state: eni.state,
    primaries: [eni.primaryIP, eni.primaryIPv6].filter((ip) => ip !== undefined),
    addresses: (eni.addresses ?? []).map(({ ip, assignmentID, state }) => ({
      ip,
      assignmentId: assignmentID,
      isAssigned: state === 'Assigned',
      state,
    })),
  };
}

/** Builds the remote state from ENIs that the cloud described. A requested ENI that is missing here does not exist. */
export function remoteStateOfCloud(enis: readonly Eni[]): RemoteState {
  return { source: 'cloud', title: 'the cloud', enis: enis.map(eniOfCloud), isComplete: true };
}

function eniOfCloud(eni: Eni): RemoteEni {
  const ips = [...eni.ips, ...(eni.ipv6s ?? [])];
  return {
    eniId: eni.eniId,
    mac: eni.mac,
    isAttached: eni.state === 'AVAILABLE' && eni.attachment !== undefined,
    state: eni.attachment === undefined ? `${eni.state}, attached to nothing` : eni.state,
    primaries: ips.filter(({ isPrimary }) => isPrimary).map(({ ip }) => ip),
    addresses: ips
      .filter(({ isPrimary }) => !isPrimary)
      .map(({ ip, state }) => ({ ip, isAssigned: state === 'AVAILABLE', state })),
  };
}
