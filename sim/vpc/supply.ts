import { stringify } from 'yaml';
import type { AssignedIp, Nic } from './nic.ts';

/**
 * Writes the NodeENIConfig that ipamd would have written for these ENIs: the agent's `--supply-file`.
 * `supplyEpoch` must grow from one description to the next.
 */
export function nodeEniConfigYaml(node: string, nics: readonly Nic[], supplyEpoch: number): string {
  return stringify({
    apiVersion: 'networking.tke.cloud.tencent.com/v1',
    kind: 'NodeENIConfig',
    metadata: { name: node },
    spec: {},
    status: { supplyEpoch, eniInfos: nics.map(eniInfo) },
  });
}

function eniInfo(nic: Nic, index: number): object {
  const { subnet } = nic;
  return {
    eniID: nic.eniId,
    mac: nic.mac,
    ...(nic.isDirect ? { mode: 'direct-eni', assignmentID: nic.attachmentId } : {}),
    ...(nic.claim === undefined ? {} : { claim: nic.claim }),
    primaryIP: nic.primaryIp,
    ...(nic.primaryIpv6 === undefined ? {} : { primaryIPv6: nic.primaryIpv6 }),
    gateway: subnet.gateway,
    ...(subnet.gatewayV6 === undefined ? {} : { gatewayIPv6: subnet.gatewayV6 }),
    subnetCIDR: subnet.cidr,
    ...(subnet.cidrV6 === undefined ? {} : { subnetIPv6CIDR: subnet.cidrV6 }),
    deviceIndex: index + 1,
    state: 'Attached',
    ...(nic.isDirect ? {} : { addresses: [...nic.assigned.values()].map(address) }),
  };
}

function address(assigned: AssignedIp): object {
  return {
    ip: assigned.ip,
    assignmentID: assigned.assignmentId,
    state: assigned.isReleasing ? 'Releasing' : 'Assigned',
    ...(assigned.pairedIp === undefined ? {} : { pairedIP: assigned.pairedIp }),
  };
}
